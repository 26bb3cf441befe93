"""Strategy of RuntimeClasses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...api.errors import FieldError
from ...api.objectmeta import Rule
from ...api.resource import JSONObject
from ..core.node.labels import label_warnings
from ..generic.strategy import Strategy
from . import validation


class RuntimeClassStrategy(Strategy):
    """node.k8s.io/v1 RuntimeClass."""

    metadata_update_rules: Sequence[Rule] = ("whole", "compare")
    allow_unconditional_update = False
    standard_finalizers = False

    def warnings(self, obj: JSONObject, old: JSONObject | None) -> Sequence[str]:
        """Return warnings about deprecated labels in the node selector."""
        return list(label_warnings((obj.get("scheduling") or {}).get("nodeSelector"), "scheduling.nodeSelector"))

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Validate handler, overhead and scheduling."""
        return validation.validate_runtime_class(obj)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate that the handler is unchanged."""
        return validation.validate_runtime_class_update(obj, old)


STRATEGIES: Final[Mapping[str, Strategy]] = {"RuntimeClass": RuntimeClassStrategy()}
