"""Strategy of PersistentVolumeClaims."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ....api.errors import FieldError
from ....api.objectmeta import Rule
from ....api.resource import JSONObject
from ...generic.gatedstrategy import GatedStrategy
from ...generic.gates import GatedField, field_at
from ...generic.strategy import Strategy
from ..pod.defaults import complete_data_sources, default_claim_spec, round_up
from ..pod.warnings import claim_warnings
from . import validation

_DATA_SOURCES: Final = ("dataSource", "dataSourceRef")


#: The groups and kinds that the older field C{dataSource} supports.
_OLD_SOURCES: Final = (("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot"))


_REFERENCE: Final = field_at("spec", "dataSourceRef")


def _foreign_reference(obj: JSONObject) -> Iterator[tuple[JSONObject, str]]:
    """Find a data source in another namespace."""
    return ((spec, name) for spec, name in _REFERENCE(obj) if spec[name].get("namespace"))


def _has_reference(obj: JSONObject) -> bool:
    return any(_REFERENCE(obj))


#: See C{pkg/api/persistentvolumeclaim/util.go}.
_FIELDS: Final = (
    GatedField(gate="VolumeAttributesClass", find=field_at("spec", "volumeAttributesClassName")),
    GatedField(gate="AnyVolumeDataSource", find=_REFERENCE),
    GatedField(gate="CrossNamespaceVolumeDataSource", find=_foreign_reference, in_use=_has_reference),
)
_STATUS_FIELDS: Final = (
    GatedField(gate="VolumeAttributesClass", find=field_at("status", "currentVolumeAttributesClassName")),
    GatedField(gate="VolumeAttributesClass", find=field_at("status", "modifyVolumeStatus")),
    GatedField(gate="RecoverVolumeExpansionFailure", find=field_at("status", "allocatedResources")),
    GatedField(gate="RecoverVolumeExpansionFailure", find=field_at("status", "allocatedResourceStatuses")),
)


class PersistentVolumeClaimStrategy(GatedStrategy):
    """Strategy of v1 PersistentVolumeClaim."""

    metadata_update_rules: Sequence[Rule] = ("compare", "whole")
    has_status = True
    status_protects = ()
    delete_returns_object = True
    gated_fields = _FIELDS
    gated_status_fields = _STATUS_FIELDS

    def configure(self) -> None:
        """Select the fields to drop, and decide whether data sources are completed."""
        super().configure()
        self._completes_sources = self.features.enabled("AnyVolumeDataSource")

    def warnings(self, obj: JSONObject, old: JSONObject | None) -> Sequence[str]:
        """Return warnings about fractional bytes and a deprecated annotation."""
        return [*validation.claim_annotation_warnings(obj), *claim_warnings(obj["spec"], "spec")]

    def default(self, obj: JSONObject) -> None:
        """Set the defaults of C{pkg/apis/core/v1/defaults.go}."""
        default_claim_spec(obj.setdefault("spec", {}))
        status = obj.setdefault("status", {})
        if not status.get("phase"):
            status["phase"] = "Pending"
        for name in ("capacity", "allocatedResources"):
            round_up(status.get(name))

    def reset_status(self, obj: JSONObject) -> None:
        """Set the phase Pending."""
        obj["status"] = {"phase": "Pending"}

    def default_on_read(self, obj: JSONObject) -> None:
        """Set C{dataSource} and C{dataSourceRef} from each other, since older releases stored only one."""
        super().default_on_read(obj)
        if self._completes_sources:
            complete_data_sources(obj["spec"])

    def prepare_for_create(self, obj: JSONObject) -> None:
        """Set C{dataSource} and C{dataSourceRef} from each other; this is no default and has no field manager."""
        super().prepare_for_create(obj)
        _drop_data_sources(obj["spec"], {})
        if self._completes_sources:
            complete_data_sources(obj["spec"])

    def prepare_for_update(self, obj: JSONObject, old: JSONObject) -> None:
        """Set C{dataSource} and C{dataSourceRef} from each other."""
        super().prepare_for_update(obj, old)
        _drop_data_sources(obj["spec"], old["spec"])
        if self._completes_sources:
            complete_data_sources(obj["spec"])
            complete_data_sources(old["spec"])

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Validate a new claim."""
        return validation.validate_claim(obj)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate that only the size and the attributes class of a bound claim change."""
        return validation.validate_claim_update(obj, old, self.features)

    def validate_status_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate the quantities of the status."""
        return validation.validate_claim_status_update(obj, old, self.features)


def _drop_data_sources(spec: JSONObject, old: JSONObject) -> None:
    """Drop unsupported kinds in C{dataSource} from C{spec}; see C{pkg/api/persistentvolumeclaim/util.go}."""
    source = spec.get("dataSource")
    if source is None or any(value is not None for value in (*map(old.get, _DATA_SOURCES), spec.get("dataSourceRef"))):
        return
    if (source.get("apiGroup") or "", source.get("kind")) not in _OLD_SOURCES:
        del spec["dataSource"]


STRATEGIES: Final[Mapping[str, Strategy]] = {
    "PersistentVolumeClaim": PersistentVolumeClaimStrategy(),
}
