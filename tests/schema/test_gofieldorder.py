"""Tests for L{kubetwist.schema.gofieldorder}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.schema.gofieldorder import child_type, go_keys, go_ordered
from kubetwist.schema.nodes import ListNode, MapNode
from tests.schema.release import definitions


class OrderTests(SynchronousTestCase):
    """Tests for L{go_ordered}."""

    def test_declared(self) -> None:
        """
        Fields are in the order of their declarations; kind and apiVersion come first, unknown fields last, by name.
        """
        pod = definitions().struct("io.k8s.api.core.v1.Pod")
        value = {"zz": 1, "status": {}, "aa": 1, "spec": {}, "metadata": {}, "apiVersion": "v1", "kind": "Pod"}
        keys = ["kind", "apiVersion", "metadata", "spec", "status", "aa", "zz"]
        self.assertEqual(list(go_keys(value, pod)), keys)

    def test_table(self) -> None:
        """The order of declarations takes precedence over the order of protobuf field numbers."""
        status = definitions().struct("io.k8s.api.apps.v1.DeploymentCondition")
        value = dict.fromkeys(("message", "lastTransitionTime", "type", "lastUpdateTime", "status"))
        expected = ["type", "status", "lastUpdateTime", "lastTransitionTime", "message"]
        self.assertEqual(list(go_keys(value, status)), expected)

    def test_within(self) -> None:
        """Structs in lists and maps are ordered, too; map keys are sorted, values without a type unchanged."""
        pod = definitions().struct("io.k8s.api.core.v1.Pod")
        containers = {"spec": {"containers": [{"image": "i", "name": "n"}]}}
        found = go_ordered(containers, pod)
        self.assertEqual(str(found), "{'spec': {'containers': [{'name': 'n', 'image': 'i'}]}}")
        metadata = child_type(pod, "metadata")
        labels = child_type(metadata, "labels")
        self.assertIsInstance(labels, MapNode)
        self.assertIsInstance(child_type(child_type(pod, "spec"), "containers"), ListNode)
        self.assertEqual(list(go_keys({"b": "", "a": ""}, labels)), ["a", "b"])
        self.assertEqual(list(go_keys({"b": "", "a": ""}, None)), ["b", "a"])
        self.assertIsNone(child_type(pod, "unknown"))
