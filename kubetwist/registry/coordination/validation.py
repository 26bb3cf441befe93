"""Validation of Leases; see kubernetes, C{pkg/apis/coordination/validation}."""

from __future__ import annotations

from ...api.errors import FieldError, forbidden, invalid
from ...api.resource import JSONObject
from ..generic.validation.fields import ErrorList, not_negative, unsupported


def validate_lease(obj: JSONObject) -> list[FieldError]:
    """Validate the durations and counts of a Lease."""
    errors: ErrorList = []
    spec = obj["spec"]
    seconds = spec.get("leaseDurationSeconds")
    if seconds is not None and seconds <= 0:
        errors.append(invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"))
    not_negative(spec.get("leaseTransitions"), "spec.leaseTransitions", errors)
    strategy = spec.get("strategy")
    if strategy is not None and strategy != "OldestEmulationVersion" and "/" not in strategy:
        errors.append(unsupported("spec.strategy", strategy, ("OldestEmulationVersion",)))
    if spec.get("preferredHolder") and strategy is None:
        text = "may only be specified if `strategy` is defined"
        errors.append(forbidden("spec.preferredHolder", text))
    return errors
