"""What is special about events.k8s.io; its events are stored as those of the core group."""

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
        """A subdomain."""
        return validate_dns1123_subdomain(name, prefix)

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Nothing is left of what only older events have."""
        return validation.validate_new_event(obj)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Only the series changes."""
        return validation.validate_new_event_update(obj, old)


STRATEGIES: Final[Mapping[str, Strategy]] = {"Event": NewEventStrategy()}
