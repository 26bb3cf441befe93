"""Strategy of Events, in the version of the core group."""

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
    """Strategy of v1 Event."""

    #: The validation of Events does not check metadata, which the registry checks.
    metadata_update_rules: Sequence[Rule] = ()
    checks_metadata = False
    allow_create_on_update = True

    def default(self, obj: JSONObject) -> None:
        """Set fields that Go never omits."""
        obj.setdefault("involvedObject", {})
        obj.setdefault("source", {})
        for name in ("firstTimestamp", "lastTimestamp", "eventTime"):
            obj.setdefault(name, None)
        for name in ("reportingComponent", "reportingInstance"):
            obj.setdefault(name, "")

    def validate_name(self, name: str, prefix: bool) -> Sequence[str]:
        """Return the errors of a name, which must be a path segment."""
        return validate_path_segment_name(name, prefix)

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Validate the namespace, which must be that of the involved object."""
        return validation.validate_event(obj)


STRATEGIES: Final[Mapping[str, Strategy]] = {
    "Event": EventStrategy(),
}
