"""Tests for L{kubetwist.registry.resource.validation.slices}."""

from __future__ import annotations

from typing import Any, ClassVar

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.resource.validation import claims as rules
from kubetwist.registry.resource.validation import slices as resourceslices
from kubetwist.registry.strategies import strategy_for
from tests.registry.apps.test_validation import LABEL_RULE
from tests.registry.resource.validation.devices import fields
from tests.registry.strategytools import change_problems, problems


class DeviceTests(SynchronousTestCase):
    """Tests for devices in slices."""

    POOL: ClassVar = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    REQUEST: ClassVar = {"name": "g", "exactly": {"deviceClassName": "c"}}

    def claim_errors(self, **devices: Any) -> list[str]:
        """Return the errors of a claim."""
        return problems("resource.k8s.io", "ResourceClaim", spec={"devices": {"requests": [self.REQUEST], **devices}})

    def slice_spec(self, *devices: Any, **spec: Any) -> dict[str, Any]:
        """Return the spec of a slice."""
        spec = {"driver": "d.x", "pool": self.POOL, "nodeName": "n", **spec}
        return {"spec": {**spec, "devices": list(devices)} if devices else spec}

    def slice_errors(self, *devices: Any, **spec: Any) -> list[str]:
        """Return the errors of a slice."""
        return problems("resource.k8s.io", "ResourceSlice", **self.slice_spec(*devices, **spec))

    def test_names_of_attributes(self) -> None:
        """The domain and the identifier of an attribute are validated."""
        texts = [
            ("z", 'Invalid value: "z": a fully qualified name must be a domain and a name separated by a slash'),
            ("/z", 'Invalid value: "": the domain must not be empty'),
            ("x/", 'Invalid value: "": the name must not be empty'),
        ]
        for name, text in texts:
            result = self.claim_errors(constraints=[{"requests": ["g"], "matchAttribute": name}])
            self.assertEqual(result, [f"spec.devices.constraints[0].matchAttribute: {text}"])
        self.assertEqual(self.claim_errors(constraints=[{"requests": ["g"], "matchAttribute": "a/b/c"}]), [])

    def test_slice_update(self) -> None:
        """Immutable fields are reported first; taints may be unchanged."""
        taints = {"name": "a", "taints": [{"key": "k"}]}
        old, new = self.slice_spec(taints), self.slice_spec(taints, driver="e.x", allNodes=False)
        self.assertEqual(
            change_problems("resource.k8s.io", "ResourceSlice", old, new),
            [
                'spec.driver: Invalid value: "e.x": field is immutable',
                "spec.allNodes: Invalid value: false: must be either unset or set to true",
            ],
        )
        self.assertEqual(self.slice_errors(taints), ["spec.devices[0].taints[0].effect: Required value"])

    def test_nodes(self) -> None:
        """The node selector of a slice has one term, the node selector of a device may have several."""
        wrong = {"nodeSelectorTerms": []}
        path = "nodeSelector.nodeSelectorTerms"
        none = f"{path}: Required value: must have at least one node selector term"
        self.assertEqual(
            self.slice_errors(nodeName=None, nodeSelector=wrong),
            [f"spec.{none}", f"spec.{path}: Invalid value: []: must have exactly one node selector term"],
        )
        several = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}] * 2}
        self.assertEqual(
            self.slice_errors(
                {"name": "a", "nodeSelector": wrong},
                {"name": "b", "nodeSelector": several},
                {"name": "c", "nodeName": "", "allNodes": True},
                nodeName=None,
                perDeviceNodeSelection=True,
            ),
            [
                f"spec.devices[0].{none}",
                'spec.devices[2].nodeName: Invalid value: "": must not be empty',
            ],
        )

    def test_attributes(self) -> None:
        """An attribute has one value, and a version is semantic."""
        attributes = {"a": {"int": 1, "bool": True}, "b": {"version": "1.0.0-01"}, "c": {"version": "x" * 65}}
        path = "spec.devices[0].attributes"
        semver = "must be a string compatible with semver.org spec 2.0.0"
        self.assertEqual(
            self.slice_errors({"name": "a", "attributes": attributes}),
            [
                f'{path}[a]: Invalid value: {{"IntValue":1,"BoolValue":true,"StringValue":null,"VersionValue":null,'
                '"IntValues":null,"BoolValues":null,"StringValues":null,"VersionValues":null}: exactly one value must '
                "be specified",
                f'{path}[b].version: Invalid value: "1.0.0-01": {semver}',
                f'{path}[c].version: Invalid value: "{"x" * 65}": {semver}',
                f"{path}[c].version: Too long: may not be more than 64 bytes",
            ],
        )

    def test_device(self) -> None:
        """Taints, counters, policies and conditions of a device are validated."""
        device = {
            "name": "a",
            "capacity": {"m": {"value": "1", "requestPolicy": {}}},
            "taints": [{}] * 17,
            "consumesCounters": [{"counterSet": "", "counters": {"B": {"value": "1"}}}, {"counterSet": ""}],
            "bindingConditions": ["a", "a"],
            "bindingFailureConditions": ["a"],
        }
        path = "spec.devices[0]"
        self.assertEqual(
            self.slice_errors(device),
            [
                f"{path}.capacity[m].requestPolicy: Forbidden: allowMultipleAllocations must be true",
                f"{path}.taints: Too many: 17: must have at most 16 items",
                f"{path}.consumesCounters[0].counterSet: Required value",
                f'{path}.consumesCounters[0].counters: Invalid value: "B": {LABEL_RULE}',
                f"{path}.consumesCounters[1].counterSet: Required value",
                f"{path}.consumesCounters[1].counters: Required value",
                f'{path}.consumesCounters[1]: Duplicate value: ""',
                f'{path}.bindingConditions[1]: Duplicate value: "a"',
                f'{path}.bindingFailureConditions[0]: Invalid value: "a": bindingFailureConditions must not overlap '
                "with bindingConditions",
            ],
        )

    def test_counters(self) -> None:
        """Counter sets have names, and so have the counters."""
        many = {f"c{number}": {"value": "1"} for number in range(33)}
        sets = [{"name": "A"}, {"name": "b", "counters": many}, {"name": "b", "counters": {"x" * 64: {"value": "1"}}}]
        path = "spec.sharedCounters"
        result = self.slice_errors(sharedCounters=sets)
        self.assertEqual(
            result[:3],
            [
                f'{path}[0].name: Invalid value: "A": {LABEL_RULE}',
                f"{path}[0].counters: Required value",
                f"{path}[1].counters: Too many: 33: must have at most 32 items",
            ],
        )
        self.assertTrue(result[3].startswith(f'{path}[2].counters: Invalid value: "{"x" * 64}"'), result[3])
        self.assertEqual(result[-1], f'{path}[2]: Duplicate value: "b"')


POOL = {"name": "p", "generation": 1, "resourceSliceCount": 1}


class SliceTests(SynchronousTestCase):
    """Tests for the validation of slices."""

    def test_valid(self) -> None:
        """A slice has a driver, a pool and nodes."""
        attributes = {"model": {"string": "a"}, "example.com/ok": {"bool": False}, "v": {"version": "1.2.3-rc.1"}}
        spec = {"driver": "d.example.com", "nodeName": "n", "pool": POOL}
        device = {"name": "d", "attributes": attributes, "capacity": {"memory": {"value": "1Gi"}}}
        self.assertEqual(resourceslices.validate_slice({"spec": {**spec, "devices": [device]}}), [])

    def test_invalid(self) -> None:
        """Names, counts and the selection of nodes are validated."""
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
        """An attribute has a valid name and one value."""
        devices = [{"name": "d", "attributes": {"bad key": {"int": 1}, "v": {"version": "one"}, "w": {}}}]
        spec = {"driver": "d.example.com", "nodeName": "n", "allNodes": True, "pool": POOL, "devices": devices}
        errors = resourceslices.validate_slice({"spec": spec})
        path = "spec.devices[0].attributes"
        self.assertEqual(fields(errors), ["spec", path, f"{path}[v].version", f"{path}[w]"])
        self.assertIn('"{`nodeName`, `allNodes`}"', errors[0].message)

    def test_update(self) -> None:
        """Pool, driver and node are immutable; other fields may change."""
        spec = {"driver": "d.example.com", "nodeName": "n", "pool": POOL}
        other = {"driver": "e.example.com", "nodeName": "m", "pool": {**POOL, "name": "q", "generation": 2}}
        self.assertEqual(
            fields(resourceslices.validate_slice_update({"spec": other}, {"spec": spec})),
            ["spec.pool.name", "spec.driver", "spec.nodeName"],
        )
        newer = {**spec, "pool": {**POOL, "generation": 2}}
        self.assertEqual(resourceslices.validate_slice_update({"spec": newer}, {"spec": spec}), [])

    def test_tolerations(self) -> None:
        """The default operator of tolerations of allocated devices is Equal, as in requests."""
        strategy = strategy_for("resource.k8s.io", "ResourceClaim")
        results = [{"tolerations": [{"key": "k"}, {"key": "k", "operator": "Exists"}]}]
        obj: dict[str, Any] = {"spec": {}, "status": {"allocation": {"devices": {"results": results}}}}
        strategy.default(obj)
        self.assertEqual([one["operator"] for one in results[0]["tolerations"]], ["Equal", "Exists"])

    def test_period_of_templates(self) -> None:
        """Templates have no deletion grace period, not even an empty one."""
        metadata = {"deletionGracePeriodSeconds": 0, "generation": 0, "uid": "u"}
        errors = rules.validate_claim_template({"spec": {"metadata": metadata, "spec": {}}})
        self.assertEqual(
            [cause.field for cause in errors], ["spec.metadata.uID", "spec.metadata.deletionGracePeriodSeconds"]
        )

    def test_disabled_feature_gates(self) -> None:
        """List attributes and node allocatable mappings are not stored; taints have a time."""
        strategy = strategy_for("resource.k8s.io", "ResourceSlice")
        device: dict[str, Any] = {"name": "d", "attributes": {"a": {"int": 1, "ints": [1]}}, "taints": [{"key": "k"}]}
        slice_: dict[str, Any] = {"spec": {"devices": [{**device, "nodeAllocatableResourceMappings": {"cpu": {}}}]}}
        strategy.default(slice_)
        strategy.prepare_for_create(slice_)
        (remaining,) = slice_["spec"]["devices"]
        self.assertEqual(remaining["attributes"], {"a": {"int": 1}})
        self.assertNotIn("nodeAllocatableResourceMappings", remaining)
        self.assertIn("timeAdded", remaining["taints"][0])
