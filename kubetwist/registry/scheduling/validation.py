"""Leases, RuntimeClasses and PriorityClasses: kinds with a rule or two."""

from __future__ import annotations

from ...api.errors import Cause, forbidden, invalid, required
from ...api.go.structs import go_struct
from ...api.objectmeta import Parts
from ...api.resource import JSONObject
from ..core.pod.validation.resources import validate_requirements
from ..core.pod.validation.spec import validate_tolerations
from ..generic.validation.fields import (
    Causes,
    check,
    dns_label,
    go_json,
    immutable,
    labels,
    not_negative,
    one_of,
    unsupported,
)

#: Above this, priorities are the system's own.
HIGHEST_USER_PRIORITY = 1000000000
SYSTEM_PRIORITIES = {"system-node-critical": 2000001000, "system-cluster-critical": 2000000000}


def validate_lease(obj: JSONObject) -> list[Cause]:
    """Durations and counts."""
    causes: Causes = []
    spec = obj["spec"]
    seconds = spec.get("leaseDurationSeconds")
    if seconds is not None and seconds <= 0:
        causes.append(invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"))
    not_negative(spec.get("leaseTransitions"), "spec.leaseTransitions", causes)
    strategy = spec.get("strategy")
    if strategy is not None and strategy != "OldestEmulationVersion" and "/" not in strategy:
        causes.append(unsupported("spec.strategy", strategy, ("OldestEmulationVersion",)))
    if spec.get("preferredHolder") and strategy is None:
        text = "may only be specified if `strategy` is defined"
        causes.append(forbidden("spec.preferredHolder", text))
    return causes


def validate_runtime_class(obj: JSONObject) -> list[Cause]:
    """A handler, and what it costs and where it runs."""
    causes: Causes = []
    handler = obj.get("handler") or ""
    if handler:
        check(handler, "handler", dns_label, causes)
    else:
        causes.append(required("handler"))
    if obj.get("overhead") is not None:
        validate_requirements({"limits": obj["overhead"].get("podFixed")}, "overhead", causes)
    scheduling = obj.get("scheduling")
    if scheduling is not None:
        labels(scheduling.get("nodeSelector"), "scheduling.nodeSelector", causes)
        tolerations = scheduling.get("tolerations") or []
        validate_tolerations(tolerations, "scheduling.tolerations", causes)
        _distinct_tolerations(tolerations, causes)
    return causes


def _distinct_tolerations(tolerations: list[JSONObject], causes: Causes) -> None:
    seen: set[tuple[str, ...]] = set()
    for index, toleration in enumerate(tolerations):
        key = tuple(toleration.get(name) or "" for name in ("key", "operator", "value", "effect"))
        if key in seen:
            shown = go_json(go_struct(toleration, "Toleration"))
            causes.append(Cause("FieldValueDuplicate", f"Duplicate value: {shown}", f"scheduling.tolerations[{index}]"))
        seen.add(key)


def validate_runtime_class_update(obj: JSONObject, old: JSONObject) -> list[Cause]:
    """The handler stays."""
    causes: Causes = []
    immutable(obj.get("handler") or "", old.get("handler") or "", "handler", causes)
    return Parts(validate_runtime_class(obj), causes)


def validate_priority_class(obj: JSONObject) -> list[Cause]:
    """Names and values that are not the system's own."""
    causes: Causes = []
    name, value = obj["metadata"].get("name") or "", obj.get("value") or 0
    if name.startswith("system-"):
        if SYSTEM_PRIORITIES.get(name) != value:
            text = "priority class names with 'system-' prefix are reserved for system use only. error: "
            known = SYSTEM_PRIORITIES.get(name)
            text += (
                f"{name} is not a known system priority class"
                if known is None
                else f"value of {name} PriorityClass must be {known}"
            )
            causes.append(forbidden("metadata.name", text))
    elif value > HIGHEST_USER_PRIORITY:
        text = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
        causes.append(forbidden("value", text))
    policy = obj.get("preemptionPolicy")
    if policy is not None:
        one_of(policy, ("PreemptLowerPriority", "Never"), "preemptionPolicy", causes)
    return causes


def validate_priority_class_update(obj: JSONObject, old: JSONObject) -> list[Cause]:
    """Value and preemption stay."""
    causes: Causes = []
    if (obj.get("value") or 0) != (old.get("value") or 0):
        causes.append(forbidden("value", "may not be changed in an update."))
    immutable(obj.get("preemptionPolicy"), old.get("preemptionPolicy"), "preemptionPolicy", causes)
    return causes
