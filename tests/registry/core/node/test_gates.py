"""Tests of feature gates of Nodes."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.registry.gatetools import gated
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
