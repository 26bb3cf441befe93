"""Strategy of ConfigMaps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ....api.errors import FieldError
from ....api.objectmeta import Rule
from ....api.resource import JSONObject
from ...generic.strategy import Strategy
from . import validation


class ConfigMapStrategy(Strategy):
    """v1 ConfigMap."""

    metadata_update_rules: Sequence[Rule] = ("compare", "whole")

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Keys and size."""
        return validation.validate_config_map(obj)

    def compares_empties(self, old: JSONObject) -> bool:
        """Return whether the data are immutable, and so compared as they are (C{reflect.DeepEqual})."""
        return bool(old.get("immutable"))

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """What is marked immutable stays."""
        return validation.validate_config_map_update(obj, old)


STRATEGIES: Final[Mapping[str, Strategy]] = {
    "ConfigMap": ConfigMapStrategy(),
}
