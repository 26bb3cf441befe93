"""Tests of L{kubetwist.registry.core.node.validation}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.core.node.validation import validate_node_update
from kubetwist.registry.strategies import strategy_for
from tests.registry.strategytools import change_problems, problems, status_problems, warnings_for


class NodeUpdateTests(SynchronousTestCase):
    """Tests of updates of Nodes."""

    def test_node(self) -> None:
        """The external ID and the pod CIDRs of a node are immutable."""
        old = {"spec": {"podCIDRs": ["10.0.0.0/24", "fd00::/64"]}}
        new = {"spec": {"podCIDRs": ["10.0.1.0/24", "fd01::/64"], "externalID": "x"}}
        found = [cause.field for cause in validate_node_update(new, old)]
        self.assertEqual(found, ["spec.podCIDRs", "spec.podCIDRs", "spec.externalID"])
        self.assertEqual([cause.field for cause in validate_node_update({}, old)], ["spec.podCIDRs"])
        self.assertEqual(validate_node_update(old, old), [])


class NodeTests(SynchronousTestCase):
    """Tests of Nodes."""

    def test_new(self) -> None:
        """Errors of a new node are in the order of the reference."""
        status = {
            "capacity": {"cpu": "-1", "pods": "1500m"},
            "nodeInfo": {"swap": {"capacity": 0}},
            "declaredFeatures": ["Two", "Two", "One", "bad"],
        }
        spec = {"taints": [{"key": "a", "effect": "Never"}], "podCIDRs": ["10.0.0.0/24", "10.0.1.0/24"]}
        name = "must start with an UpperCamelCase segment, with subsequent segments separated by '/' "
        name += "(e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes"
        self.assertEqual(
            problems("", "Node", spec=spec, status={**status, "allocatable": {}}),
            [
                'metadata.taints[0].effect: Unsupported value: "Never": supported values: "NoSchedule", '
                '"PreferNoSchedule", "NoExecute"',
                'status.capacity.cpu: Invalid value: "-1": must be greater than or equal to 0',
                'status.capacity.pods: Invalid value: "1500m": must be an integer',
                "metadata.nodeSwapStatus.capacity: Invalid value: 0: must be greater than zero",
                'status.declaredFeatures[1]: Duplicate value: "Two"',
                'status.declaredFeatures[2]: Invalid value: "One": list must be sorted alphabetically',
                f'status.declaredFeatures[3]: Invalid value: "bad": invalid feature name "bad": {name}',
                'spec.podCIDRs: Invalid value: ["10.0.0.0/24","10.0.1.0/24"]: '
                "may specify no more than one CIDR for each IP family",
            ],
        )
        long = f"A{'b' * 253}"
        (found,) = problems("", "Node", status={"declaredFeatures": [long]})
        self.assertTrue(found.endswith(f'invalid feature name "{long}": must be no more than 253 characters'), found)

    def test_unreadable_range(self) -> None:
        """A malformed CIDR does not count as a second IP family."""
        found = problems("", "Node", spec={"podCIDRs": ["fd00::/64", "junk"]})
        self.assertEqual([one.partition(":")[0] for one in found], ["spec.podCIDRs[1]", *["spec.podCIDRs"] * 2])
        self.assertIn("invalid CIDR[1]: <nil> (invalid CIDR address: junk)", found[1])
        self.assertEqual(problems("", "Node", spec={"podCIDRs": ["fd00::/64", "10.0.0.0/24"]}), [])

    def test_update(self) -> None:
        """The whole node is validated in updates of the main resource only; CIDRs are validated once."""
        spec = {"taints": [{"key": "", "effect": "NoExecute"}], "podCIDRs": ["junk"], "externalID": "x"}
        found = [one.partition(":")[0] for one in change_problems("", "Node", {}, {"spec": spec})]
        key = ["metadata.taints[0].key"] * 2
        self.assertEqual(found, [*key, "spec.podCIDRs[0]", *key, "spec.externalID"])
        bad = {"spec": spec, "status": {"capacity": {"cpu": "-1"}, "addresses": [{"type": "a", "address": "b"}] * 2}}
        self.assertEqual(
            [one.partition(":")[0] for one in status_problems("", "Node", {"spec": spec}, bad)],
            ["status.capacity.cpu", "status.addresses[1]", *key],
        )

    def test_config(self) -> None:
        """The removed configuration source is validated if it exists."""
        reference = {"name": "n", "namespace": "Ns", "kubeletConfigKey": "a/b", "uid": "u"}
        old = {"spec": {"configSource": {}}, "status": {"config": {}}}
        new = {
            "spec": {"configSource": {"configMap": reference}},
            "status": {"config": {"assigned": {"configMap": reference}, "active": {}}},
        }
        found = [one.partition(":")[0] for one in status_problems("", "Node", old, new)]
        spec, assigned = "spec.configSource.configMap", "status.config.assigned.configMap"
        fields = ["namespace", "kubeletConfigKey"]
        self.assertEqual(
            found,
            [
                f"{spec}.uid",
                *(f"{spec}.{name}" for name in fields),
                f"{assigned}.resourceVersion",
                *(f"{assigned}.{name}" for name in fields),
                "status.config.active",
            ],
        )
        self.assertEqual(
            status_problems("", "Node", old, {"spec": {"configSource": {}}}),
            ['spec.configSource: Invalid value: {"ConfigMap":null}: exactly one reference subfield must be non-nil'],
        )

    def test_warnings(self) -> None:
        """Fields without effect cause warnings."""
        gone = "spec.externalID: this field is deprecated, and is unused by Kubernetes"
        self.assertEqual(warnings_for("", "Node", spec={"externalID": "x", "configSource": {}}), [gone])
        kept = strategy_for("", "Node").warnings({"spec": {"configSource": {}}}, None)
        self.assertEqual(kept, ["spec.configSource: the feature is removed"])
