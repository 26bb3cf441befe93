"""Strategies of PriorityClasses, Workloads and PodGroups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...api.errors import FieldError
from ...api.resource import JSONObject
from ..generic.gatedstrategy import GatedStrategy
from ..generic.gates import ITEMS, Find, GatedField, field_at, fields_of, not_empty
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


class PodGroupStrategy(GatedStrategy):
    """scheduling.k8s.io PodGroup."""

    has_generation = True
    has_status = True
    gated_fields = _group_fields("spec")
    gated_status_fields = (
        GatedField(gate="DRAWorkloadResourceClaims", find=field_at("status", "resourceClaimStatuses")),
    )


class WorkloadStrategy(GatedStrategy):
    """scheduling.k8s.io Workload, with templates of PodGroups."""

    has_generation = True
    has_status = True
    gated_fields = (
        *_group_fields("spec", "podGroupTemplates", ITEMS),
        GatedField(gate="CompositePodGroup", find=field_at("spec", "compositePodGroupTemplates")),
    )


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
    "PodGroup": PodGroupStrategy(),
    "Workload": WorkloadStrategy(),
}
