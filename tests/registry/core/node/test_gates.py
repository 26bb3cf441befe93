"""Tests of feature gates of Nodes."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.registry.gatetools import created, gated, updated
from tests.registry.strategytools import copy


class GateTests(SynchronousTestCase):
    """Tests of the status of new nodes."""

    def test_status(self) -> None:
        """The features of the runtime and of the kubelet are dropped if their gates are disabled."""
        status = {"runtimeHandlers": [{"name": ""}], "features": {}, "declaredFeatures": ["F"]}
        for release, gates, kept in (
            ((1, 36), {}, ["runtimeHandlers", "features", "declaredFeatures"]),
            ((1, 36), {"NodeDeclaredFeatures": False}, ["runtimeHandlers", "features"]),
            ((1, 34), {"SupplementalGroupsPolicy": False}, ["runtimeHandlers", "declaredFeatures"]),
            ((1, 32), {"RecursiveReadOnlyMounts": False}, ["declaredFeatures"]),
            (
                (1, 32),
                {"RecursiveReadOnlyMounts": False, "UserNamespacesSupport": True, "SupplementalGroupsPolicy": True},
                ["runtimeHandlers", "features", "declaredFeatures"],
            ),
        ):
            obj = copy({"metadata": {"name": "n"}, "spec": {}, "status": status})
            gated("", "Node", release, **gates).prepare_for_create(obj)
            self.assertEqual(list(obj["status"]), kept, gates)

    def test_spec(self) -> None:
        """The preemption policy is dropped if its gate is disabled, unless it is in use."""
        policy = {"podPreemptionPolicy": {"disableResizePreemption": True}}
        for enabled in (True, False):
            strategy = gated("", "Node", (1, 37), InPlacePodVerticalScalingSchedulerPreemption=enabled)
            obj = created(strategy, spec=policy)
            self.assertEqual("podPreemptionPolicy" in obj["spec"], enabled)
            self.assertEqual("podPreemptionPolicy" in updated(strategy, obj, spec=policy)["spec"], enabled)
            used = {**obj, "spec": policy}
            self.assertIn("podPreemptionPolicy", updated(strategy, used, spec=policy)["spec"])
