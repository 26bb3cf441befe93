"""Tests for L{kubetwist.admission_plugins.webhooks.configurationmanager}."""

from __future__ import annotations

from tests.admission_plugins.webhooks.webhookserver import WebhookTestCase, webhook
from tests.admission_plugins.webhooks.webhooktools import rule


class ChangeTests(WebhookTestCase):
    """Tests for configurations that change."""

    def test_configurations_are_exempt(self) -> None:
        """Webhooks are not called for webhook configurations, so that a faulty one can be removed."""
        self.configure(webhook(**rule("*/*")), webhook("b.example.org", **rule("*/*")))
        self.outgoing.answer = lambda url, review: {"allowed": False}
        self.send_request("DELETE", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/hooks")
        self.assertEqual(self.requests, [])
        self.config_map()

    def test_changed_configuration(self) -> None:
        """A changed configuration applies to the next request."""
        self.configure(webhook())
        self.config_map("one")
        path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/hooks"
        url = [{"op": "replace", "path": "/webhooks/0/clientConfig/url", "value": "https://elsewhere.example.org"}]
        self.send_request("PATCH", path, url, Content_Type="application/json-patch+json")
        self.config_map("two")
        self.assertEqual([url for url, _ in self.outgoing.calls][1:], ["https://elsewhere.example.org/"])
