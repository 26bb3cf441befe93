"""Tests for L{kubetwist.admission_plugins.webhooks.plugins}."""

from __future__ import annotations

from zope.interface.verify import verifyObject

from kubetwist.interfaces import IMutatingAdmission, IValidatingAdmission
from tests.admission_plugins.fakes import starting_over
from tests.admission_plugins.webhooks.webhookserver import WebhookTestCase, webhook


class PluginTests(WebhookTestCase):
    """Tests of both plugins."""

    def test_interfaces(self) -> None:
        """The plugins implement their interfaces."""
        mutating, validating = self.server.registry.admission.plugins
        verifyObject(IMutatingAdmission, mutating)
        verifyObject(IValidatingAdmission, validating)

    def test_refilled(self) -> None:
        """While caches are refilled their old content is used, also if it is empty; afterwards their new content."""
        caches = [store.cache for store in self.server.stores if "webhookconf" in store.cache.prefix]
        self.assertEqual(len(caches), 2)
        with starting_over(self.server, caches):
            self.config_map("a")
        self.configure(webhook())
        with starting_over(self.server, caches):
            self.config_map("b")
        self.assertEqual(len(self.outgoing.calls), 1)
        self.config_map("c")
        self.assertEqual(len(self.outgoing.calls), 2)
