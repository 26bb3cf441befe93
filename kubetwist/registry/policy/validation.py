"""Validation of PodDisruptionBudgets; see kubernetes, C{pkg/apis/policy/validation/validation.go}."""

from __future__ import annotations

from ...api.errors import FieldError
from ...api.gostructs import go_struct
from ...api.resource import JSONObject
from ..generic.validation.conditions import conditions
from ..generic.validation.fields import (
    ErrorList,
    at_most_whole,
    go_json,
    invalid_shown,
    label_selector,
    not_negative,
    number_or_percent,
    unsupported,
)


def validate_budget(obj: JSONObject) -> list[FieldError]:
    """Validate a PodDisruptionBudget: at most one of two limits, and a selector."""
    errors: ErrorList = []
    spec = obj["spec"]
    min_available, max_unavailable = spec.get("minAvailable"), spec.get("maxUnavailable")
    policy = spec.get("unhealthyPodEvictionPolicy")
    if min_available is not None and max_unavailable is not None:
        shown = go_json(go_struct(spec, "policy.PodDisruptionBudgetSpec"))
        text = "minAvailable and maxUnavailable cannot be both set"
        errors.append(invalid_shown("spec", shown, text, spec, "policy.PodDisruptionBudgetSpec"))
    for name, value in (("minAvailable", min_available), ("maxUnavailable", max_unavailable)):
        if value is not None:
            number_or_percent(value, f"spec.{name}", errors)
            at_most_whole(value, f"spec.{name}", errors)
    label_selector(spec.get("selector"), "spec.selector", errors)
    if policy is not None and policy not in ("AlwaysAllow", "IfHealthyBudget"):
        path = "spec.unhealthyPodEvictionPolicy"
        errors.append(unsupported(path, policy, ("AlwaysAllow", "IfHealthyBudget")))
    return errors


def validate_budget_status(obj: JSONObject) -> list[FieldError]:
    """Validate conditions and counts."""
    errors: ErrorList = []
    conditions((obj.get("status") or {}).get("conditions") or (), "status.conditions", errors)
    for name in ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"):
        not_negative((obj.get("status") or {}).get(name), f"status.{name}", errors)
    return errors
