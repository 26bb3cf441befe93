"""Tests of L{kubetwist.registry.generic.fieldmanager.scalehandler}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import GroupVersionKind, JSONObject
from kubetwist.registry.generic.fieldmanager.manager import (
    BuiltInVersionConverter,
    FieldManager,
)
from kubetwist.registry.generic.fieldmanager.scalehandler import (
    replicas_path,
    replicas_paths,
    to_parent,
    to_subresource,
)
from tests.registry.generic.fieldmanager.objects import (
    LATER,
    NOW,
    copied,
)
from tests.schema.release import definitions


class ScaleTests(SynchronousTestCase):
    """Tests of the mapping of entries between a resource and its scale."""

    PATHS = replicas_paths(["apps/v1"])

    def entry(self, manager: str, fields: Any, **parts: Any) -> JSONObject:
        """Return an entry of the main resource."""
        return {
            "manager": manager,
            "operation": "Apply",
            "apiVersion": "apps/v1",
            "time": NOW,
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": fields},
            **parts,
        }

    def test_to_subresource(self) -> None:
        """A scale contains the entries that own the replicas, with the field path of the scale."""
        entries = [
            self.entry("a", {"f:replicas": {}, "f:paused": {}}),
            self.entry("b", {"f:paused": {}}),
            self.entry("c", {"f:replicas": {}}, apiVersion="apps/v0"),
        ]
        [shown] = to_subresource(entries, self.PATHS)
        self.assertEqual(
            shown, {**entries[0], "apiVersion": "autoscaling/v1", "fieldsV1": {"f:spec": {"f:replicas": {}}}}
        )

    def test_changed_replicas(self) -> None:
        """A change of the replicas through the scale takes them from their owner, which keeps its other fields."""
        scales = FieldManager(
            GroupVersionKind("autoscaling", "v1", "Scale"),
            BuiltInVersionConverter(definitions(), {"autoscaling/v1": GroupVersionKind("autoscaling", "v1", "Scale")}),
            dict,
            subresource="scale",
        )
        entries = [self.entry("a", {"f:replicas": {}, "f:paused": {}}), self.entry("b", {"f:replicas": {}})]
        live = {"metadata": {"uid": "u", "managedFields": to_subresource(entries, self.PATHS)}, "spec": {"replicas": 1}}
        scale = {**copied(live), "spec": {"replicas": 2}}
        scales.update(live, scale, "hpa", LATER)
        found = to_parent(entries, scale["metadata"]["managedFields"], "apps/v1", self.PATHS)
        rest = self.entry("a", {"f:paused": {}})
        taken = self.entry("hpa", {"f:replicas": {}}, operation="Update", subresource="scale")
        del taken["time"]
        self.assertEqual(found, [rest, taken])

    def test_unchanged_replicas(self) -> None:
        """The entry of an applier whose replicas did not change stays."""
        entries = [self.entry("a", {"f:replicas": {}, "f:paused": {}})]
        self.assertEqual(to_parent(entries, to_subresource(entries, self.PATHS), "apps/v1", self.PATHS), entries)

    def test_path(self) -> None:
        """Custom resources specify the path to their replicas."""
        self.assertEqual(replicas_path(".spec.count"), ("f:spec", "f:count"))
