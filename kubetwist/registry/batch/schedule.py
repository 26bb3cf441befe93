"""
Parser of the schedules of CronJobs.

The grammar and the messages are the same as of ParseStandard in C{github.com/robfig/cron}.
"""

from __future__ import annotations

from typing import Final

from attrs import frozen

from ...api.go.durations import parse_nanoseconds

_BOUNDS: Final = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
_MONTHS: Final = {
    name: number
    for number, name in enumerate(
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"], 1
    )
}
_DAYS: Final = {name: number for number, name in enumerate(["sun", "mon", "tue", "wed", "thu", "fri", "sat"])}
_NAMES: Final[tuple[dict[str, int], ...]] = ({}, {}, {}, _MONTHS, _DAYS)
_DESCRIPTORS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


class CronError(ValueError):
    """An invalid schedule; the text has the reason."""


@frozen
class Schedule:
    """
    A parsed schedule.

    @ivar zone: The time zone in the schedule; C{""} for none.
    @ivar every: Seconds between two times; 0 if the fields define the times.
    @ivar any_day: Whether the day of month is a star; then the day of week alone decides, and vice versa.
    """

    zone: str = ""
    every: int = 0
    minutes: frozenset[int] = frozenset()
    hours: frozenset[int] = frozenset()
    days: frozenset[int] = frozenset()
    months: frozenset[int] = frozenset()
    weekdays: frozenset[int] = frozenset()
    any_day: bool = True
    any_weekday: bool = True


def check_schedule(schedule: str) -> None:
    """
    Check that a schedule can be parsed.

    @raise CronError: The schedule is invalid.
    """
    read_schedule(schedule)


def read_schedule(schedule: str) -> Schedule:
    """
    Parse a schedule.

    @raise CronError: The schedule is invalid.
    """
    spec, zone = schedule, ""
    if spec.startswith(("TZ=", "CRON_TZ=")):
        named, _, spec = spec.partition(" ")
        zone = named.partition("=")[2]
        _zone(zone)
        spec = spec.strip()
    if spec.startswith("@"):
        if spec not in _DESCRIPTORS:
            return Schedule(zone, _every(spec))
        spec = _DESCRIPTORS[spec]
    fields = spec.split()
    if len(fields) != 5:
        raise CronError(f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")
    values: list[frozenset[int]] = []
    stars: list[bool] = []
    for field, (low, high), names in zip(fields, _BOUNDS, _NAMES, strict=True):
        ranges = [_range(expression, low, high, names) for expression in field.split(",")]
        values.append(frozenset(number for one, _ in ranges for number in one))
        stars.append(any(star for _, star in ranges))
    minutes, hours, days, months, weekdays = values
    return Schedule(zone, 0, minutes, hours, days, months, weekdays, stars[2], stars[4])


def _zone(name: str) -> None:
    import zoneinfo

    try:
        if name not in ("", "UTC", "Local"):
            zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise CronError(f"provided bad location {name}: unknown time zone {name}") from None


def _every(text: str) -> int:
    """Return the whole seconds of C{@every}, at least one."""
    if not text.startswith("@every "):
        raise CronError(f"unrecognized descriptor: {text}")
    duration = text[len("@every ") :]
    try:
        nanoseconds = parse_nanoseconds(duration)
    except ValueError as error:
        raise CronError(f"failed to parse duration {text}: {error}") from None
    return max(1, nanoseconds // 1_000_000_000)


def _range(expression: str, low: int, high: int, names: dict[str, int]) -> tuple[range, bool]:
    """Return the numbers of a field, and whether it is a star."""
    span, slash, step_text = expression.partition("/")
    if "/" in step_text:
        raise CronError(f"too many slashes: {expression}")
    first, dash, last = span.partition("-")
    step, star = 1, first in ("*", "?")
    if star:
        start, end = low, high
    else:
        start = end = _number(first, names)
        if dash:
            if "-" in last:
                raise CronError(f"too many hyphens: {expression}")
            end = _number(last, names)
    if slash:
        step = _plain_number(step_text)
        star = star and step <= 1
        if not dash and first not in ("*", "?"):
            end = high
        if step == 0:
            raise CronError(f"step of range should be a positive number: {expression}")
    if start < low:
        raise CronError(f"beginning of range ({start}) below minimum ({low}): {expression}")
    if end > high:
        raise CronError(f"end of range ({end}) above maximum ({high}): {expression}")
    if start > end:
        raise CronError(f"beginning of range ({start}) beyond end of range ({end}): {expression}")
    return range(start, end + 1, step), star


def _number(text: str, names: dict[str, int]) -> int:
    named = names.get(text.lower())
    return _plain_number(text) if named is None else named


def _plain_number(text: str) -> int:
    sign = text[:1] in ("-", "+")
    if not text[sign:].isascii() or not text[sign:].isdigit():
        raise CronError(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax')
    number = int(text)
    if number < 0:
        raise CronError(f"negative number ({number}) not allowed: {text}")
    return number
