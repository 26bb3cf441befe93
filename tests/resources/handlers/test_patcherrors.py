"""Tests for L{kubetwist.resources.handlers.patcherrors}."""

from __future__ import annotations

import json
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.resources.handlers.patcherrors import merged_text, stepwise_text
from kubetwist.schema.definitions import Definitions

DEPLOYMENT = {
    "kind": "Deployment",
    "apiVersion": "apps/v1",
    "metadata": {"namespace": "n", "name": "d"},
    "spec": {
        "replicas": 1,
        "strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}, "type": "RollingUpdate"},
        "template": {"spec": {"nodeSelector": {"b": "1", "a": "2"}, "containers": [{"image": "i", "name": "c"}]}},
    },
}


def keys(text: str, *path: str | int) -> list[str]:
    """Return the keys of a nested object in the quoted text, in order."""
    value: Any = json.loads(text)
    for step in path:
        value = value[step]
    return list(value)


class PatchTextTests(SynchronousTestCase):
    """The text of invalid patched objects in errors."""

    def setUp(self) -> None:
        """Load the type of Deployments."""
        self.node = Definitions.load("1.36").struct("io.k8s.api.apps.v1.Deployment")

    def test_merge(self) -> None:
        """Objects on the paths of a merge are sorted by key, all further objects have Go's order."""
        text = merged_text(DEPLOYMENT, {"spec": {"replicas": "x"}}, self.node)
        self.assertEqual(keys(text), ["apiVersion", "kind", "metadata", "spec"])
        self.assertEqual(keys(text, "metadata"), ["name", "namespace"])
        self.assertEqual(keys(text, "spec", "strategy"), ["type", "rollingUpdate"])
        self.assertEqual(keys(text, "spec", "strategy", "rollingUpdate"), ["maxUnavailable", "maxSurge"])
        self.assertEqual(keys(text, "spec", "template", "spec"), ["containers", "nodeSelector"])
        self.assertEqual(keys(text, "spec", "template", "spec", "containers", 0), ["name", "image"])
        self.assertEqual(keys(text, "spec", "template", "spec", "nodeSelector"), ["a", "b"])

    def test_steps(self) -> None:
        """Objects on the paths of a JSON patch are sorted, too; the values of the patch are unchanged."""
        steps = [
            {"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": {"z": 1, "y": 2}},
            {"op": "test", "path": "/spec/strategy", "value": {}},
            {"op": "move", "from": "/metadata/labels", "path": "/metadata/annotations"},
        ]
        value = json.loads(json.dumps(DEPLOYMENT))
        value["spec"]["template"]["spec"]["containers"][0]["image"] = {"z": 1, "y": 2}
        text = stepwise_text(value, steps, self.node)
        self.assertEqual(keys(text, "spec", "template", "spec", "containers", 0), ["image", "name"])
        self.assertEqual(keys(text, "spec", "template", "spec", "containers", 0, "image"), ["z", "y"])
        self.assertEqual(keys(text, "spec", "strategy", "rollingUpdate"), ["maxSurge", "maxUnavailable"])

    def test_ends_of_lists(self) -> None:
        """Path tokens of lists that are no numbers, or out of range, are harmless."""
        for place in ("-", "-1", "7", "x"):
            steps = [{"op": "add", "path": f"/spec/template/spec/containers/{place}", "value": {"name": "d"}}]
            self.assertEqual(json.loads(stepwise_text(DEPLOYMENT, steps, self.node)), DEPLOYMENT)

    def test_custom(self) -> None:
        """All keys of custom resources are sorted; HTML characters are escaped."""
        text = merged_text({"b": {"d": "<&>", "c": 2}, "a": 1}, {"a": 1}, None)
        self.assertEqual(text, '{"a":1,"b":{"c":2,"d":"\\u003c\\u0026\\u003e"}}')
        self.assertEqual(stepwise_text({"b": 1, "a": 2}, [], None), '{"a":2,"b":1}')
