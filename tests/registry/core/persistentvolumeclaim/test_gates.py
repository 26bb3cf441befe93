"""Tests of feature gates of PersistentVolumeClaims."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.generic.strategy import Strategy
from tests.registry.gatetools import created, gated, update_errors, updated, with_status
from tests.registry.strategytools import copy

KIND = ("", "PersistentVolumeClaim")
SPEC: dict[str, Any] = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}}


class FieldTests(SynchronousTestCase):
    """Tests of fields that are dropped."""

    def test_spec(self) -> None:
        """The fields of disabled gates are dropped, unless they are in use."""
        reference = {"kind": "Other", "apiGroup": "example.com", "name": "d"}
        cases: tuple[tuple[str, tuple[int, int], dict[str, Any]], ...] = (
            ("VolumeAttributesClass", (1, 35), {"volumeAttributesClassName": "c"}),
            ("AnyVolumeDataSource", (1, 32), {"dataSourceRef": reference}),
            ("CrossNamespaceVolumeDataSource", (1, 36), {"dataSourceRef": {**reference, "namespace": "other"}}),
        )
        for gate, release, fields in cases:
            spec = {**SPEC, **fields}
            [name] = fields
            on, off = (gated(*KIND, release, **{gate: value}) for value in (True, False))
            used, unused = created(on, spec=spec), created(off, spec=spec)
            self.assertIn(name, used["spec"], gate)
            self.assertNotIn(name, unused["spec"], gate)
            self.assertIn(name, updated(off, used, spec=spec)["spec"], gate)
            self.assertNotIn(name, updated(off, unused, spec=spec)["spec"], gate)

    def test_completed_sources(self) -> None:
        """Data sources are completed if any object can be one."""
        source = {"kind": "PersistentVolumeClaim", "name": "d"}
        for enabled in (True, False):
            strategy = gated(*KIND, (1, 32), AnyVolumeDataSource=enabled)
            obj = created(strategy, spec={**SPEC, "dataSource": source})
            self.assertEqual("dataSourceRef" in obj["spec"], enabled)
            del obj["spec"]["dataSource"]
            obj["spec"]["dataSourceRef"] = source
            strategy.default_on_read(obj)
            self.assertEqual("dataSource" in obj["spec"], enabled)
            changed = updated(strategy, obj, spec={**SPEC, "dataSourceRef": source})
            self.assertEqual("dataSource" in changed["spec"], enabled)

    def test_status(self) -> None:
        """The fields of the status are dropped in the same way."""
        for gate, release, name, value in (
            ("VolumeAttributesClass", (1, 35), "currentVolumeAttributesClassName", "c"),
            ("VolumeAttributesClass", (1, 35), "modifyVolumeStatus", {}),
            ("RecoverVolumeExpansionFailure", (1, 33), "allocatedResources", {"storage": "1Gi"}),
            ("RecoverVolumeExpansionFailure", (1, 33), "allocatedResourceStatuses", {"storage": "NodeResizePending"}),
        ):
            for enabled in (True, False):
                strategy = gated(*KIND, release, **{gate: enabled})
                claim = created(strategy, spec=SPEC)
                self.assertEqual(name in with_status(strategy, claim, {name: value})["status"], enabled, name)
                claim["status"][name] = value
                self.assertIn(name, with_status(strategy, claim, {name: value})["status"])


class ValidationTests(SynchronousTestCase):
    """Tests of updates of bound claims."""

    def errors(self, strategy: Strategy, status: dict[str, Any], before: Any, **parts: Any) -> list[str]:
        """Return the errors of an update, without the path."""
        old = copy(created(strategy, spec=SPEC))
        old["spec"].update(before)
        old["status"] = {"phase": "Bound", "capacity": {"storage": "1Gi"}, **status}
        found = update_errors(strategy, old, spec={**SPEC, **before, **parts})
        return [error.partition(": Forbidden: ")[2] for error in found]

    def test_attributes_class(self) -> None:
        """The class of a bound claim changes if the gate is enabled; the conditions changed in 1.34."""
        before, none, empty = ({"volumeAttributesClassName": name} for name in ("a", None, ""))
        changed = {"volumeAttributesClassName": "b"}
        on, off = (gated(*KIND, (1, 35), VolumeAttributesClass=value) for value in (True, False))
        old = gated(*KIND, (1, 33), VolumeAttributesClass=True)
        disabled = "update is forbidden when the VolumeAttributesClass feature gate is disabled"
        self.assertEqual(self.errors(on, {}, before, **changed), [])
        self.assertEqual(self.errors(off, {}, before, **changed), [disabled])
        applied = {"currentVolumeAttributesClassName": "a"}
        text = "update to {} is forbidden when status.currentVolumeAttributesClassName is not nil"
        self.assertEqual(self.errors(on, applied, before, **none), [text.format("nil")])
        self.assertEqual(self.errors(on, applied, before, **empty), [text.format("empty string")])
        self.assertEqual(self.errors(on, {}, before, **none), [])
        self.assertEqual(self.errors(off, applied, before, **none), [disabled, text.format("nil")])
        text = "update from non-nil value to an empty string is forbidden"
        self.assertEqual(self.errors(old, {}, before, **empty), [text])
        immutable, removed = self.errors(old, {}, before, **none)
        self.assertTrue(immutable.startswith("spec is immutable after creation"), immutable)
        self.assertEqual(removed, "update from non-nil value to nil is forbidden")

    def test_size(self) -> None:
        """A claim shrinks down to the capacity if it can recover from a failed expansion."""
        on, off = (gated(*KIND, (1, 33), RecoverVolumeExpansionFailure=value) for value in (True, False))
        smaller, smallest = ({"resources": {"requests": {"storage": size}}} for size in ("1500Mi", "1Gi"))
        previous = "field can not be less than previous value"
        self.assertEqual(self.errors(on, {}, {}, **smaller), [])
        self.assertEqual(self.errors(off, {}, {}, **smaller), [previous])
        self.assertEqual(self.errors(off, {"allocatedResources": {"storage": "2Gi"}}, {}, **smaller), [])
        self.assertEqual(self.errors(on, {}, {}, **smallest), ["field can not be less than status.capacity"])

    def test_allocated_resources(self) -> None:
        """The status of an expansion is validated if a claim can recover from it."""
        on, off = (gated(*KIND, (1, 33), RecoverVolumeExpansionFailure=value) for value in (True, False))
        newest = gated(*KIND)
        bad = {"spec": SPEC, "status": {"allocatedResourceStatuses": {"storage": "Bad"}}}
        for strategy, fields in (
            (off, []),
            (on, ["status.allocatedResourceStatus"]),
            (newest, ["status.allocatedResourceStatuses"]),
        ):
            found = strategy.validate_status_update(bad, {"spec": SPEC, "status": {}})
            self.assertEqual([error.field for error in found], fields)
