"""Timestamps and durations: formatting, parsing, accessors and time zones."""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Final

from kubetwist.api.go.durations import parse_nanoseconds
from kubetwist.api.go.quote import quoted
from kubetwist.cel import types
from kubetwist.cel.errors import CelError
from kubetwist.cel.functions import Function, function, member
from kubetwist.cel.standard.gonumbers import format_f, parse_int
from kubetwist.cel.types import DURATION, INT, STRING, TIMESTAMP
from kubetwist.cel.values import MAX_INT, MIN_INT, Duration, Timestamp

SECOND: Final = 1_000_000_000
#: Minimum and maximum of timestamps, in seconds since 1970.
MIN_SECONDS: Final = -62135596800
MAX_SECONDS: Final = 253402300799

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_rfc3339 = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?(?:Z|([+-])([0-9]{2}):([0-9]{2}))"
).fullmatch


def timestamp_of(ns: int, offset: int = 0) -> Timestamp:
    """
    Return a timestamp.

    @raise CelError: The timestamp is out of range.
    """
    if not MIN_SECONDS <= ns // SECOND <= MAX_SECONDS:
        raise CelError("timestamp overflow")
    return Timestamp(ns, offset)


def duration_of(ns: int) -> Duration:
    """
    Return a duration.

    @raise CelError: The duration is out of range.
    """
    if not MIN_INT <= ns <= MAX_INT:
        raise CelError("integer overflow")
    return Duration(ns)


def conversion_error(from_: types.Type, to: types.Type) -> CelError:
    """Return the error for a value that cannot be converted to another type."""
    return CelError(f"type conversion error from '{from_}' to '{to}'")


def parse_timestamp(text: str) -> Timestamp:
    """
    Parse a timestamp of RFC 3339.

    @raise CelError: The text is invalid.
    """
    match = _rfc3339(text)
    if match is None:
        raise conversion_error(STRING, TIMESTAMP)
    year, month, day, hour, minute, second = map(int, match.group(1, 2, 3, 4, 5, 6))
    fraction, sign, hours, minutes = match.group(7, 8, 9, 10)
    offset = 0
    if sign:
        if int(hours) > 24 or int(minutes) > 59:
            raise conversion_error(STRING, TIMESTAMP)
        offset = (int(hours) * 3600 + int(minutes) * 60) * (-1 if sign == "-" else 1)
    leap_year = year == 0
    try:
        # datetime has no year 0; its month and day are validated with another leap year.
        moment = datetime(4 if leap_year else year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        raise conversion_error(STRING, TIMESTAMP) from None
    if leap_year:
        raise CelError("timestamp overflow")
    seconds = (moment - _EPOCH) // timedelta(seconds=1) - offset
    ns = int((fraction or "0")[:9].ljust(9, "0"))
    return timestamp_of(seconds * SECOND + ns, offset)


def parse_duration(text: str) -> Duration:
    """
    Parse a duration in Go's format.

    @raise CelError: The text is invalid.
    """
    try:
        return Duration(parse_nanoseconds(text))
    except ValueError:
        raise conversion_error(STRING, DURATION) from None


def format_timestamp(value: Timestamp) -> str:
    """Format a timestamp by RFC 3339, with the shortest fraction and its UTC offset."""
    seconds, ns = divmod(value.ns, SECOND)
    try:
        moment = _EPOCH + timedelta(seconds=seconds + value.offset)
    except OverflowError:
        moment, value = _EPOCH + timedelta(seconds=seconds), Timestamp(value.ns)
    fraction = f".{ns:09d}".rstrip("0") if ns else ""
    if value.offset:
        hours, minutes = divmod(abs(value.offset) // 60, 60)
        zone = f"{'-' if value.offset < 0 else '+'}{hours:02d}:{minutes:02d}"
    else:
        zone = "Z"
    day = f"{moment.year:04d}-{moment.month:02d}-{moment.day:02d}"
    return f"{day}T{moment.hour:02d}:{moment.minute:02d}:{moment.second:02d}{fraction}{zone}"


def format_duration(value: Duration) -> str:
    """Format a duration in seconds: C{90.5s}."""
    return format_f(value.ns // SECOND + value.ns % SECOND / 1e9) + "s"


def _parse_offset(name: str) -> timedelta | None:
    """Return the UTC offset of a time zone given as an offset: C{+02:00}."""
    hours, colon, minutes = name.partition(":")
    if not colon:
        return None
    hour, minute = _atoi(hours), _atoi(minutes)
    try:
        return timedelta(hours=hour, minutes=-minute if name.startswith("-") else minute)
    except OverflowError:
        raise CelError("timestamp overflow") from None


def _atoi(text: str) -> int:
    number = parse_int(text)
    if number is None:
        raise CelError(f"strconv.Atoi: parsing {quoted(text)}: invalid syntax")
    if not MIN_INT <= number <= MAX_INT:
        raise CelError(f"strconv.Atoi: parsing {quoted(text)}: value out of range")
    return number


@lru_cache(maxsize=256)
def _zone(name: str) -> tzinfo | None:
    """Return the time zone with a name; L{None} for the local time zone."""
    if name in ("", "UTC"):
        return UTC
    if name == "Local":
        return None
    if ".." in name or name[0] in "/\\" or "\\" in name:
        raise CelError("time: invalid location name")
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise CelError(f"unknown time zone {name}") from None


def _in_zone(value: Timestamp, zone: str) -> datetime:
    moment = _EPOCH + timedelta(seconds=value.ns // SECOND)
    if zone == "UTC":
        return moment
    utc_offset = _parse_offset(zone)
    try:
        return moment.astimezone(_zone(zone)) if utc_offset is None else moment + utc_offset
    except OverflowError:
        raise CelError("timestamp overflow") from None


def _year_day(moment: datetime) -> int:
    return moment.timetuple().tm_yday - 1


_TIMESTAMP_ACCESSORS: Final[dict[str, tuple[str, Callable[[datetime], int]]]] = {
    "getFullYear": ("timestamp_to_year", lambda moment: moment.year),
    "getMonth": ("timestamp_to_month", lambda moment: moment.month - 1),
    "getDayOfYear": ("timestamp_to_day_of_year", _year_day),
    "getDayOfMonth": ("timestamp_to_day_of_month", lambda moment: moment.day - 1),
    "getDate": ("timestamp_to_day_of_month_1_based", lambda moment: moment.day),
    "getDayOfWeek": ("timestamp_to_day_of_week", lambda moment: moment.isoweekday() % 7),
    "getHours": ("timestamp_to_hours", lambda moment: moment.hour),
    "getMinutes": ("timestamp_to_minutes", lambda moment: moment.minute),
    "getSeconds": ("timestamp_to_seconds", lambda moment: moment.second),
}

_DURATION_ACCESSORS: Final = {
    "getHours": ("duration_to_hours", 3600 * SECOND),
    "getMinutes": ("duration_to_minutes", 60 * SECOND),
    "getSeconds": ("duration_to_seconds", SECOND),
    "getMilliseconds": ("duration_to_milliseconds", 1_000_000),
}


def _milliseconds(value: Timestamp, zone: str = "UTC") -> int:
    _in_zone(value, zone)
    return value.ns % SECOND // 1_000_000


def _timestamp_accessor(name: str) -> Callable[..., int]:
    read = _TIMESTAMP_ACCESSORS[name][1]

    def accessor(value: Timestamp, zone: str = "UTC") -> int:
        return read(_in_zone(value, zone))

    return accessor


def _duration_accessor(unit: int) -> Callable[[Duration], int]:
    def accessor(value: Duration) -> int:
        # Go rounds toward zero.
        return value.ns // unit if value.ns >= 0 else -(-value.ns // unit)

    return accessor


def _functions() -> list[Function]:
    functions = []
    for name in (*_TIMESTAMP_ACCESSORS, "getMilliseconds"):
        read = _milliseconds if name == "getMilliseconds" else _timestamp_accessor(name)
        id = "timestamp_to_milliseconds" if name == "getMilliseconds" else _TIMESTAMP_ACCESSORS[name][0]
        overloads = [
            member(id, (TIMESTAMP,), INT, read),
            member(f"{id}_with_tz", (TIMESTAMP, STRING), INT, read),
        ]
        if name in _DURATION_ACCESSORS:
            id, unit = _DURATION_ACCESSORS[name]
            overloads.append(member(id, (DURATION,), INT, _duration_accessor(unit)))
        functions.append(function(name, *overloads))
    return functions


FUNCTIONS: Final = tuple(_functions())
