"""Tests of L{kubetwist.registry.core.replicationcontroller.strategy}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.registry.strategytools import copy, defaulted, made, status_problems

TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


class StrategyTests(SynchronousTestCase):
    """Tests of the strategy of ReplicationControllers."""

    def test_defaults(self) -> None:
        """Selector and labels default to those of the template, replicas to 1."""
        obj = defaulted("", "ReplicationController", spec={"template": copy(TEMPLATE)})
        self.assertEqual((obj["spec"]["selector"], obj["metadata"]["labels"]), ({"a": "b"}, {"a": "b"}))
        self.assertEqual(obj["spec"]["replicas"], 1)

    def test_given(self) -> None:
        """A given selector and a number of 0 replicas are kept."""
        obj = defaulted(
            "", "ReplicationController", spec={"template": copy(TEMPLATE), "selector": {"c": "d"}, "replicas": 0}
        )
        self.assertEqual((obj["spec"]["selector"], obj["spec"]["replicas"]), ({"c": "d"}, 0))

    def test_status(self) -> None:
        """A new ReplicationController has 0 replicas."""
        obj = made("", "ReplicationController", spec={"template": copy(TEMPLATE)}, status={"replicas": 5})
        self.assertEqual(obj["status"], {"replicas": 0})

    def test_counts(self) -> None:
        """The ready replicas must not exceed the replicas."""
        found = status_problems("", "ReplicationController", {}, {"status": {"replicas": 1, "readyReplicas": 2}})
        self.assertEqual([one.partition(":")[0] for one in found], ["status.readyReplicas"])
