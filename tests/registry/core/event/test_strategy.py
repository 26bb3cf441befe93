"""Tests for L{kubetwist.registry.core.event.strategy}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.registry.strategytools import problems


class NamespaceTests(SynchronousTestCase):
    """Namespaces of events."""

    def test_event(self) -> None:
        """An event lives where the object lives that it is about."""
        about = {"kind": "Pod", "name": "p", "namespace": "elsewhere"}
        self.assertEqual(
            problems("", "Event", involvedObject=about),
            ['involvedObject.namespace: Invalid value: "elsewhere": does not match event.namespace'],
        )
