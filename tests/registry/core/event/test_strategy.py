"""Tests of L{kubetwist.registry.core.event.strategy}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.registry.strategytools import problems


class NamespaceTests(SynchronousTestCase):
    """Tests of the namespaces of events."""

    def test_event(self) -> None:
        """The namespace of an event must be that of its involved object."""
        about = {"kind": "Pod", "name": "p", "namespace": "elsewhere"}
        self.assertEqual(
            problems("", "Event", involvedObject=about),
            ['involvedObject.namespace: Invalid value: "elsewhere": does not match event.namespace'],
        )
