"""Tests of L{kubetwist.registry.core.namespace.bootstrap}."""

from __future__ import annotations

from kubetwist.registry.core.namespace.bootstrap import SYSTEM_NAMESPACES, system_namespaces
from tests.registry.generic.bootstrapcase import BootstrapTestCase


class NamespaceTests(BootstrapTestCase):
    """Tests of L{system_namespaces}."""

    def test_made_once(self) -> None:
        """A second start does not change existing namespaces."""
        self.successResultOf(system_namespaces(self.stores))
        before = [self.found("", "namespaces", name) for name in SYSTEM_NAMESPACES]
        self.assertEqual({one["status"]["phase"] for one in before}, {"Active"})
        self.successResultOf(system_namespaces(self.stores))
        self.assertEqual([self.found("", "namespaces", name) for name in SYSTEM_NAMESPACES], before)
