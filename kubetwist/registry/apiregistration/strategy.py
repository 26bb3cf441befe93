"""Strategy of APIServices as objects; the aggregator serves their group versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from ...api.errors import FieldError
from ...api.names import ValidateNameFunc, validate_path_segment_name
from ...api.objectmeta import Rule
from ...api.resource import JSONObject
from ...api.times import now
from ..generic.strategy import Strategy
from . import validation


class APIServiceStrategy(Strategy):
    """apiregistration.k8s.io/v1 APIService."""

    has_status = True
    allow_unconditional_update = False
    metadata_update_rules: Sequence[Rule] = ("compare", "whole")
    standard_finalizers = False

    def validate_name(self, name: str, prefix: bool) -> Sequence[str]:
        """Validate a path segment."""
        return validate_path_segment_name(name, prefix)

    def name_validator(self, obj: JSONObject) -> ValidateNameFunc:
        """Return the validation of the name, which must be C{<version>.<group>}."""
        return partial(validation.validate_api_service_name, obj)

    def default(self, obj: JSONObject) -> None:
        """Add the default port, 443."""
        spec = obj.setdefault("spec", {})
        for name in ("groupPriorityMinimum", "versionPriority"):
            spec.setdefault(name, 0)
        service = spec.get("service")
        if service is not None and service.get("port") is None:
            service["port"] = 443

    def reset_status(self, obj: JSONObject) -> None:
        """Set the condition C{Available} of APIServices that this server serves."""
        obj["status"] = {}
        if obj["spec"].get("service") is None:
            obj["status"]["conditions"] = [
                {
                    "type": "Available",
                    "status": "True",
                    "lastTransitionTime": now(),
                    "reason": "Local",
                    "message": "Local APIServices are always available",
                }
            ]

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Validate group, version, service and CA bundle."""
        return validation.validate_api_service(obj)

    def validate_status_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate the status of the conditions."""
        return validation.validate_api_service_status(obj)


STRATEGIES: Final[Mapping[str, Strategy]] = {"APIService": APIServiceStrategy()}
