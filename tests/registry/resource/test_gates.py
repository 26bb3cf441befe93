"""Tests of feature gates of resource.k8s.io."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.featuregates import Release
from tests.registry.gatetools import created, gated, positions, updated, with_status

GROUP = "resource.k8s.io"


def request(**fields: Any) -> dict[str, Any]:
    """Return a spec of a claim with one request."""
    return {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c", **fields}}]}}


def device(**fields: Any) -> dict[str, Any]:
    """Return a spec of a slice with one device."""
    return {"driver": "d", "pool": {"name": "p"}, "devices": [{"name": "d0", **fields}]}


def results(**fields: Any) -> dict[str, Any]:
    """Return a status with one allocated device."""
    return {"allocation": {"devices": {"results": [{"driver": "d", "pool": "p", "device": "d0", **fields}]}}}


#: The gates of claims: gate, and specs with its field.
CLAIMS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("DRAPrioritizedList", {"devices": {"requests": [{"name": "r", "firstAvailable": [{"name": "s"}]}]}}),
    ("DRADeviceTaints", request(tolerations=[{"operator": "Exists"}])),
    ("DRAAdminAccess", request(adminAccess=True)),
    ("DRAConsumableCapacity", request(capacity={"requests": {"memory": "1Gi"}})),
    ("DRAConsumableCapacity", {"devices": {"requests": [], "constraints": [{"distinctAttribute": "d/a"}]}}),
    ("DRADerivedAttributes", request(derivedAttributes=[{"name": "a"}])),
)

#: The gates of the status of claims.
STATUSES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("DRAResourceClaimDeviceStatus", {**results(), "devices": [{"driver": "d", "pool": "p", "device": "d0"}]}),
    ("DRAAdminAccess", results(adminAccess=True)),
    ("DRAConsumableCapacity", results(shareID="s")),
    ("DRAConsumableCapacity", results(consumedCapacity={"memory": "1Gi"})),
    ("DRADeviceBindingConditions", results(bindingConditions=["a"])),
    ("DRAOptionalNodeOperations", results(skipNodeOperations=["NodePrepareResources"])),
)

#: The gates of slices.
SLICES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("DRADeviceTaints", device(taints=[{"key": "a", "effect": "NoSchedule"}])),
    ("DRAPartitionableDevices", device(consumesCounters=[{"counterSet": "c"}])),
    ("DRAPartitionableDevices", {**device(), "sharedCounters": [{"name": "c"}]}),
    ("DRAPartitionableDevices", {**device(allNodes=True), "perDeviceNodeSelection": True}),
    ("DRADeviceBindingConditions", device(bindsToNode=True)),
    ("DRAConsumableCapacity", device(allowMultipleAllocations=True)),
    ("DRAConsumableCapacity", device(capacity={"c": {"value": "1", "requestPolicy": {"default": "1"}}})),
    ("DRANodeAllocatableResources", device(nodeAllocatableResourceMappings={"cpu": {"quantity": "1"}})),
    ("DRAListTypeAttributes", device(attributes={"a": {"ints": [1]}})),
    ("DRAPartitionableDevicesType", {**device(), "partitionTypeAttribute": "d/a"}),
    ("DRADeviceCompatibilityGroups", device(consumesCounters=[{"counterSet": "c", "compatibilityGroups": ["g"]}])),
    ("DRAOptionalNodeOperations", {**device(), "skipNodeOperations": ["NodePrepareResources"]}),
)


RELEASES: tuple[Release, ...] = tuple((1, minor) for minor in range(32, 38))


class GateTests(SynchronousTestCase):
    """Fields of each gate in both positions."""

    def check(self, kind: str, gate: str, spec: dict[str, Any]) -> None:
        """Check that a field is kept if its gate is enabled or it is in use, and dropped otherwise."""
        on, off = positions(GROUP, kind, gate, RELEASES)
        used, unused = created(on, spec=spec), created(off, spec=spec)
        self.assertNotEqual(used["spec"], unused["spec"], gate)
        self.assertEqual(updated(off, used, spec=spec)["spec"], used["spec"], gate)
        self.assertEqual(updated(off, unused, spec=spec)["spec"], unused["spec"], gate)
        self.assertEqual(updated(on, unused, spec=spec)["spec"], used["spec"], gate)

    def test_claims(self) -> None:
        """Fields of claims and of their templates."""
        for gate, spec in CLAIMS:
            self.check("ResourceClaim", gate, spec)
            self.check("ResourceClaimTemplate", gate, {"spec": spec})

    def test_slices(self) -> None:
        """Fields of slices."""
        for gate, spec in SLICES:
            self.check("ResourceSlice", gate, spec)

    def test_classes(self) -> None:
        """The name of an extended resource."""
        self.check("DeviceClass", "DRAExtendedResource", {"extendedResourceName": "d/gpu"})

    def test_status(self) -> None:
        """Fields of the status of claims."""
        for gate, status in STATUSES:
            on, off = positions(GROUP, "ResourceClaim", gate, RELEASES)
            claim = created(on, spec=request())
            used, unused = with_status(on, claim, status), with_status(off, claim, status)
            self.assertEqual(used["status"], {**status}, gate)
            self.assertNotEqual(unused["status"], used["status"], gate)
            self.assertEqual(with_status(off, used, status)["status"], used["status"], gate)

    def test_two_gates(self) -> None:
        """Binding conditions also need the gate of the status of devices."""
        gates = {"DRADeviceBindingConditions": True, "DRAResourceClaimDeviceStatus": False}
        spec = device(bindingConditions=["a"])
        unused = created(gated(GROUP, "ResourceSlice", (1, 34), **gates), spec=spec)
        self.assertNotIn("bindingConditions", unused["spec"]["devices"][0])
        claims = gated(GROUP, "ResourceClaim", (1, 34), **gates)
        status = with_status(claims, created(claims, spec=request()), results(bindingConditions=["a"]))["status"]
        self.assertEqual(status, results())

    def test_older_form(self) -> None:
        """In v1beta1, the fields are in the request, and in C{basic} of devices."""
        claims = gated(GROUP, "ResourceClaim", (1, 32))
        spec = {"devices": {"requests": [{"name": "r", "deviceClassName": "c", "adminAccess": True}]}}
        self.assertNotIn("adminAccess", created(claims, spec=spec)["spec"]["devices"]["requests"][0])
        slices = gated(GROUP, "ResourceSlice", (1, 33))
        spec = {"driver": "d", "devices": [{"name": "d0", "basic": {"taints": [{"key": "a", "effect": "NoExecute"}]}}]}
        self.assertEqual(created(slices, spec=spec)["spec"]["devices"][0]["basic"], {})
