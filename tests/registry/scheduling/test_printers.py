"""Tests for L{kubetwist.registry.scheduling.printers}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.printers import cells
from tests.registry.printertools import NOW, made


class RowTests(SynchronousTestCase):
    """Tests for rows of PriorityClasses."""

    def test_priority_class(self) -> None:
        """A row has the value, whether it is the default, and the preemption policy; an absent value is zero."""
        obj = made({"value": 7, "globalDefault": True, "preemptionPolicy": "Never"})
        self.assertEqual(cells("scheduling.k8s.io", "PriorityClass", obj, NOW), ["x", 7, True, "3m", "Never"])
        self.assertEqual(cells("scheduling.k8s.io", "PriorityClass", made(), NOW), ["x", 0, False, "3m", ""])
