"""Strategy of LimitRanges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ....api.errors import FieldError
from ....api.objectmeta import Rule
from ....api.resource import JSONObject
from ...generic.strategy import Strategy
from ..pod.defaults import round_up
from . import validation


class LimitRangeStrategy(Strategy):
    """Strategy of v1 LimitRange."""

    metadata_update_rules: Sequence[Rule] = ("whole",)
    allow_create_on_update = True

    def default(self, obj: JSONObject) -> None:
        """Set the defaults of limits to maxima, and of requests to limits or minima, for containers."""
        spec = obj.setdefault("spec", {})
        spec.setdefault("limits", None)
        for item in spec["limits"] or ():
            for name in ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio"):
                round_up(item.get(name))
            if item.get("type") != "Container":
                continue
            limits = item.get("default") or {}
            for name, quantity in (item.get("max") or {}).items():
                limits.setdefault(name, quantity)
            requests = item.get("defaultRequest") or {}
            for name, quantity in limits.items():
                requests.setdefault(name, quantity)
            for name, quantity in (item.get("min") or {}).items():
                requests.setdefault(name, quantity)
            if limits:
                item["default"] = limits
            if requests:
                item["defaultRequest"] = requests

    def prepare_for_create(self, obj: JSONObject) -> None:
        """Generate a name for a LimitRange without one."""
        if not obj["metadata"].get("name"):
            from uuid import uuid4

            obj["metadata"]["name"] = str(uuid4())

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Validate that the limits are consistent."""
        return validation.validate_limit_range(obj)


STRATEGIES: Final[Mapping[str, Strategy]] = {
    "LimitRange": LimitRangeStrategy(),
}
