"""
Cells with ages, which depend on the time of the request.

A row is computed once for each state of an object and may be cached; an L{AgeCell} in it is formatted for each request.
"""

from __future__ import annotations

from datetime import UTC, datetime

from ....api.jsontypes import JSONValue
from ....api.resource import JSONObject

#: The text of a time that is not set, as in the reference.
UNKNOWN = "<unknown>"


class AgeCell:
    """
    A cell with the time since an event.

    @ivar timestamp: The time of the event, in seconds since the epoch.
    @ivar before: The text before the age: C{"3 ("}.
    @ivar after: The text after the age: C{" ago)"}.
    """

    __slots__ = ("after", "before", "timestamp")

    def __init__(self, timestamp: float, before: str = "", after: str = "") -> None:
        self.timestamp = timestamp
        self.before = before
        self.after = after

    def text(self, now: float) -> str:
        """Return the text of the cell at C{now}, in seconds since the epoch."""
        return f"{self.before}{human_age(self.timestamp, now)}{self.after}"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AgeCell):
            return NotImplemented
        return (self.timestamp, self.before, self.after) == (other.timestamp, other.before, other.after)

    def __hash__(self) -> int:
        return hash((self.timestamp, self.before, self.after))

    def __repr__(self) -> str:
        return f"AgeCell({self.timestamp!r}, {self.before!r}, {self.after!r})"


#: A cell of a row; L{AgeCell.text} formats ages.
Cell = str | int | bool | AgeCell | None


def since(timestamp: JSONValue) -> AgeCell | str:
    """Return the age of an RFC 3339 time; C{"<unknown>"} if it is not set."""
    seconds = parse_time(timestamp)
    return UNKNOWN if seconds is None else AgeCell(seconds)


def age(obj: JSONObject) -> AgeCell | str:
    """Return the age of an object."""
    return since(obj["metadata"].get("creationTimestamp"))


def parse_time(text: JSONValue) -> float | None:
    """Return an RFC 3339 time in seconds since the epoch; L{None} if it is missing or malformed."""
    if not isinstance(text, str) or not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.timestamp()


def human_age(timestamp: float, now: float) -> str:
    """Return the text of the duration from C{timestamp} to C{now}."""
    return human_duration(now - timestamp)


def human_duration(duration: float) -> str:
    """
    Return the text of a duration as C{duration.HumanDuration}: C{90s}, C{3m20s}, C{4h5m}, C{2d}, C{1y30d}.

    Up to two seconds in the future count as now, since clocks differ; longer ones are C{<invalid>}.

    @param duration: The duration in seconds.
    """
    seconds = int(duration)
    if seconds < -1:
        return "<invalid>"
    if seconds < 0:
        return "0s"
    if seconds < 2 * 60:
        return f"{seconds}s"
    minutes = seconds // 60
    if minutes < 10:
        return _two(minutes, "m", seconds % 60, "s")
    if minutes < 3 * 60:
        return f"{minutes}m"
    hours = minutes // 60
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    days = hours // 24
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if days < 2 * 365:
        return f"{days}d"
    if days < 8 * 365:
        return _two(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"
