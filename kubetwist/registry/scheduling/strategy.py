"""PriorityClasses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...api.errors import FieldError
from ...api.resource import JSONObject
from ..generic.strategy import Strategy
from . import validation


class PriorityClassStrategy(Strategy):
    """scheduling.k8s.io/v1 PriorityClass; its generation is 1 for ever."""

    has_generation = True

    def default(self, obj: JSONObject) -> None:
        """Pods of higher priority push others out."""
        obj.setdefault("value", 0)
        if obj.get("preemptionPolicy") is None:
            obj["preemptionPolicy"] = "PreemptLowerPriority"

    def generation_changes(self, obj: JSONObject, old: JSONObject) -> bool:
        """Never."""
        return False

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """The name's prefix and the highest value."""
        return validation.validate_priority_class(obj)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Value and preemption stay."""
        return validation.validate_priority_class_update(obj, old)


STRATEGIES: Final[Mapping[str, Strategy]] = {"PriorityClass": PriorityClassStrategy()}
