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
    """Strategy of v1 ConfigMap."""

    metadata_update_rules: Sequence[Rule] = ("compare", "whole")

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Validate the keys and the size."""
        return validation.validate_config_map(obj)

    def compares_empties(self, old: JSONObject) -> bool:
        """Return whether the data are immutable, and thus compared with C{reflect.DeepEqual} in the reference."""
        return bool(old.get("immutable"))

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate that immutable data are unchanged."""
        return validation.validate_config_map_update(obj, old)


STRATEGIES: Final[Mapping[str, Strategy]] = {
    "ConfigMap": ConfigMapStrategy(),
}
