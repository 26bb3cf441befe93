"""Validation of PriorityClasses; see kubernetes, C{pkg/apis/scheduling/validation}."""

from __future__ import annotations

from ...api.errors import FieldError, forbidden
from ...api.resource import JSONObject
from ..generic.validation.fields import ErrorList, immutable, one_of

#: Maximum priority of user-defined classes.
HIGHEST_USER_PRIORITY = 1000000000
SYSTEM_PRIORITIES = {"system-node-critical": 2000001000, "system-cluster-critical": 2000000000}


def validate_priority_class(obj: JSONObject) -> list[FieldError]:
    """Validate a PriorityClass; names and values of the system are reserved."""
    errors: ErrorList = []
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
            errors.append(forbidden("metadata.name", text))
    elif value > HIGHEST_USER_PRIORITY:
        text = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
        errors.append(forbidden("value", text))
    policy = obj.get("preemptionPolicy")
    if policy is not None:
        one_of(policy, ("PreemptLowerPriority", "Never"), "preemptionPolicy", errors)
    return errors


def validate_priority_class_update(obj: JSONObject, old: JSONObject) -> list[FieldError]:
    """Validate that value and preemption policy are unchanged."""
    errors: ErrorList = []
    if (obj.get("value") or 0) != (old.get("value") or 0):
        errors.append(forbidden("value", "may not be changed in an update."))
    immutable(obj.get("preemptionPolicy"), old.get("preemptionPolicy"), "preemptionPolicy", errors)
    return errors
