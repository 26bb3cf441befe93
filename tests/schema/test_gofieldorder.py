"""Tests for L{kubetwist.schema.gofieldorder}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.schema.gofieldorder import child_type, go_keys, go_ordered
from kubetwist.schema.nodes import ListNode, MapNode
from tests.schema.release import definitions


class OrderTests(SynchronousTestCase):
    """The order of fields in Go."""

    def test_declared(self) -> None:
        """Fields come as they are declared, what tells a kind first, and unknown ones last, by name."""
        pod = definitions().struct("io.k8s.api.core.v1.Pod")
        value = {"zz": 1, "status": {}, "aa": 1, "spec": {}, "metadata": {}, "apiVersion": "v1", "kind": "Pod"}
        keys = ["kind", "apiVersion", "metadata", "spec", "status", "aa", "zz"]
        self.assertEqual(list(go_keys(value, pod)), keys)

    def test_table(self) -> None:
        """Where the numbers of protobuf have another order, the declaration counts."""
        status = definitions().struct("io.k8s.api.apps.v1.DeploymentCondition")
        value = dict.fromkeys(("message", "lastTransitionTime", "type", "lastUpdateTime", "status"))
        wanted = ["type", "status", "lastUpdateTime", "lastTransitionTime", "message"]
        self.assertEqual(list(go_keys(value, status)), wanted)

    def test_within(self) -> None:
        """Lists and maps of structs, too; keys of maps are sorted, and what has no type stays."""
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
