"""Tests for L{kubetwist.registry.autoscaling.strategy}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.registry.strategytools import copy, defaulted, made

V1 = "autoscaling/v1"


class StrategyTests(SynchronousTestCase):
    """Tests for the strategy of HorizontalPodAutoscalers."""

    def defaults(self, **parts: object) -> dict[str, object]:
        """The spec of an autoscaler with its defaults."""
        found: dict[str, object] = defaulted("autoscaling", "HorizontalPodAutoscaler", **parts)["spec"]
        return found

    def test_metrics(self) -> None:
        """Without metrics the CPU is to be used by 80 %; in v1 annotations have the metrics, and get no defaults."""
        [metric] = copy(self.defaults(spec={"maxReplicas": 3})["metrics"])
        self.assertEqual(
            metric["resource"], {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}
        )
        self.assertNotIn("metrics", self.defaults(apiVersion=V1, spec={"maxReplicas": 3}))

    def test_behavior(self) -> None:
        """Rules that are given in part are completed; what is given stays."""
        behavior = copy(self.defaults(spec={"behavior": {"scaleUp": {"selectPolicy": "Min"}}})["behavior"])
        self.assertEqual(behavior["scaleUp"]["selectPolicy"], "Min")
        self.assertEqual(behavior["scaleUp"]["stabilizationWindowSeconds"], 0)
        self.assertEqual(len(behavior["scaleUp"]["policies"]), 2)
        self.assertEqual(len(behavior["scaleDown"]["policies"]), 1)
        self.assertNotIn("stabilizationWindowSeconds", behavior["scaleDown"])

    def test_shared(self) -> None:
        """The policies that are filled in are the object's own."""
        one = copy(self.defaults(spec={"behavior": {}}))
        first = defaulted("autoscaling", "HorizontalPodAutoscaler", spec={"behavior": {}})
        first["spec"]["behavior"]["scaleUp"]["policies"][0]["value"] = 99
        self.assertEqual(self.defaults(spec={"behavior": {}}), one)

    def test_status(self) -> None:
        """A new autoscaler has measured nothing."""
        obj = made("autoscaling", "HorizontalPodAutoscaler", status={"desiredReplicas": 7})
        self.assertEqual(obj["status"], {"currentMetrics": None, "desiredReplicas": 0})

    def test_least(self) -> None:
        """One replica is the least unless it is said otherwise."""
        self.assertEqual(self.defaults(spec={})["minReplicas"], 1)
        self.assertEqual(self.defaults(spec={"minReplicas": 0})["minReplicas"], 0)
