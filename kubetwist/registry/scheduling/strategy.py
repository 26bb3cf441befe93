"""Strategy of PriorityClasses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...api.errors import FieldError
from ...api.resource import JSONObject
from ..generic.strategy import Strategy
from . import validation


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


STRATEGIES: Final[Mapping[str, Strategy]] = {"PriorityClass": PriorityClassStrategy()}
