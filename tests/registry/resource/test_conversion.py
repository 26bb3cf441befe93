"""Tests for L{kubetwist.registry.resource.conversion}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import GroupVersionKind
from kubetwist.registry.generic.conversion import convert, only_renames
from kubetwist.registry.resource import KINDS


class DeviceTests(SynchronousTestCase):
    """Tests for dynamic resource allocation."""

    def gvk(self, version: str, kind: str) -> GroupVersionKind:
        """Return a kind in a version."""
        return GroupVersionKind(KINDS[0].group, version, kind)

    def test_requests(self) -> None:
        """The details of a request are in C{exactly} since v1beta2, in claims and in templates."""
        flat = [{"name": "r", "deviceClassName": "gpu", "count": 2}, {"name": "s", "firstAvailable": [{"name": "t"}]}]
        nested = [{"name": "r", "exactly": {"deviceClassName": "gpu", "count": 2}}, flat[1]]
        for kind, wrap in (
            ("ResourceClaim", lambda requests: {"spec": {"devices": {"requests": requests}}}),
            ("ResourceClaimTemplate", lambda requests: {"spec": {"spec": {"devices": {"requests": requests}}}}),
        ):
            old, new = self.gvk("v1beta1", kind), self.gvk("v1", kind)
            self.assertEqual(convert(wrap(flat), old, new)["spec"], wrap(nested)["spec"])
            self.assertEqual(convert(wrap(nested), new, old)["spec"], wrap(flat)["spec"])
            self.assertTrue(only_renames(self.gvk("v1beta2", kind), new))

    def test_claim_without_requests(self) -> None:
        """A claim without devices is converted."""
        old, new = self.gvk("v1beta1", "ResourceClaim"), self.gvk("v1", "ResourceClaim")
        self.assertEqual(convert({"spec": {}}, old, new)["spec"], {})
        self.assertEqual(convert({"spec": None}, old, new)["spec"], None)

    def test_devices(self) -> None:
        """Devices have no C{basic} since v1beta2, and v1alpha3 has plain capacities."""
        capacity = {"mem": {"value": "1Gi"}}
        flat = {"spec": {"devices": [{"name": "d", "capacity": capacity, "allNodes": True}]}}
        basic = {"spec": {"devices": [{"name": "d", "basic": {"capacity": capacity, "allNodes": True}}]}}
        bare = {"spec": {"devices": [{"name": "d", "basic": {"capacity": {"mem": "1Gi"}, "allNodes": True}}]}}
        shapes = {"v1": flat, "v1beta2": flat, "v1beta1": basic, "v1alpha3": bare}
        for source, obj in shapes.items():
            for target, expected in shapes.items():
                converted = convert(obj, self.gvk(source, "ResourceSlice"), self.gvk(target, "ResourceSlice"))
                self.assertEqual(converted["spec"], expected["spec"], f"{source} to {target}")
