"""Tests for L{kubetwist.registry.validation.dynamicresources}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.validation import dynamicresources as rules
from kubetwist.registry.validation import resourceslices

POOL = {"name": "p", "generation": 1, "resourceSliceCount": 1}


def fields(causes: Any) -> list[str]:
    """Which fields are wrong."""
    return [cause.field for cause in causes]


def claim(*requests: Any, status: Any = None, meta: Any = None, **devices: Any) -> dict[str, Any]:
    """A claim."""
    return {
        "metadata": meta or {},
        "spec": {"devices": {"requests": list(requests), **devices}},
        "status": status or {},
    }


def wanted(name: str = "gpu", **fields: Any) -> dict[str, Any]:
    """A request."""
    exactly = {"deviceClassName": "gpu.example.com", "allocationMode": "ExactCount", "count": 1, **fields}
    return {"name": name, "exactly": exactly}


class ClassTests(SynchronousTestCase):
    """Tests for L{rules.validate_device_class}."""

    def test_good(self) -> None:
        """A class has selectors, configuration, and a resource that stands for it."""
        config = {"opaque": {"driver": "gpu.example.com", "parameters": {"a": 1}}}
        spec = {
            "selectors": [{"cel": {"expression": "true"}}],
            "config": [config],
            "extendedResourceName": "example.com/gpu",
        }
        self.assertEqual(rules.validate_device_class({"spec": spec}), [])

    def test_bad(self) -> None:
        """Selectors and configurations say something, and resources are not Kubernetes' own."""
        config = [{"opaque": {"driver": "Bad Driver", "parameters": "str"}}, {}, {"opaque": {"driver": "d"}}]
        spec = {"selectors": [{}], "config": config, "extendedResourceName": "bad name"}
        self.assertEqual(
            fields(rules.validate_device_class({"spec": spec})),
            [
                "spec.selectors[0].cel",
                "spec.config[0].opaque.driver",
                "spec.config[0].opaque.parameters",
                "spec.config[1].opaque",
                "spec.config[2].opaque.parameters",
                "spec.extendedResourceName",
            ],
        )


class ClaimTests(SynchronousTestCase):
    """Tests for the rules of claims."""

    def test_good(self) -> None:
        """A claim asks for devices, or for one of several kinds of them."""
        either = {"name": "any", "firstAvailable": [{**wanted()["exactly"], "name": "big"}]}
        constraint = {"requests": ["gpu", "any/big"], "matchAttribute": "example.com/numa"}
        self.assertEqual(rules.validate_claim(claim(wanted(), either, constraints=[constraint])), [])

    def test_requests(self) -> None:
        """A request is one of the two, of a class, for some or all; names are not repeated."""
        self.assertEqual(fields(rules.validate_claim(claim({"name": "g"}))), ["spec.devices.requests[0]"])
        both = {**wanted("b"), "firstAvailable": [{"name": "x"}]}
        self.assertEqual(fields(rules.validate_claim(claim(both))), ["spec.devices.requests[0]"])
        bad = wanted("c", deviceClassName="", count=0)
        path = "spec.devices.requests[0].exactly"
        self.assertEqual(fields(rules.validate_claim(claim(bad))), [f"{path}.deviceClassName", f"{path}.count"])
        every = wanted("d", allocationMode="All", count=2)
        self.assertEqual(fields(rules.validate_claim(claim(every))), [f"{path}.count"])
        self.assertEqual(fields(rules.validate_claim(claim(wanted(), wanted()))), ["spec.devices.requests[1]"])

    def test_references(self) -> None:
        """Constraints are about requests that are there, and about an attribute with its domain."""
        constraints = [{"requests": ["nope"], "matchAttribute": "numa"}, {}]
        self.assertEqual(
            fields(rules.validate_claim(claim(wanted(), constraints=constraints))),
            [
                "spec.devices.constraints[0].requests[0]",
                "spec.devices.constraints[0].matchAttribute",
                "spec.devices.constraints[1]",
            ],
        )

    def test_update(self) -> None:
        """What is claimed stays."""
        self.assertEqual(rules.validate_claim_update(claim(wanted()), claim(wanted())), [])
        self.assertEqual(fields(rules.validate_claim_update(claim(wanted("a")), claim(wanted()))), ["spec"])

    def test_status(self) -> None:
        """Only what is allocated can be reserved, and an allocation is not exchanged."""
        user = {"resource": "pods", "name": "p", "uid": "1"}
        reserved = claim(wanted(), status={"reservedFor": [user]})
        self.assertEqual(fields(rules.validate_claim_status_update(reserved, claim(wanted()))), ["status.reservedFor"])
        result = {"request": "gpu", "driver": "d.example.com", "pool": "p", "device": "x"}
        allocation = {"devices": {"results": [result]}}
        given = claim(wanted(), status={"reservedFor": [user], "allocation": allocation})
        self.assertEqual(rules.validate_claim_status_update(given, claim(wanted())), [])
        other = claim(wanted(), status={"allocation": {"devices": {"results": [{**result, "device": "y"}]}}})
        self.assertEqual(fields(rules.validate_claim_status_update(other, given)), ["status.allocation"])
        ending = {**given, "metadata": {"deletionTimestamp": "now"}}
        unreserved = claim(wanted(), status={"allocation": allocation})
        self.assertEqual(fields(rules.validate_claim_status_update(ending, unreserved)), ["status.reservedFor"])


class SliceTests(SynchronousTestCase):
    """Tests for the rules of slices."""

    def test_good(self) -> None:
        """A slice is of a driver, of a pool, and on some nodes."""
        attributes = {"model": {"string": "a"}, "example.com/ok": {"bool": False}, "v": {"version": "1.2.3-rc.1"}}
        spec = {"driver": "d.example.com", "nodeName": "n", "pool": POOL}
        device = {"name": "d", "attributes": attributes, "capacity": {"memory": {"value": "1Gi"}}}
        self.assertEqual(resourceslices.validate_slice({"spec": {**spec, "devices": [device]}}), [])

    def test_bad(self) -> None:
        """Names are names, counts count, and nodes are chosen in one way."""
        spec: dict[str, Any] = {"driver": "Bad_Driver", "pool": {"generation": -1}}
        spec["devices"] = [{"name": "Dev"}, {"name": "d"}, {"name": "d"}]
        self.assertEqual(
            fields(resourceslices.validate_slice({"spec": spec})),
            [
                "spec.driver",
                "spec.pool.name",
                "spec.pool.resourceSliceCount",
                "spec.pool.generation",
                "spec",
                "spec.devices[0].name",
                "spec.devices[2]",
            ],
        )

    def test_attributes(self) -> None:
        """An attribute has a proper name and one value."""
        devices = [{"name": "d", "attributes": {"bad key": {"int": 1}, "v": {"version": "one"}, "w": {}}}]
        spec = {"driver": "d.example.com", "nodeName": "n", "allNodes": True, "pool": POOL, "devices": devices}
        causes = resourceslices.validate_slice({"spec": spec})
        path = "spec.devices[0].attributes"
        self.assertEqual(fields(causes), ["spec", path, f"{path}[v].version", f"{path}[w]"])
        self.assertIn('"{`nodeName`, `allNodes`}"', causes[0].message)

    def test_update(self) -> None:
        """Pool, driver and node stay; all else may change."""
        spec = {"driver": "d.example.com", "nodeName": "n", "pool": POOL}
        other = {"driver": "e.example.com", "nodeName": "m", "pool": {**POOL, "name": "q", "generation": 2}}
        self.assertEqual(
            fields(resourceslices.validate_slice_update({"spec": other}, {"spec": spec})),
            ["spec.pool.name", "spec.driver", "spec.nodeName"],
        )
        newer = {**spec, "pool": {**POOL, "generation": 2}}
        self.assertEqual(resourceslices.validate_slice_update({"spec": newer}, {"spec": spec}), [])
