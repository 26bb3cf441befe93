"""Tests for L{Webhook}."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.admission_plugins.webhooks.webhook import Webhook


class FakeOutgoing:
    """A client factory that counts its clients."""

    denied_networks = ()

    def __init__(self) -> None:
        self.made: list[Any] = []

    def client(self, settings: Any) -> SimpleNamespace:
        """Return a client with some settings."""
        self.made.append(settings)
        return SimpleNamespace(settings=settings)


class WebhookTests(SynchronousTestCase):
    """Tests for L{Webhook}."""

    def webhook(self, number: int = 0, outgoing: Any = None, **fields: Any) -> Webhook:
        """Return a webhook of the configuration C{c}."""
        return Webhook("c", {"name": "w", **fields}, number, outgoing, None)

    def test_defaults(self) -> None:
        """By default a webhook has a timeout of ten seconds, failurePolicy Fail, and is not called in dry runs."""
        webhook = self.webhook()
        self.assertEqual(
            (webhook.timeout, webhook.ignore_failures, webhook.reinvocable, webhook.supports_dry_run),
            (10.0, False, False, False),
        )
        self.assertIsNone(webhook.conditions)

    def test_fields(self) -> None:
        """Policies are read from the fields of the webhook."""
        webhook = self.webhook(timeoutSeconds=3, failurePolicy="Ignore", reinvocationPolicy="IfNeeded")
        self.assertEqual((webhook.timeout, webhook.ignore_failures, webhook.reinvocable), (3.0, True, True))
        for effects, supports_dry_run in (("None", True), ("NoneOnDryRun", True), ("Some", False), ("Unknown", False)):
            self.assertEqual(self.webhook(sideEffects=effects).supports_dry_run, supports_dry_run, effects)

    def test_uid(self) -> None:
        """Webhooks with the same name in a configuration have different uids."""
        self.assertEqual([self.webhook(number).uid for number in (0, 1)], ["c/w/0", "c/w/1"])

    def test_client_is_made_once(self) -> None:
        """The client is created at the first call and reused."""
        outgoing = FakeOutgoing()
        webhook = self.webhook(outgoing=outgoing, clientConfig={"url": "https://example.com/hook"})
        self.assertEqual(outgoing.made, [])
        self.assertIs(webhook.client(), webhook.client())
        self.assertEqual([settings.url for settings in outgoing.made], ["https://example.com/hook"])
