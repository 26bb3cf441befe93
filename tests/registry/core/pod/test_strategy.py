"""Tests for L{kubetwist.registry.core.pod.strategy}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.options import DeleteOptions
from kubetwist.registry.strategies import strategy_for
from tests.registry.strategytools import CONTAINER, defaulted


class CreationTests(SynchronousTestCase):
    """Tests for C{prepare_for_create} of pods."""

    def test_status_is_reset(self) -> None:
        """Clients do not choose the status of what they create."""
        pod = defaulted("", "Pod", spec={"containers": [dict(CONTAINER)]}, status={"phase": "Running"})
        strategy_for("", "Pod").prepare_for_create(pod)
        self.assertEqual(pod["status"], {"phase": "Pending", "qosClass": "BestEffort"})

    def test_gated_pod(self) -> None:
        """A pod with gates is not to be scheduled, and says so."""
        spec = {"containers": [dict(CONTAINER)], "schedulingGates": [{"name": "g"}]}
        pod = defaulted("", "Pod", spec=spec)
        strategy_for("", "Pod").prepare_for_create(pod)
        condition = pod["status"]["conditions"][0]
        self.assertEqual((condition["type"], condition["reason"]), ("PodScheduled", "SchedulingGated"))

    def test_match_label_keys(self) -> None:
        """Keys whose values are to match become part of the selector."""
        constraint = {"labelSelector": {}, "matchLabelKeys": ["rev"], "topologyKey": "zone"}
        spec = {"containers": [dict(CONTAINER)], "topologySpreadConstraints": [constraint]}
        pod = defaulted("", "Pod", spec=spec)
        pod["metadata"]["labels"] = {"rev": "1"}
        strategy_for("", "Pod").prepare_for_create(pod)
        self.assertEqual(
            constraint["labelSelector"], {"matchExpressions": [{"key": "rev", "operator": "In", "values": ["1"]}]}
        )


class GracePeriodTests(SynchronousTestCase):
    """Tests for the grace period of pods."""

    def test_grace_period(self) -> None:
        """A pod on a node has the time its spec gives it; one that runs nowhere, or is finished, has none."""
        strategy = strategy_for("", "Pod")
        spec = {"terminationGracePeriodSeconds": 30, "nodeName": "n"}
        self.assertEqual(strategy.grace_period({"spec": spec}, DeleteOptions()), 30)
        self.assertEqual(strategy.grace_period({"spec": spec}, DeleteOptions(grace_period_seconds=5)), 5)
        self.assertEqual(strategy.grace_period({"spec": spec}, DeleteOptions(grace_period_seconds=-3)), 1)
        self.assertEqual(strategy.grace_period({"spec": {"terminationGracePeriodSeconds": 30}}, DeleteOptions()), 0)
        done = {"spec": spec, "status": {"phase": "Succeeded"}}
        self.assertEqual(strategy.grace_period(done, DeleteOptions()), 0)
        self.assertIsNone(strategy_for("", "ConfigMap").grace_period({}, DeleteOptions()))
