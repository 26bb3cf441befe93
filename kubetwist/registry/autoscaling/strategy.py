"""Strategy of HorizontalPodAutoscalers, which are stored in v2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ...api.errors import FieldError
from ...api.jsontypes import JSONValue
from ...api.resource import JSONObject
from ..generic.gatedstrategy import GatedStrategy
from ..generic.gates import GatedField, field_at, fields_of
from ..generic.strategy import Strategy
from . import validation

_UP: Final[list[dict[str, Any]]] = [
    {"type": "Pods", "value": 4, "periodSeconds": 15},
    {"type": "Percent", "value": 100, "periodSeconds": 15},
]
_DOWN: Final[list[dict[str, Any]]] = [{"type": "Percent", "value": 100, "periodSeconds": 15}]

_TOLERANCE: Final = GatedField(
    gate="HPAConfigurableTolerance",
    find=fields_of(
        field_at("spec", "behavior", "scaleDown", "tolerance"), field_at("spec", "behavior", "scaleUp", "tolerance")
    ),
)


class HorizontalPodAutoscalerStrategy(GatedStrategy):
    """autoscaling/v1 and v2 HorizontalPodAutoscaler."""

    has_status = True
    status_protects = ()
    default_versions = ("autoscaling/v1",)
    gated_fields = (_TOLERANCE,)

    def configure(self) -> None:
        """Select the fields to drop, and decide whether objects have generations."""
        super().configure()
        self.has_generation = self.features.enabled("HPAGeneration")

    def default(self, obj: JSONObject) -> None:
        """
        Add defaults.

        See C{pkg/apis/autoscaling/v2/defaults.go} and C{pkg/apis/autoscaling/v1/defaults.go}. In v1, metrics and
        behavior are in annotations, which get no defaults.
        """
        spec = obj.setdefault("spec", {})
        spec.setdefault("maxReplicas", 0)
        reference = spec.setdefault("scaleTargetRef", {})
        for name in ("kind", "name"):
            reference.setdefault(name, "")
        if spec.get("minReplicas") is None:
            spec["minReplicas"] = 1
        if obj.get("apiVersion") == "autoscaling/v1":
            return
        if not spec.get("metrics"):
            spec["metrics"] = [
                {
                    "type": "Resource",
                    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
                }
            ]
        behavior = spec.get("behavior")
        if behavior is not None:
            behavior["scaleUp"] = _rules(behavior.get("scaleUp"), _UP, 0)
            behavior["scaleDown"] = _rules(behavior.get("scaleDown"), _DOWN, None)

    def reset_status(self, obj: JSONObject) -> None:
        """Set the status to the zero value of its Go type."""
        obj["status"] = {"currentMetrics": None, "desiredReplicas": 0}

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Validate the replica limits, the target, the metrics and the behavior."""
        return validation.validate_autoscaler(obj, self.features)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate the spec; errors of the stored object are partly ignored."""
        return validation.validate_autoscaler(obj, self.features, old)

    def validate_status_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate the replica counts."""
        return validation.validate_autoscaler_status(obj)


def _rules(rules: JSONObject | None, policies: list[dict[str, JSONValue]], window: int | None) -> JSONObject:
    filled: JSONObject = {"selectPolicy": "Max", "policies": [dict(one) for one in policies]}
    if window is not None:
        filled["stabilizationWindowSeconds"] = window
    for name, value in (rules or {}).items():
        if value is not None:
            filled[name] = value
    return filled


STRATEGIES: Final[Mapping[str, Strategy]] = {"HorizontalPodAutoscaler": HorizontalPodAutoscalerStrategy()}
