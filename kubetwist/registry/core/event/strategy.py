"""Strategy of Events, in the shape of the core group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ....api.errors import FieldError
from ....api.names import validate_path_segment_name
from ....api.objectmeta import Rule
from ....api.resource import JSONObject
from ...generic.strategy import Strategy
from . import validation


class EventStrategy(Strategy):
    """v1 Event."""

    #: Little is asked of older ones: the kind looks at metadata no more than the registry.
    metadata_update_rules: Sequence[Rule] = ()
    checks_metadata = False
    allow_create_on_update = True

    def default(self, obj: JSONObject) -> None:
        """Structs and times in Go: always there."""
        obj.setdefault("involvedObject", {})
        obj.setdefault("source", {})
        for name in ("firstTimestamp", "lastTimestamp", "eventTime"):
            obj.setdefault(name, None)
        for name in ("reportingComponent", "reportingInstance"):
            obj.setdefault(name, "")

    def validate_name(self, name: str, prefix: bool) -> Sequence[str]:
        """Whatever can be a part of a path."""
        return validate_path_segment_name(name, prefix)

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """The namespace fits the object that the event is about."""
        return validation.validate_event(obj)


STRATEGIES: Final[Mapping[str, Strategy]] = {
    "Event": EventStrategy(),
}
