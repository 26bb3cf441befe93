"""Strategies of PriorityClasses, Workloads and PodGroups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...api.errors import FieldError
from ...api.resource import JSONObject
from ..generic.gates import ITEMS, DisabledFields, Find, GatedField, field_at, fields_of, not_empty
from ..generic.strategy import Strategy
from . import validation


def _group_fields(*path: str) -> tuple[GatedField, ...]:
    """
    Return the fields of a group of pods, or of the templates of groups, with feature gates.

    See kubernetes, C{pkg/registry/scheduling}.

    @param path: The path of the groups or templates.
    """

    def field(gate: str, *names: str) -> GatedField:
        find: Find = fields_of(*(field_at(*path, name) for name in names))
        return GatedField(gate=gate, find=find, in_use=not_empty(find))

    return (
        field("TopologyAwareWorkloadScheduling", "schedulingConstraints"),
        field("DRAWorkloadResourceClaims", "resourceClaims"),
        *(field("WorkloadAwarePreemption", name) for name in ("disruptionMode", "priorityClassName", "priority")),
        field("PodGroupPreemptionPolicy", "preemptionPolicy"),
        field("CompositePodGroup", "parentCompositePodGroupName"),
    )


_GROUP: Final = _group_fields("spec")
_GROUP_STATUS: Final = (GatedField(gate="DRAWorkloadResourceClaims", find=field_at("status", "resourceClaimStatuses")),)
_WORKLOAD: Final = (
    *_group_fields("spec", "podGroupTemplates", ITEMS),
    GatedField(gate="CompositePodGroup", find=field_at("spec", "compositePodGroupTemplates")),
)


class _GatedStrategy(Strategy):
    """The default rules of a kind with a spec and a status, whose fields have feature gates."""

    has_generation = True
    has_status = True

    def __init__(self, fields: Sequence[GatedField], status: Sequence[GatedField] = ()) -> None:
        """
        @param fields: The fields of the spec.
        @param status: The fields of the status.
        """
        self._fields, self._status_fields = fields, status
        super().__init__()

    def configure(self) -> None:
        """Select the fields to drop."""
        self._disabled = DisabledFields(self._fields, self.features)
        self._disabled_status = DisabledFields(self._status_fields, self.features)

    def prepare_for_create(self, obj: JSONObject) -> None:
        """Clear the status, and drop the fields of disabled feature gates."""
        super().prepare_for_create(obj)
        self._disabled.drop(obj)

    def prepare_for_update(self, obj: JSONObject, old: JSONObject) -> None:
        """Restore the status, and drop the fields of disabled feature gates that the stored object does not use."""
        super().prepare_for_update(obj, old)
        self._disabled.drop(obj, old)

    def prepare_for_status_update(self, obj: JSONObject, old: JSONObject) -> None:
        """Restore the spec, and drop the fields of disabled feature gates that the stored object does not use."""
        super().prepare_for_status_update(obj, old)
        self._disabled_status.drop(obj, old)


class PriorityClassStrategy(Strategy):
    """scheduling.k8s.io/v1 PriorityClass; its generation is always 1."""

    has_generation = True

    def default(self, obj: JSONObject) -> None:
        """Add the default preemption policy, C{PreemptLowerPriority}."""
        obj.setdefault("value", 0)
        if obj.get("preemptionPolicy") is None:
            obj["preemptionPolicy"] = "PreemptLowerPriority"

    def generation_changes(self, obj: JSONObject, old: JSONObject) -> bool:
        """Return false: the generation never changes."""
        return False

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Validate the prefix of the name, and the value."""
        return validation.validate_priority_class(obj)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate that value and preemption policy are unchanged."""
        return validation.validate_priority_class_update(obj, old)


STRATEGIES: Final[Mapping[str, Strategy]] = {
    "PriorityClass": PriorityClassStrategy(),
    "PodGroup": _GatedStrategy(_GROUP, _GROUP_STATUS),
    "Workload": _GatedStrategy(_WORKLOAD),
}
