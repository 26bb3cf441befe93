"""Tests for L{kubetwist.registry.autoscaling.strategy}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.registry.strategytools import copy, defaulted, made

V1 = "autoscaling/v1"


class StrategyTests(SynchronousTestCase):
    """Tests for the strategy of HorizontalPodAutoscalers."""

    def defaults(self, **parts: object) -> dict[str, object]:
        """Return the spec of an autoscaler with its defaults."""
        result: dict[str, object] = defaulted("autoscaling", "HorizontalPodAutoscaler", **parts)["spec"]
        return result

    def test_metrics(self) -> None:
        """The default metric is 80 % of the CPU; in v1 metrics are in annotations, which get no defaults."""
        [metric] = copy(self.defaults(spec={"maxReplicas": 3})["metrics"])
        self.assertEqual(
            metric["resource"], {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}
        )
        self.assertNotIn("metrics", self.defaults(apiVersion=V1, spec={"maxReplicas": 3}))

    def test_behavior(self) -> None:
        """Defaults are added to incomplete rules; existing values are kept."""
        behavior = copy(self.defaults(spec={"behavior": {"scaleUp": {"selectPolicy": "Min"}}})["behavior"])
        self.assertEqual(behavior["scaleUp"]["selectPolicy"], "Min")
        self.assertEqual(behavior["scaleUp"]["stabilizationWindowSeconds"], 0)
        self.assertEqual(len(behavior["scaleUp"]["policies"]), 2)
        self.assertEqual(len(behavior["scaleDown"]["policies"]), 1)
        self.assertNotIn("stabilizationWindowSeconds", behavior["scaleDown"])

    def test_shared(self) -> None:
        """Default policies are not shared between objects."""
        one = copy(self.defaults(spec={"behavior": {}}))
        first = defaulted("autoscaling", "HorizontalPodAutoscaler", spec={"behavior": {}})
        first["spec"]["behavior"]["scaleUp"]["policies"][0]["value"] = 99
        self.assertEqual(self.defaults(spec={"behavior": {}}), one)

    def test_status(self) -> None:
        """A new autoscaler has no current metrics."""
        obj = made("autoscaling", "HorizontalPodAutoscaler", status={"desiredReplicas": 7})
        self.assertEqual(obj["status"], {"currentMetrics": None, "desiredReplicas": 0})

    def test_min_replicas(self) -> None:
        """The default of minReplicas is one."""
        self.assertEqual(self.defaults(spec={})["minReplicas"], 1)
        self.assertEqual(self.defaults(spec={"minReplicas": 0})["minReplicas"], 0)
