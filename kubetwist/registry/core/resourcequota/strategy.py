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
    """v1 ResourceQuota."""

    has_status = True
    status_protects = ()
    delete_returns_object = True

    def default(self, obj: JSONObject) -> None:
        """C{spec} is a struct in Go: always there."""
        round_up(obj.setdefault("spec", {}).get("hard"))
        status = obj.get("status") or {}
        for name in ("hard", "used"):
            round_up(status.get(name))

    def reset_status(self, obj: JSONObject) -> None:
        """Nothing is counted yet."""
        obj["status"] = {}

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Resources and scopes that exist."""
        return validation.validate_resource_quota(obj)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """The scopes stay."""
        return validation.validate_resource_quota_update(obj, old)

    def validate_status_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Quantities."""
        return validation.validate_resource_quota_status(obj)


STRATEGIES: Final[Mapping[str, Strategy]] = {
    "ResourceQuota": ResourceQuotaStrategy(),
}
