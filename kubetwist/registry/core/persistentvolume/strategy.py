"""Strategy of PersistentVolumes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ....api.errors import FieldError
from ....api.objectmeta import Rule
from ....api.resource import JSONObject
from ....api.times import now
from ...generic.gatedstrategy import GatedStrategy
from ...generic.gates import GatedField, field_at
from ...generic.strategy import Strategy
from ..pod.defaults import VOLUME_SOURCE_DEFAULTS, round_up
from . import validation


class PersistentVolumeStrategy(GatedStrategy):
    """Strategy of v1 PersistentVolume."""

    metadata_update_rules: Sequence[Rule] = ("whole", "whole")
    has_status = True
    status_protects = ()
    delete_returns_object = True
    gated_fields = (GatedField(gate="VolumeAttributesClass", find=field_at("spec", "volumeAttributesClassName")),)

    def default(self, obj: JSONObject) -> None:
        """Set the defaults of C{pkg/apis/core/v1/defaults.go}."""
        spec = obj.setdefault("spec", {})
        if not spec.get("persistentVolumeReclaimPolicy"):
            spec["persistentVolumeReclaimPolicy"] = "Retain"
        if spec.get("volumeMode") is None:
            spec["volumeMode"] = "Filesystem"
        for name, fill in VOLUME_SOURCE_DEFAULTS.items():
            if spec.get(name) is not None:
                fill(spec[name])
        status = obj.setdefault("status", {})
        if not status.get("phase"):
            status["phase"] = "Pending"
        round_up(spec.get("capacity"))

    def reset_status(self, obj: JSONObject) -> None:
        """Set the phase Pending and the time of its transition."""
        obj["status"] = {"phase": "Pending", "lastPhaseTransitionTime": obj["metadata"].get("creationTimestamp")}

    def prepare_for_status_update(self, obj: JSONObject, old: JSONObject) -> None:
        """Set the time of the last phase transition."""
        super().prepare_for_status_update(obj, old)
        status, before = obj.setdefault("status", {}), old.get("status") or {}
        requested, current = status.get("lastPhaseTransitionTime"), before.get("lastPhaseTransitionTime")
        if status.get("phase") == before.get("phase"):
            if requested is None and current is not None:
                status["lastPhaseTransitionTime"] = current
        elif requested in (None, current):
            status["lastPhaseTransitionTime"] = now()

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Validate a new volume."""
        return validation.validate_volume(obj)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate an update; the source is immutable."""
        return validation.validate_volume_update(obj, old, self.features)

    def warnings(self, obj: JSONObject, old: JSONObject | None) -> Sequence[str]:
        """Return warnings about deprecated fields and volume types."""
        return tuple(validation.volume_warnings(obj))


STRATEGIES: Final[Mapping[str, Strategy]] = {
    "PersistentVolume": PersistentVolumeStrategy(),
}
