"""Tests for L{kubetwist.registry.resource.validation.claims}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.quantity import Quantity
from kubetwist.registry.generic.validation.fields import Causes
from kubetwist.registry.resource.validation import claims as rules
from kubetwist.registry.resource.validation import deviceclasses
from kubetwist.registry.resource.validation import slices as resourceslices
from kubetwist.registry.resource.validation.capacity import validate_request_policy
from kubetwist.registry.strategies import strategy_for

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
        self.assertEqual(deviceclasses.validate_device_class({"spec": spec}), [])

    def test_bad(self) -> None:
        """Selectors and configurations say something, and resources are not Kubernetes' own."""
        config = [{"opaque": {"driver": "Bad Driver", "parameters": "str"}}, {}, {"opaque": {"driver": "d"}}]
        spec = {"selectors": [{}], "config": config, "extendedResourceName": "bad name"}
        self.assertEqual(
            fields(deviceclasses.validate_device_class({"spec": spec})),
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

    def test_tolerations(self) -> None:
        """What is tolerated of allocated devices is by default of one value, as what is asked for."""
        strategy = strategy_for("resource.k8s.io", "ResourceClaim")
        results = [{"tolerations": [{"key": "k"}, {"key": "k", "operator": "Exists"}]}]
        obj: dict[str, Any] = {"spec": {}, "status": {"allocation": {"devices": {"results": results}}}}
        strategy.default(obj)
        self.assertEqual([one["operator"] for one in results[0]["tolerations"]], ["Equal", "Exists"])

    def test_period_of_templates(self) -> None:
        """Templates have no period of grace, not even an empty one."""
        metadata = {"deletionGracePeriodSeconds": 0, "generation": 0, "uid": "u"}
        causes = rules.validate_claim_template({"spec": {"metadata": metadata, "spec": {}}})
        self.assertEqual(
            [cause.field for cause in causes], ["spec.metadata.uID", "spec.metadata.deletionGracePeriodSeconds"]
        )

    def test_closed_gates(self) -> None:
        """Attributes of several values, and what is taken of nodes, are not stored; taints have a time."""
        strategy = strategy_for("resource.k8s.io", "ResourceSlice")
        device: dict[str, Any] = {"name": "d", "attributes": {"a": {"int": 1, "ints": [1]}}, "taints": [{"key": "k"}]}
        slice_: dict[str, Any] = {"spec": {"devices": [{**device, "nodeAllocatableResourceMappings": {"cpu": {}}}]}}
        strategy.default(slice_)
        strategy.prepare_for_create(slice_)
        (kept,) = slice_["spec"]["devices"]
        self.assertEqual(kept["attributes"], {"a": {"int": 1}})
        self.assertNotIn("nodeAllocatableResourceMappings", kept)
        self.assertIn("timeAdded", kept["taints"][0])


class PolicyTests(SynchronousTestCase):
    """Tests for what claims may ask for of a capacity."""

    def problems(self, **policy: Any) -> list[str]:
        """What is wrong with a policy for a device with 10Gi."""
        causes: Causes = []
        validate_request_policy(policy, Quantity.parse("10Gi"), "p", causes)
        return [str(cause) for cause in causes]

    def test_good(self) -> None:
        """A choice, a range, or neither."""
        self.assertEqual(self.problems(), [])
        self.assertEqual(self.problems(default="1Gi", validValues=["1Gi", "2Gi"]), [])
        self.assertEqual(self.problems(default="3Gi", validRange={"min": "1Gi", "max": "9Gi", "step": "2Gi"}), [])

    def test_both(self) -> None:
        """There is one of them."""
        text = 'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time'
        self.assertEqual(self.problems(validValues=["1Gi"], validRange={}), [f"p: Forbidden: {text}"])

    def test_default(self) -> None:
        """There is an amount for claims that name none."""
        for name, value in (("validValues", ["1Gi"]), ("validRange", {})):
            self.assertEqual(
                self.problems(**{name: value}), [f"p.default: Required value: required when {name} is defined"]
            )

    def test_values(self) -> None:
        """Values are in order, are no more than there is, and have the default among them."""
        self.assertEqual(
            self.problems(default="3Gi", validValues=["2Gi", "1Gi", "20Gi", "20Gi"]),
            [
                'p.validValues[1]: Invalid value: "1Gi": values must be sorted in ascending order',
                'p.validValues[2]: Invalid value: "20Gi": option is larger than capacity value: 10Gi',
                'p.validValues[3]: Invalid value: "20Gi": option is larger than capacity value: 10Gi',
                'p.validValues[3]: Duplicate value: "21474836480"',
                'p.validValues: Invalid value: "3Gi": default value is not valid according to the requestPolicy',
            ],
        )
        self.assertEqual(
            self.problems(default="1", validValues=["1"] * 11),
            [
                "p.validValues: Too many: 11: must have at most 10 items",
                'p.validValues: Invalid value: "1": default value is not valid according to the requestPolicy',
            ],
        )

    def test_range(self) -> None:
        """A range has a lower end, is within what there is, and holds the default at one of its steps."""
        self.assertEqual(
            self.problems(default="1", validRange={}),
            ["p.validRange.min: Required value: required when validRange is defined"],
        )
        self.assertEqual(
            self.problems(default="1Gi", validRange={"min": "12Gi", "max": "11Gi"}),
            [
                'p.validRange.min: Invalid value: "12Gi": min is larger than capacity value: 10Gi',
                'p.validRange.min: Invalid value: "1Gi": default is less than min: 12Gi',
                'p.validRange.max: Invalid value: "12Gi": min is larger than max: 11Gi',
                'p.validRange.max: Invalid value: "11Gi": max is larger than capacity value: 10Gi',
            ],
        )
        self.assertEqual(
            self.problems(default="5Gi", validRange={"min": "1Gi", "max": "4Gi", "step": "0"}),
            ['p.validRange.max: Invalid value: "5Gi": default is more than max: 4Gi'],
        )
        self.assertEqual(
            self.problems(default="2Gi", validRange={"min": "1Gi", "max": "4Gi", "step": "20Gi"}),
            [
                'p.validRange.step: Invalid value: "20Gi": one step 21Gi is larger than capacity value: 10Gi',
                'p.validRange.step: Invalid value: "2Gi": value is not a multiple of a given step (20Gi) from (1Gi)',
                'p.validRange.step: Invalid value: "4Gi": value is not a multiple of a given step (20Gi) from (1Gi)',
            ],
        )
