"""Tests for L{kubetwist.registry.scheduling.printers}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.printers import cells
from tests.registry.printertools import NOW, made


class RowTests(SynchronousTestCase):
    """Tests for rows of PriorityClasses and PodGroups."""

    def test_priority_class(self) -> None:
        """A row has the value, whether it is the default, and the preemption policy; an absent value is zero."""
        obj = made({"value": 7, "globalDefault": True, "preemptionPolicy": "Never"})
        self.assertEqual(cells("scheduling.k8s.io", "PriorityClass", obj, NOW), ["x", 7, True, "3m", "Never"])
        self.assertEqual(cells("scheduling.k8s.io", "PriorityClass", made(), NOW), ["x", 0, False, "3m", ""])

    def test_pod_group(self) -> None:
        """A row has the policy, the workload and the status of a group."""
        kind = ("scheduling.k8s.io", "PodGroup")
        self.assertEqual(cells(*kind, made(), NOW), ["x", "Basic", "<none>", "Pending", "3m"])
        template = {"workload": {"workloadName": "w"}}
        obj = made({"spec": {"schedulingPolicy": {"gang": {"minCount": 2}}, "podGroupTemplateRef": template}})
        self.assertEqual(cells(*kind, obj, NOW)[1:3], ["Gang", "w"])
        scheduled, unscheduled = (
            [{"type": "PodGroupScheduled", "status": value, "reason": "r"}] for value in ("True", "False")
        )
        disrupted = [*scheduled, {"type": "DisruptionTarget", "status": "True", "reason": "Preempted"}]
        for conditions, state in ((scheduled, "Scheduled"), (unscheduled, "Unschedulable"), (disrupted, "Preempted")):
            self.assertEqual(cells(*kind, made({"status": {"conditions": conditions}}), NOW)[3], state)
