"""Tests for L{kubetwist.registry.flowcontrol.printers}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.printers import cells
from tests.registry.printertools import NOW, made


class PriorityLevelTests(SynchronousTestCase):
    """Tests for rows of priority levels."""

    def test_priority_level(self) -> None:
        """A level without limits shows no numbers."""
        exempt = made({"spec": {"type": "Exempt"}})
        kind = ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration")
        self.assertEqual(cells(*kind, exempt, NOW)[1:6], ["Exempt"] + ["<none>"] * 4)
        queuing = {"queues": 64, "handSize": 6, "queueLengthLimit": 50}
        limited = {"nominalConcurrencyShares": 30, "limitResponse": {"queuing": queuing}}
        obj = made({"spec": {"type": "Limited", "limited": limited}})
        self.assertEqual(cells(*kind, obj, NOW)[1:6], ["Limited", 30, 64, 6, 50])
