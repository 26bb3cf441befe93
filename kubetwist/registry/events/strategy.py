"""Strategy of events.k8s.io; its events are stored as events of the core group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from ...api.names import validate_dns1123_subdomain
from ...api.objectmeta import Rule
from ..core.event.strategy import EventStrategy
from ..generic.strategy import Strategy
from . import validation

if TYPE_CHECKING:
    from ...api.errors import FieldError
    from ...api.resource import JSONObject


class NewEventStrategy(EventStrategy):
    """events.k8s.io/v1 Event."""

    metadata_update_rules: Sequence[Rule] = ("compare",)
    checks_metadata = True

    def validate_name(self, name: str, prefix: bool) -> Sequence[str]:
        """Validate a DNS subdomain."""
        return validate_dns1123_subdomain(name, prefix)

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Validate that fields of core/v1 events are not set."""
        return validation.validate_new_event(obj)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate that only the series changed."""
        return validation.validate_new_event_update(obj, old)


STRATEGIES: Final[Mapping[str, Strategy]] = {"Event": NewEventStrategy()}
