"""Tests for L{kubetwist.registry.resource.validation.claims}."""

from __future__ import annotations

from typing import Any, ClassVar

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.resource.validation import claims as rules
from tests.registry.apps.test_validation import status_problems
from tests.registry.resource.validation.devices import fields
from tests.registry.strategytools import change_problems, problems


def claim(*requests: Any, status: Any = None, meta: Any = None, **devices: Any) -> dict[str, Any]:
    """Return a claim."""
    return {
        "metadata": meta or {},
        "spec": {"devices": {"requests": list(requests), **devices}},
        "status": status or {},
    }


def request(name: str = "gpu", **fields: Any) -> dict[str, Any]:
    """Return a request."""
    exactly = {"deviceClassName": "gpu.example.com", "allocationMode": "ExactCount", "count": 1, **fields}
    return {"name": name, "exactly": exactly}


class ClaimTests(SynchronousTestCase):
    """Tests for the validation of claims."""

    def test_valid(self) -> None:
        """A claim requests devices, or one of several alternatives."""
        either = {"name": "any", "firstAvailable": [{**request()["exactly"], "name": "big"}]}
        constraint = {"requests": ["gpu", "any/big"], "matchAttribute": "example.com/numa"}
        self.assertEqual(rules.validate_claim(claim(request(), either, constraints=[constraint])), [])

    def test_requests(self) -> None:
        """A request is exact or has alternatives, with a class and a count or all devices; names are unique."""
        self.assertEqual(fields(rules.validate_claim(claim({"name": "g"}))), ["spec.devices.requests[0]"])
        both = {**request("b"), "firstAvailable": [{"name": "x"}]}
        self.assertEqual(fields(rules.validate_claim(claim(both))), ["spec.devices.requests[0]"])
        bad = request("c", deviceClassName="", count=0)
        path = "spec.devices.requests[0].exactly"
        self.assertEqual(fields(rules.validate_claim(claim(bad))), [f"{path}.deviceClassName", f"{path}.count"])
        every = request("d", allocationMode="All", count=2)
        self.assertEqual(fields(rules.validate_claim(claim(every))), [f"{path}.count"])
        self.assertEqual(fields(rules.validate_claim(claim(request(), request()))), ["spec.devices.requests[1]"])

    def test_references(self) -> None:
        """Constraints refer to existing requests, and to an attribute with its domain."""
        constraints = [{"requests": ["nope"], "matchAttribute": "numa"}, {}]
        self.assertEqual(
            fields(rules.validate_claim(claim(request(), constraints=constraints))),
            [
                "spec.devices.constraints[0].requests[0]",
                "spec.devices.constraints[0].matchAttribute",
                "spec.devices.constraints[1]",
            ],
        )

    def test_update(self) -> None:
        """The spec is immutable."""
        self.assertEqual(rules.validate_claim_update(claim(request()), claim(request())), [])
        self.assertEqual(fields(rules.validate_claim_update(claim(request("a")), claim(request()))), ["spec"])

    def test_status(self) -> None:
        """Only an allocated claim can be reserved, and an allocation is immutable."""
        user = {"resource": "pods", "name": "p", "uid": "1"}
        reserved = claim(request(), status={"reservedFor": [user]})
        self.assertEqual(fields(rules.validate_claim_status_update(reserved, claim(request()))), ["status.reservedFor"])
        result = {"request": "gpu", "driver": "d.example.com", "pool": "p", "device": "x"}
        allocation = {"devices": {"results": [result]}}
        given = claim(request(), status={"reservedFor": [user], "allocation": allocation})
        self.assertEqual(rules.validate_claim_status_update(given, claim(request())), [])
        other = claim(request(), status={"allocation": {"devices": {"results": [{**result, "device": "y"}]}}})
        self.assertEqual(fields(rules.validate_claim_status_update(other, given)), ["status.allocation"])
        ending = {**given, "metadata": {"deletionTimestamp": "now"}}
        unreserved = claim(request(), status={"allocation": allocation})
        self.assertEqual(fields(rules.validate_claim_status_update(ending, unreserved)), ["status.reservedFor"])


class DeviceClaimTests(SynchronousTestCase):
    """Tests for claims of devices."""

    RESULT: ClassVar = {"request": "g", "driver": "d.x", "pool": "p", "device": "a"}
    REQUEST: ClassVar = {"name": "g", "exactly": {"deviceClassName": "c"}}

    def claim(self, **devices: Any) -> list[str]:
        """Return the errors of a claim."""
        return problems("resource.k8s.io", "ResourceClaim", spec={"devices": {"requests": [self.REQUEST], **devices}})

    def status(self, old: Any, new: Any) -> list[str]:
        """Return the errors of a status update."""
        spec = {"devices": {"requests": [self.REQUEST]}}
        return status_problems("resource.k8s.io", "ResourceClaim", old, new, spec=spec)

    def test_too_many(self) -> None:
        """A list that is too long has no further errors."""
        self.assertEqual(
            self.claim(requests=[{}] * 33), ["spec.devices.requests: Too many: 33: must have at most 32 items"]
        )
        self.assertEqual(
            self.claim(config=[{}] * 33), ["spec.devices.config: Too many: 33: must have at most 32 items"]
        )

    def test_duplicates(self) -> None:
        """Errors of duplicates follow the errors of the items."""
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
        """The size of configuration is limited, except for stored configuration."""
        config = [{"opaque": {"driver": "d.x", "parameters": {"a": "x" * 10240}}}]
        text = "config[0].opaque.parameters: Too long: may not be more than 10240 bytes"
        self.assertEqual(self.claim(config=config), [f"spec.devices.{text}"])
        old, new = {"spec": {}}, {"spec": {"config": config}}
        self.assertEqual(change_problems("resource.k8s.io", "DeviceClass", old, new), [f"spec.{text}"])
        self.assertEqual(change_problems("resource.k8s.io", "DeviceClass", new, new), [])

    def test_metadata_of_templates(self) -> None:
        """Templates have only labels and annotations for claims."""
        metadata = {"name": "x", "annotations": {"a b": ""}, "labels": {"a": "b c"}}
        errors = problems("resource.k8s.io", "ResourceClaimTemplate", spec={"metadata": metadata})
        self.assertEqual(
            [text.partition(":")[0] for text in errors],
            ["spec.metadata.annotations", "spec.metadata.labels", "spec.metadata.name"],
        )
        self.assertEqual(errors[-1], "spec.metadata.name: Forbidden: cannot be set")

    def test_allocation(self) -> None:
        """Shares, conditions, configuration and nodes of an allocation are validated."""
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
        """The status of devices refers to allocated devices, and is removed with them."""
        state = {name: self.RESULT[name] for name in ("driver", "pool", "device")}
        allocation = {"devices": {"results": [self.RESULT]}}
        given = {"allocation": allocation, "devices": [state]}
        self.assertEqual(self.status({}, given), [])
        self.assertEqual(self.status(given, {"devices": [state]}), [])
        ips = ["1.2.3.4/8", "1.2.3.4/8", "1.2.3.4", "FE80::1/64"]
        network = {"interfaceName": "i" * 257, "hardwareAddress": "h" * 129, "ips": ips}
        bad = {**state, "device": "b", "conditions": [{}] * 9, "data": 1, "networkData": network}
        result = self.status({}, {"allocation": allocation, "devices": [bad, bad]})
        self.assertEqual(
            result[:2],
            [
                'status.devices[0]: Invalid value: {"Driver":"d.x","Pool":"p","Device":"b","ShareID":""}: must be an '
                "allocated device in the claim",
                "status.devices[0].conditions: Too many: 9: must have at most 8 items",
            ],
        )
        self.assertEqual(
            [text for text in result if "[0].data" in text or "[0].networkData" in text],
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
        self.assertIn("status.devices[1]: Duplicate value", result[-1])
