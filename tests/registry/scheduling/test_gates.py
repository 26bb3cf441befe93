"""Tests of feature gates of Workloads and PodGroups."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.featuregates import Release
from tests.registry.gatetools import created, gated, positions, updated, with_status

GROUP = "scheduling.k8s.io"
#: Gate, the last release in which it can be set, and its fields of a group of pods.
FIELDS: tuple[tuple[str, Release, dict[str, Any]], ...] = (
    ("TopologyAwareWorkloadScheduling", (1, 36), {"schedulingConstraints": {"topology": [{"key": "zone"}]}}),
    ("DRAWorkloadResourceClaims", (1, 37), {"resourceClaims": [{"name": "c"}]}),
    ("WorkloadAwarePreemption", (1, 36), {"disruptionMode": "Pod"}),
    ("WorkloadAwarePreemption", (1, 36), {"priorityClassName": "high"}),
    ("WorkloadAwarePreemption", (1, 36), {"priority": 3}),
    ("PodGroupPreemptionPolicy", (1, 37), {"preemptionPolicy": "Never"}),
    ("CompositePodGroup", (1, 37), {"parentCompositePodGroupName": "c"}),
)


class GateTests(SynchronousTestCase):
    """Fields of each gate in both positions."""

    def check(self, kind: str, gate: str, release: Release, spec: dict[str, Any], without: dict[str, Any]) -> None:
        """Check that a field is kept if its gate is enabled or it is in use, and dropped otherwise."""
        on, off = positions(GROUP, kind, gate, [release])
        used, unused = created(on, spec=spec), created(off, spec=spec)
        self.assertEqual((used["spec"], unused["spec"]), (spec, without), gate)
        self.assertEqual(updated(off, used, spec=spec)["spec"], spec, gate)
        self.assertEqual(updated(off, unused, spec=spec)["spec"], without, gate)

    def test_groups(self) -> None:
        """Fields of PodGroups, and of the templates in Workloads."""
        for gate, release, fields in FIELDS:
            self.check("PodGroup", gate, release, {"schedulingPolicy": {}, **fields}, {"schedulingPolicy": {}})
            if "parentCompositePodGroupName" not in fields:
                templates = [{"name": "a", **fields}]
                self.check(
                    "Workload", gate, release, {"podGroupTemplates": templates}, {"podGroupTemplates": [{"name": "a"}]}
                )

    def test_composite(self) -> None:
        """Templates of composite groups."""
        spec = {"podGroupTemplates": [], "compositePodGroupTemplates": [{"name": "c"}]}
        self.check("Workload", "CompositePodGroup", (1, 37), spec, {"podGroupTemplates": []})

    def test_status(self) -> None:
        """The claims of a group in its status."""
        status = {"resourceClaimStatuses": [{"name": "c"}]}
        for value, kept in ((True, status), (False, {})):
            strategy = gated(GROUP, "PodGroup", (1, 37), GenericWorkload=True, DRAWorkloadResourceClaims=value)
            self.assertEqual(with_status(strategy, created(strategy, spec={}), status)["status"], kept)
