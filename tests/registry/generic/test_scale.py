"""Tests of L{kubetwist.registry.generic.scale}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.generic.scale import apply_scale, scale_of, selector_text, validate_scale


class ScaleTests(SynchronousTestCase):
    """Tests of conversion between objects and scales."""

    def test_deployment(self) -> None:
        """A scale has the metadata of its object, the desired replicas, and the current ones."""
        obj = {
            "metadata": {"name": "d", "namespace": "n", "uid": "u", "resourceVersion": "7", "labels": {"a": "b"}},
            "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "d"}}},
            "status": {"replicas": 2},
        }
        self.assertEqual(
            scale_of(obj, "apps", "Deployment"),
            {
                "kind": "Scale",
                "apiVersion": "autoscaling/v1",
                "metadata": {"name": "d", "namespace": "n", "uid": "u", "resourceVersion": "7"},
                "spec": {"replicas": 3},
                "status": {"replicas": 2, "selector": "app=d"},
            },
        )

    def test_replication_controller(self) -> None:
        """The selector of a ReplicationController is a map of labels."""
        obj = {"metadata": {"name": "r"}, "spec": {"selector": {"b": "2", "a": "1"}}}
        self.assertEqual(scale_of(obj, "", "ReplicationController")["status"]["selector"], "a=1,b=2")

    def test_selector(self) -> None:
        """Expressions are formatted as in queries, sorted by key."""
        selector = {
            "matchLabels": {"app": "x"},
            "matchExpressions": [
                {"key": "env", "operator": "In", "values": ["b", "a"]},
                {"key": "a", "operator": "Exists"},
                {"key": "z", "operator": "DoesNotExist"},
            ],
        }
        self.assertEqual(selector_text(selector), "a,app=x,env in (a,b),!z")

    def test_apply(self) -> None:
        """Only the number of replicas is written to the object."""
        obj = {"spec": {"replicas": 1, "paused": True}}
        apply_scale(obj, {"spec": {"replicas": 5}})
        self.assertEqual(obj, {"spec": {"replicas": 5, "paused": True}})
        apply_scale(obj, {"spec": {}})
        self.assertEqual(obj["spec"]["replicas"], 0)

    def test_negative(self) -> None:
        """A negative number of replicas is invalid."""
        meta = {"name": "d", "namespace": "default"}
        self.assertEqual(
            [str(cause) for cause in validate_scale({"metadata": meta, "spec": {"replicas": -5}})],
            ["spec.replicas: Invalid value: -5: must be greater than or equal to 0"],
        )
        self.assertEqual(validate_scale({"metadata": meta, "spec": {}}), [])

    def test_metadata(self) -> None:
        """A scale has a valid name, and a namespace."""
        meta = {"name": "d", "namespace": "default"}
        unknown = {"metadata": {**meta, "finalizers": ["bad"]}, "spec": {"replicas": -5}}
        self.assertEqual(
            [cause.field for cause in validate_scale(unknown)], ["metadata.finalizers[0]", "spec.replicas"]
        )
        found = [str(cause) for cause in validate_scale({"metadata": {"name": "A"}})]
        self.assertEqual(len(found), 2)
        self.assertIn('metadata.name: Invalid value: "A"', found[0])
        self.assertEqual(found[1], "metadata.namespace: Required value")
