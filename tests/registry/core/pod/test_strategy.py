"""Tests of L{kubetwist.registry.core.pod.strategy}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.options import DeleteOptions
from kubetwist.registry.strategies import strategy_for
from tests.registry.strategytools import CONTAINER, defaulted


class CreationTests(SynchronousTestCase):
    """Tests of C{prepare_for_create} of pods."""

    def test_status_is_reset(self) -> None:
        """The status of a new pod is reset."""
        pod = defaulted("", "Pod", spec={"containers": [dict(CONTAINER)]}, status={"phase": "Running"})
        strategy_for("", "Pod").prepare_for_create(pod)
        self.assertEqual(pod["status"], {"phase": "Pending", "qosClass": "BestEffort"})

    def test_gated_pod(self) -> None:
        """A pod with scheduling gates has a condition with the reason SchedulingGated."""
        spec = {"containers": [dict(CONTAINER)], "schedulingGates": [{"name": "g"}]}
        pod = defaulted("", "Pod", spec=spec)
        strategy_for("", "Pod").prepare_for_create(pod)
        condition = pod["status"]["conditions"][0]
        self.assertEqual((condition["type"], condition["reason"]), ("PodScheduled", "SchedulingGated"))

    def test_match_label_keys(self) -> None:
        """Values of matchLabelKeys are added to the selector."""
        constraint = {"labelSelector": {}, "matchLabelKeys": ["rev"], "topologyKey": "zone"}
        spec = {"containers": [dict(CONTAINER)], "topologySpreadConstraints": [constraint]}
        pod = defaulted("", "Pod", spec=spec)
        pod["metadata"]["labels"] = {"rev": "1"}
        strategy_for("", "Pod").prepare_for_create(pod)
        self.assertEqual(
            constraint["labelSelector"], {"matchExpressions": [{"key": "rev", "operator": "In", "values": ["1"]}]}
        )


class GracePeriodTests(SynchronousTestCase):
    """Tests of the grace period of pods."""

    def test_grace_period(self) -> None:
        """The grace period of a pod on a node is that of its spec; other pods have 0."""
        strategy = strategy_for("", "Pod")
        spec = {"terminationGracePeriodSeconds": 30, "nodeName": "n"}
        self.assertEqual(strategy.grace_period({"spec": spec}, DeleteOptions()), 30)
        self.assertEqual(strategy.grace_period({"spec": spec}, DeleteOptions(grace_period_seconds=5)), 5)
        self.assertEqual(strategy.grace_period({"spec": spec}, DeleteOptions(grace_period_seconds=-3)), 1)
        self.assertEqual(strategy.grace_period({"spec": {"terminationGracePeriodSeconds": 30}}, DeleteOptions()), 0)
        done = {"spec": spec, "status": {"phase": "Succeeded"}}
        self.assertEqual(strategy.grace_period(done, DeleteOptions()), 0)
        self.assertIsNone(strategy_for("", "ConfigMap").grace_period({}, DeleteOptions()))
