"""Tests of L{kubetwist.registry.core.node.labels}, through the kinds that select nodes."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.strategies import strategy_for

OLD = "beta.kubernetes.io/arch"
TEXT = 'deprecated since v1.14; use "kubernetes.io/arch" instead'
MASTER = "node-role.kubernetes.io/master"
MASTER_TEXT = 'use "node-role.kubernetes.io/control-plane" instead'


class NodeLabelTests(SynchronousTestCase):
    """Tests of warnings about deprecated labels of nodes, in creations and updates."""

    def test_storage_class(self) -> None:
        """Each topology of a StorageClass is checked."""
        terms = [{"matchLabelExpressions": [{"key": "a"}, {"key": OLD}]}, {"matchLabelExpressions": [{"key": MASTER}]}]
        obj = {"metadata": {"name": "x"}, "allowedTopologies": terms}
        found = [
            f"allowedTopologies[0].matchLabelExpressions[1].key: {TEXT}",
            f"allowedTopologies[1].matchLabelExpressions[0].key: {MASTER_TEXT}",
        ]
        for old in (None, obj):
            self.assertEqual(strategy_for("storage.k8s.io", "StorageClass").warnings(obj, old), found)

    def test_runtime_class(self) -> None:
        """A RuntimeClass gets a warning about labels that does not name the label."""
        obj = {"metadata": {"name": "x"}, "scheduling": {"nodeSelector": {OLD: "x", "a": "b"}}}
        for old in (None, obj):
            found = strategy_for("node.k8s.io", "RuntimeClass").warnings(obj, old)
            self.assertEqual(found, [f"scheduling.nodeSelector: {TEXT}"])
        self.assertEqual(strategy_for("node.k8s.io", "RuntimeClass").warnings({"metadata": {}}, None), [])

    def test_capacity(self) -> None:
        """Warnings about expressions of a capacity's topology precede those about its labels."""
        selector = {"matchLabels": {OLD: "x"}, "matchExpressions": [{"key": MASTER, "operator": "Exists"}]}
        obj = {"metadata": {"name": "x"}, "nodeTopology": selector}
        for old in (None, obj):
            self.assertEqual(
                strategy_for("storage.k8s.io", "CSIStorageCapacity").warnings(obj, old),
                [
                    f"nodeTopology.matchExpressions[0].key: {MASTER} is {MASTER_TEXT}",
                    f"nodeTopology.matchLabels.{OLD}: {TEXT}",
                ],
            )
        self.assertEqual(strategy_for("storage.k8s.io", "CSIStorageCapacity").warnings({"metadata": {}}, None), [])
