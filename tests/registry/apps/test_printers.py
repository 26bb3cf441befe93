"""Tests for L{kubetwist.registry.apps.printers}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.printers import cells
from tests.registry.printertools import NOW, TEMPLATE, made


class WorkloadTests(SynchronousTestCase):
    """Tests for rows of workloads."""

    def test_deployment(self) -> None:
        """A Deployment shows ready and desired replicas."""
        selector = {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "tier", "operator": "Exists"}]}
        obj = made(
            {
                "spec": {"replicas": 3, "selector": selector, "template": TEMPLATE},
                "status": {"readyReplicas": 1, "updatedReplicas": 2, "availableReplicas": 1},
            }
        )
        self.assertEqual(
            cells("apps", "Deployment", obj, NOW), ["x", "1/3", 2, 1, "3m", "a,b", "a:1,b:2", "app=web,tier"]
        )

    def test_controller_revision(self) -> None:
        """A ControllerRevision shows its controller with kind and group."""
        owners = [
            {"apiVersion": "v1", "kind": "Pod", "name": "p"},
            {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "controller": True},
        ]
        shown = cells("apps", "ControllerRevision", made({"revision": 7}, ownerReferences=owners), NOW)
        self.assertEqual(shown, ["x", "statefulset.apps/db", 7, "3m"])
        self.assertEqual(cells("apps", "ControllerRevision", made(), NOW)[1], "<none>")
