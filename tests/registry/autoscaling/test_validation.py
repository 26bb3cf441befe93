"""Tests for L{kubetwist.registry.autoscaling.validation}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.registry.strategytools import problems


class AutoscalerTests(SynchronousTestCase):
    """Tests for the validation of HorizontalPodAutoscalers."""

    def test_two_sources(self) -> None:
        """A metric has only the source of its type; only the first of two is validated."""
        pods = {"metric": {"name": "a"}, "target": {"type": "AverageValue", "averageValue": "1"}}
        resource = {"name": "", "target": {"type": "Utilization", "averageUtilization": 50}}
        metric = {"type": "Resource", "pods": pods, "resource": resource}
        target = {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}
        errors = problems(
            "autoscaling",
            "HorizontalPodAutoscaler",
            spec={"maxReplicas": 2, "scaleTargetRef": target, "metrics": [metric]},
        )
        self.assertEqual(errors, ["spec.metrics[0].pods: Forbidden: must populate the given metric source only"])
