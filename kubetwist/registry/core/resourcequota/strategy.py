"""Strategy of ResourceQuotas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ....api.errors import FieldError
from ....api.resource import JSONObject
from ...generic.strategy import Strategy
from ..pod.defaults import round_up
from . import validation


class ResourceQuotaStrategy(Strategy):
    """Strategy of v1 ResourceQuota."""

    has_status = True
    status_protects = ()
    delete_returns_object = True

    def default(self, obj: JSONObject) -> None:
        """Set C{spec}, which Go never omits."""
        round_up(obj.setdefault("spec", {}).get("hard"))
        status = obj.get("status") or {}
        for name in ("hard", "used"):
            round_up(status.get(name))

    def reset_status(self, obj: JSONObject) -> None:
        """Remove the status of a new quota."""
        obj["status"] = {}

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Validate resources and scopes."""
        return validation.validate_resource_quota(obj)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate an update; the scopes are immutable."""
        return validation.validate_resource_quota_update(obj, old)

    def validate_status_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate the quantities of the status."""
        return validation.validate_resource_quota_status(obj)


STRATEGIES: Final[Mapping[str, Strategy]] = {
    "ResourceQuota": ResourceQuotaStrategy(),
}
