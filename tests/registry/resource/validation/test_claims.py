"""Tests for L{kubetwist.registry.resource.validation.claims}."""

from __future__ import annotations

from typing import Any, ClassVar

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.quantity import Quantity
from kubetwist.registry.generic.validation.fields import Causes
from kubetwist.registry.resource.validation import claims as rules
from kubetwist.registry.resource.validation import deviceclasses
from kubetwist.registry.resource.validation import slices as resourceslices
from kubetwist.registry.resource.validation.capacity import validate_request_policy
from kubetwist.registry.strategies import strategy_for
from tests.registry.apps.test_validation import status_problems
from tests.registry.strategytools import change_problems, problems

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


class DeviceClaimTests(SynchronousTestCase):
    """Tests for claims of devices."""

    RESULT: ClassVar = {"request": "g", "driver": "d.x", "pool": "p", "device": "a"}
    REQUEST: ClassVar = {"name": "g", "exactly": {"deviceClassName": "c"}}

    def claim(self, **devices: Any) -> list[str]:
        """What is wrong with a claim."""
        return problems("resource.k8s.io", "ResourceClaim", spec={"devices": {"requests": [self.REQUEST], **devices}})

    def status(self, old: Any, new: Any) -> list[str]:
        """What is wrong with a change of a claim's status."""
        spec = {"devices": {"requests": [self.REQUEST]}}
        return status_problems("resource.k8s.io", "ResourceClaim", old, new, spec=spec)

    def test_too_many(self) -> None:
        """Of a list that is too long, nothing else is told."""
        self.assertEqual(
            self.claim(requests=[{}] * 33), ["spec.devices.requests: Too many: 33: must have at most 32 items"]
        )
        self.assertEqual(
            self.claim(config=[{}] * 33), ["spec.devices.config: Too many: 33: must have at most 32 items"]
        )

    def test_duplicates(self) -> None:
        """What is there twice is told after what is wrong with each."""
        constraint = {"requests": ["g", "g", "h"], "matchAttribute": "x.y/z"}
        path = "spec.devices.constraints[0].requests"
        self.assertEqual(
            self.claim(constraints=[constraint]),
            [
                f'{path}[2]: Invalid value: "h": must be the name of a request in the claim or the name of a request '
                "and a subrequest separated by '/'",
                f'{path}[1]: Duplicate value: "g"',
            ],
        )

    def test_long_parameters(self) -> None:
        """Configuration is not long, unless it was before."""
        config = [{"opaque": {"driver": "d.x", "parameters": {"a": "x" * 10240}}}]
        text = "config[0].opaque.parameters: Too long: may not be more than 10240 bytes"
        self.assertEqual(self.claim(config=config), [f"spec.devices.{text}"])
        old, new = {"spec": {}}, {"spec": {"config": config}}
        self.assertEqual(change_problems("resource.k8s.io", "DeviceClass", old, new), [f"spec.{text}"])
        self.assertEqual(change_problems("resource.k8s.io", "DeviceClass", new, new), [])

    def test_metadata_of_templates(self) -> None:
        """Claims get labels and annotations from a template, and nothing else."""
        metadata = {"name": "x", "annotations": {"a b": ""}, "labels": {"a": "b c"}}
        found = problems("resource.k8s.io", "ResourceClaimTemplate", spec={"metadata": metadata})
        self.assertEqual(
            [text.partition(":")[0] for text in found],
            ["spec.metadata.annotations", "spec.metadata.labels", "spec.metadata.name"],
        )
        self.assertEqual(found[-1], "spec.metadata.name: Forbidden: cannot be set")

    def test_allocation(self) -> None:
        """What is allocated: shares, conditions, configuration and nodes."""
        result = {**self.RESULT, "shareID": "X", "bindingConditions": ["a"]}
        config = {"source": "FromAfar", "requests": ["h"], "opaque": {"driver": "d.x", "parameters": {}}}
        allocation = {"devices": {"results": [result], "config": [config, {}]}, "nodeSelector": {}}
        path = "status.allocation.devices"
        reference = (
            "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
        )
        self.assertEqual(
            self.status({}, {"allocation": allocation}),
            [
                f"{path}.results[0].bindingFailureConditions: Invalid value: null: bindingFailureConditions are "
                "required to use bindingConditions",
                f'{path}.results[0].shareID: Invalid value: "X": uid must be in RFC 4122 normalized form, '
                "`xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal characters",
                f'{path}.config[0].source: Unsupported value: "FromAfar": supported values: "FromClaim", "FromClass"',
                f'{path}.config[0].requests[0]: Invalid value: "h": {reference}',
                f"{path}.config[1].source: Required value",
                f"{path}.config[1].opaque: Required value",
                "status.allocation.nodeSelector.nodeSelectorTerms: Required value: must have at least one node "
                "selector term",
            ],
        )

    def test_states_of_devices(self) -> None:
        """What drivers say is about devices of the claim, and goes with them."""
        state = {name: self.RESULT[name] for name in ("driver", "pool", "device")}
        allocation = {"devices": {"results": [self.RESULT]}}
        given = {"allocation": allocation, "devices": [state]}
        self.assertEqual(self.status({}, given), [])
        self.assertEqual(self.status(given, {"devices": [state]}), [])
        ips = ["1.2.3.4/8", "1.2.3.4/8", "1.2.3.4", "FE80::1/64"]
        network = {"interfaceName": "i" * 257, "hardwareAddress": "h" * 129, "ips": ips}
        bad = {**state, "device": "b", "conditions": [{}] * 9, "data": 1, "networkData": network}
        found = self.status({}, {"allocation": allocation, "devices": [bad, bad]})
        self.assertEqual(
            found[:2],
            [
                'status.devices[0]: Invalid value: {"Driver":"d.x","Pool":"p","Device":"b","ShareID":""}: must be an '
                "allocated device in the claim",
                "status.devices[0].conditions: Too many: 9: must have at most 8 items",
            ],
        )
        self.assertEqual(
            [text for text in found if "[0].data" in text or "[0].networkData" in text],
            [
                'status.devices[0].data: Invalid value: "<value omitted>": must be a valid JSON object',
                "status.devices[0].networkData.interfaceName: Too long: may not be more than 256 bytes",
                "status.devices[0].networkData.hardwareAddress: Too long: may not be more than 128 bytes",
                'status.devices[0].networkData.ips[2]: Invalid value: "1.2.3.4": must be a valid address in CIDR form, '
                "(e.g. 10.9.8.7/24 or 2001:db8::1/64)",
                'status.devices[0].networkData.ips[3]: Invalid value: "FE80::1/64": must be in canonical form '
                '("fe80::1/64")',
                'status.devices[0].networkData.ips[1]: Duplicate value: "1.2.3.4/8"',
            ],
        )
        self.assertIn("status.devices[1]: Duplicate value", found[-1])
