"""Strategy of PodDisruptionBudgets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...api.errors import FieldError
from ...api.names import validate_path_segment_name
from ...api.objectmeta import Rule
from ...api.resource import JSONObject
from ..generic.strategy import Strategy
from . import validation


class PodDisruptionBudgetStrategy(Strategy):
    """policy/v1 PodDisruptionBudget."""

    metadata_update_rules: Sequence[Rule] = ()
    status_metadata_update_rules: Sequence[Rule] = ()
    checks_metadata = False
    has_generation = True
    has_status = True
    status_protects = ()
    allow_unconditional_update = False

    def validate_name(self, name: str, prefix: bool) -> Sequence[str]:
        """Check that the name is a valid path segment."""
        return validate_path_segment_name(name, prefix)

    def default(self, obj: JSONObject) -> None:
        """Add C{spec}, a struct in Go that is always encoded."""
        obj.setdefault("spec", {})

    def reset_status(self, obj: JSONObject) -> None:
        """Set the status to the zero value of its Go type."""
        obj["status"] = {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Validate the limits and the selector."""
        return validation.validate_budget(obj)

    def validate_status_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate counts and conditions."""
        return validation.validate_budget_status(obj)


STRATEGIES: Final[Mapping[str, Strategy]] = {"PodDisruptionBudget": PodDisruptionBudgetStrategy()}
