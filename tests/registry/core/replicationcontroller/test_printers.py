"""Tests of L{kubetwist.registry.core.replicationcontroller.printers}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.printers import cells
from tests.registry.printertools import NOW, TEMPLATE, made


class RowTests(SynchronousTestCase):
    """Tests of rows of ReplicationControllers."""

    def test_controller(self) -> None:
        """A row contains the desired, current and ready replicas; the selector is a map of labels."""
        obj = made(
            {
                "spec": {"replicas": 3, "selector": {"a": "b"}, "template": TEMPLATE},
                "status": {"replicas": 2, "readyReplicas": 1},
            }
        )
        found = cells("", "ReplicationController", obj, NOW)
        self.assertEqual(found, ["x", 3, 2, 1, "3m", "a,b", "a:1,b:2", "a=b"])
