"""Tests of feature gates of Jobs."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.generic.strategy import Strategy
from tests.registry.gatetools import created, gated, update_errors, updated
from tests.registry.strategytools import CONTAINER, copy

TEMPLATE = {"spec": {"containers": [CONTAINER], "restartPolicy": "Never"}}


class FieldTests(SynchronousTestCase):
    """Tests of the fields of Jobs."""

    def test_fields(self) -> None:
        """Fields of disabled gates are dropped from new Jobs, and kept by updates if they are in use."""
        cases: tuple[tuple[str, tuple[int, int], dict[str, Any]], ...] = (
            ("JobManagedBy", (1, 34), {"managedBy": "example.com/me"}),
            ("JobSuccessPolicy", (1, 32), {"successPolicy": {"rules": [{"succeededCount": 1}]}}),
            ("JobBackoffLimitPerIndex", (1, 32), {"backoffLimitPerIndex": 1}),
            ("JobBackoffLimitPerIndex", (1, 32), {"maxFailedIndexes": 1}),
            ("JobPodReplacementPolicy", (1, 33), {"podReplacementPolicy": "Failed"}),
            ("WorkloadWithJob", (1, 37), {"scheduling": {}}),
        )
        for gate, release, field in cases:
            spec = {"template": TEMPLATE, **field}
            [name] = field
            on, off = (gated("batch", "Job", release, **{gate: value}) for value in (True, False))
            used, unused = created(on, spec=spec), created(off, spec=spec)
            self.assertEqual(used["spec"][name], field[name])
            self.assertNotIn(name, unused["spec"])
            self.assertEqual(updated(off, used, spec=spec)["spec"][name], field[name])
            # Validation rejects the change of this field.
            self.assertEqual(name in updated(off, unused, spec=spec)["spec"], gate == "JobManagedBy")

    def test_replacement_default(self) -> None:
        """The pod replacement policy has a default if its gate is enabled."""
        for enabled in (True, False):
            strategy = gated("batch", "Job", (1, 33), JobPodReplacementPolicy=enabled)
            self.assertEqual("podReplacementPolicy" in created(strategy, spec={"template": TEMPLATE})["spec"], enabled)

    def test_failure_policy(self) -> None:
        """Rules that fail an index are dropped from new Jobs if indexes have no limits."""
        rules = [{"action": "FailIndex"}, {"action": "Count"}]
        spec = {"template": TEMPLATE, "podFailurePolicy": {"rules": rules}}
        on, off = (gated("batch", "Job", (1, 32), JobBackoffLimitPerIndex=value) for value in (True, False))
        used = created(on, spec=spec)
        self.assertEqual(used["spec"]["podFailurePolicy"]["rules"], rules)
        self.assertEqual(created(off, spec=spec)["spec"]["podFailurePolicy"]["rules"], rules[1:])
        self.assertEqual(updated(off, used, spec=spec)["spec"]["podFailurePolicy"]["rules"], rules)


class UpdateTests(SynchronousTestCase):
    """Tests of changes of the template of suspended Jobs."""

    def change(self, strategy: Strategy, status: dict[str, Any], **pod: Any) -> list[str]:
        """Return the fields with errors of a change of the template."""
        old = created(strategy, spec={"template": TEMPLATE, "suspend": True})
        old["status"] = status
        template = copy(old["spec"]["template"])
        template["spec"].update(pod)
        return [
            error.partition(":")[0]
            for error in update_errors(strategy, old, spec={**old["spec"], "template": template})
        ]

    def test_directives(self) -> None:
        """Scheduling directives may change if the Job never started, or by gate if it has no pods any more."""
        conditions = [{"type": "Suspended", "status": "True"}]
        stopped = {"startTime": "2026-02-03T04:05:06Z", "conditions": conditions}
        gate = "MutableSchedulingDirectivesForSuspendedJobs"
        on, off, old = (
            gated("batch", "Job", **{gate: True}),
            gated("batch", "Job", **{gate: False}),
            gated("batch", "Job", (1, 35), **{gate: True}),
        )
        change = {"nodeSelector": {"a": "b"}}
        whole, pod = ["spec.template"], ["spec.template.spec"]
        self.assertEqual([self.change(each, {}, **change) for each in (on, off, old)], [[], [], whole])
        self.assertEqual([self.change(each, stopped, **change) for each in (on, off, old)], [[], pod, []])
        self.assertEqual(self.change(on, {**stopped, "active": 1}, **change), whole)
        self.assertEqual(self.change(on, {}, hostNetwork=True), pod)

    def test_resources(self) -> None:
        """Resources may change if the gate is enabled."""
        change = {"containers": [{**CONTAINER, "resources": {"limits": {"cpu": "1"}}}]}
        gate = "MutablePodResourcesForSuspendedJobs"
        for release, enabled, errors in (
            ((1, 36), True, []),
            ((1, 36), False, ["spec.template"]),
            ((1, 35), True, ["spec.template"]),
            ((1, 34), None, ["spec.template"]),
        ):
            settings = {} if enabled is None else {gate: enabled}
            self.assertEqual(self.change(gated("batch", "Job", release, **settings), {}, **change), errors)


class StatusTests(SynchronousTestCase):
    """Tests of the validation of the status."""

    def errors(self, strategy: Strategy, before: dict[str, Any], after: dict[str, Any]) -> list[str]:
        """Return the errors of a change of the status."""
        spec: dict[str, Any] = {"completionMode": "NonIndexed"}
        found = strategy.validate_status_update({"spec": spec, "status": after}, {"spec": spec, "status": before})
        return [str(error) for error in found]

    def test_transitions(self) -> None:
        """Transitions are validated if other controllers may manage Jobs."""
        on, off = (gated("batch", "Job", (1, 34), JobManagedBy=value) for value in (True, False))
        text = "status.failed: Invalid value: 1: cannot decrease the failed counter"
        self.assertEqual(self.errors(on, {"failed": 2}, {"failed": 1}), [text])
        self.assertEqual(self.errors(off, {"failed": 2}, {"failed": 1}), [])
        complete = {"conditions": [{"type": "Complete", "status": "True"}]}
        self.assertEqual(len(self.errors(on, {}, complete)), 3)
        self.assertEqual(self.errors(off, {}, complete), [])

    def test_success_criteria(self) -> None:
        """Jobs without a success policy meet success criteria if terminating pods are counted, or if they did so."""
        met = {"conditions": [{"type": "SuccessCriteriaMet", "status": "True"}]}
        texts = [
            "status.conditions: Invalid value: cannot set SuccessCriteriaMet to NonIndexed Job",
            "status.conditions: Invalid value: cannot set SuccessCriteriaMet=True for Job without SuccessPolicy",
        ]
        for replaces, errors in ((True, []), (False, texts)):
            strategy = gated("batch", "Job", (1, 33), JobManagedBy=False, JobPodReplacementPolicy=replaces)
            self.assertEqual(self.errors(strategy, {}, met), errors)
            self.assertEqual(self.errors(strategy, met, met), [])
