"""Strategies of FlowSchemas and PriorityLevelConfigurations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...api.errors import FieldError
from ...api.objectmeta import Rule
from ...api.resource import JSONObject
from ..generic.strategy import Strategy
from . import validation


class FlowControlStrategy(Strategy):
    """Base class of the strategies of both kinds."""

    metadata_update_rules: Sequence[Rule] = ("whole",)
    status_metadata_update_rules: Sequence[Rule] = ()
    has_generation = True
    has_status = True
    status_protects = ("generateName", "labels", "annotations", "finalizers", "ownerReferences")

    def reset_status(self, obj: JSONObject) -> None:
        """Clear the conditions."""
        obj["status"] = {}

    def validate_status_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate the conditions."""
        return validation.validate_flow_control_status(obj)


class FlowSchemaStrategy(FlowControlStrategy):
    """flowcontrol.apiserver.k8s.io/v1 FlowSchema."""

    def default(self, obj: JSONObject) -> None:
        """See C{pkg/apis/flowcontrol/v1/defaults.go}."""
        spec = obj.setdefault("spec", {})
        spec.setdefault("priorityLevelConfiguration", {}).setdefault("name", "")
        if not spec.get("matchingPrecedence"):
            spec["matchingPrecedence"] = 1000

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Validate precedence, priority level, subjects and rules."""
        return validation.validate_flow_schema(obj)


class PriorityLevelStrategy(FlowControlStrategy):
    """flowcontrol.apiserver.k8s.io/v1 PriorityLevelConfiguration."""

    def default(self, obj: JSONObject) -> None:
        """See C{pkg/apis/flowcontrol/v1/defaults.go}."""
        spec = obj.setdefault("spec", {})
        spec.setdefault("type", "")
        exempt = spec.get("exempt")
        if exempt is not None:
            for name in ("nominalConcurrencyShares", "lendablePercent"):
                if exempt.get(name) is None:
                    exempt[name] = 0
        limited = spec.get("limited")
        if limited is None:
            return
        if limited.get("nominalConcurrencyShares") is None:
            limited["nominalConcurrencyShares"] = 30
        if limited.get("lendablePercent") is None:
            limited["lendablePercent"] = 0
        response = limited.setdefault("limitResponse", {})
        response.setdefault("type", "")
        queuing = response.get("queuing")
        if queuing is not None:
            for name, value in (("handSize", 8), ("queues", 64), ("queueLengthLimit", 50)):
                if not queuing.get(name):
                    queuing[name] = value

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Validate the type and the limits."""
        return validation.validate_priority_level(obj)


STRATEGIES: Final[Mapping[str, Strategy]] = {
    "FlowSchema": FlowSchemaStrategy(),
    "PriorityLevelConfiguration": PriorityLevelStrategy(),
}
