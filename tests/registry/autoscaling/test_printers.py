"""Tests for L{kubetwist.registry.autoscaling.printers}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.printers import cells
from tests.registry.printertools import NOW, made


class AutoscalerTests(SynchronousTestCase):
    """Tests for rows of autoscalers."""

    def test_autoscaler(self) -> None:
        """Two metrics are shown with current and target values, and the number of further ones."""
        spec = {
            "scaleTargetRef": {"kind": "Deployment", "name": "web"},
            "maxReplicas": 9,
            "metrics": [
                {"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 70}}},
                {"type": "External", "external": {"target": {"averageValue": "5"}}},
                {"type": "Pods", "pods": {"target": {"averageValue": "5"}}},
            ],
        }
        current = [{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 40}}}]
        obj = made({"spec": spec, "status": {"currentMetrics": current, "currentReplicas": 2}})
        self.assertEqual(
            cells("autoscaling", "HorizontalPodAutoscaler", obj, NOW),
            ["x", "Deployment/web", "cpu: 40%/70%, <unknown>/5 (avg) + 1 more...", "<unset>", 9, 2, "3m"],
        )
