"""
Times in the API's formats, with Go's error messages.

A C{Time} has seconds, a C{MicroTime} microseconds; both are stored in UTC.
"""

from __future__ import annotations

import re
import time
from calendar import timegm
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from math import floor
from typing import Final

_SECONDS_LAYOUT: Final = "2006-01-02T15:04:05Z07:00"
_MICRO_LAYOUT: Final = "2006-01-02T15:04:05.000000Z07:00"

_canonical = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z").fullmatch


#: The clock of all servers of this process; tests replace it with L{use_clock}.
_clock: Callable[[], float] = time.time

#: The second of the last call of L{now}, and its result.
_last_second = -1
_last_time = "1969-12-31T23:59:59Z"


def use_clock(clock: Callable[[], float] = time.time) -> None:
    """
    Replace the clock of this process.

    @param clock: Returns POSIX seconds.
    """
    global _clock
    _clock = clock


@contextmanager
def temporary_clock(clock: Callable[[], float]) -> Iterator[None]:
    """
    Replace the clock of this process until the end of the block.

    @param clock: Returns POSIX seconds.
    """
    before = _clock
    use_clock(clock)
    try:
        yield
    finally:
        use_clock(before)


def posix_now() -> float:
    """Return the current POSIX time."""
    return _clock()


def utc_now() -> datetime:
    """Return the current time in UTC, with time zone."""
    return datetime.fromtimestamp(_clock(), UTC)


def now() -> str:
    """Return the current time as a C{Time}."""
    global _last_second, _last_time
    second = floor(_clock())
    if second != _last_second:
        _last_second, _last_time = second, format_time(second)
    return _last_time


def now_micro() -> str:
    """Return the current time as a C{MicroTime}."""
    return format_micro_time(_clock())


def format_micro_time(seconds: float) -> str:
    """Return a POSIX time as a C{MicroTime}."""
    whole, micro = divmod(int(seconds * 1_000_000), 1_000_000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(whole))}.{micro:06d}Z"


def format_time(seconds: float) -> str:
    """Return a POSIX time as a C{Time}."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def seconds_since_epoch(text: str) -> float:
    """
    Return the POSIX time of a stored C{Time} or C{MicroTime}.

    @raise ValueError: The value is invalid.
    """
    if len(text) == 20:
        return timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%SZ"))
    moment, nanoseconds = _parse(text, False)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() + nanoseconds / 1e9


def parse_time(text: str) -> str | None:
    """
    Parse a C{Time}.

    @return: The canonical form; L{None} for the zero time, which is stored as null.
    @raise ValueError: The value is invalid; the message is Go's.
    """
    return _cached_time(text) if len(text) <= _CACHED_LENGTH else _time(text)


#: Maximum length of cached texts, to bound the memory of the cache.
_CACHED_LENGTH: Final = 40


@lru_cache(maxsize=1024)
def _cached_time(text: str) -> str | None:
    return _time(text)


def _time(text: str) -> str | None:
    moment, _ = _parse(text, False)
    return None if moment == _ZERO else _shown(moment) + "Z"


def parse_micro_time(text: str) -> str | None:
    """
    Parse a C{MicroTime}, which must have six digits after the point.

    @return: The canonical form; L{None} for the zero time, which is stored as null.
    @raise ValueError: The value is invalid; the message is Go's.
    """
    moment, nanoseconds = _parse(text, True)
    if moment == _ZERO and not nanoseconds:
        return None
    return f"{_shown(moment)}.{nanoseconds // 1000:06d}Z"


_ZERO: Final = datetime(1, 1, 1, tzinfo=UTC)


def _shown(moment: datetime) -> str:
    # strftime does not pad years on all systems.
    return (
        f"{moment.year:04d}-{moment.month:02d}-{moment.day:02d}"
        f"T{moment.hour:02d}:{moment.minute:02d}:{moment.second:02d}"
    )


#: The elements of a time: the layout element and the pattern of its value.
_PARTS: Final = (
    ("2006", re.compile("[0-9]{4}")),
    ("-", re.compile("-")),
    ("01", re.compile("[0-9]{2}")),
    ("-", re.compile("-")),
    ("02", re.compile("[0-9]{2}")),
    ("T", re.compile("T")),
    # Go accepts a single digit for the hour.
    ("15", re.compile("[0-9]{1,2}")),
    (":", re.compile(":")),
    ("04", re.compile("[0-9]{2}")),
    (":", re.compile(":")),
    ("05", re.compile("[0-9]{2}")),
)
_fraction = re.compile("[.,]([0-9]+)").match
_six_digits = re.compile("[.,][0-9]{6}").match
_zone = re.compile("Z|([+-])([0-9]{2}):([0-9]{2})").match


def _parse(text: str, micro: bool) -> tuple[datetime, int]:
    """Return the moment in whole seconds, UTC, and its nanoseconds; see Go's C{time.Parse}."""
    layout = _MICRO_LAYOUT if micro else _SECONDS_LAYOUT
    fields: dict[str, int] = {}
    position = 0
    for part, pattern in _PARTS:
        match = pattern.match(text, position)
        if match is None:
            raise _cannot(text, layout, text[position:], part)
        position = match.end()
        if part.isdigit():
            number = fields[part] = int(match.group())
            if part in _RANGES and not _RANGES[part][0] <= number <= _RANGES[part][1]:
                raise _out_of_range(text, _RANGES[part][2])
    nanoseconds = 0
    fraction = _six_digits(text, position) if micro else _fraction(text, position)
    if fraction is not None:
        nanoseconds = int(fraction.group()[1:10].ljust(9, "0"))
        position = fraction.end()
    elif micro:
        raise _cannot(text, layout, text[position:], ".000000")
    zone = _zone(text, position)
    if zone is None:
        raise _cannot(text, layout, text[position:], "Z07:00")
    offset = timedelta(0)
    if zone[1]:
        hours, minutes = int(zone[2]), int(zone[3])
        if hours > 24:
            raise _out_of_range(text, "time zone offset hour")
        if minutes > 60:
            raise _out_of_range(text, "time zone offset minute")
        offset = timedelta(hours=hours, minutes=minutes) * (1 if zone[1] == "+" else -1)
    if zone.end() != len(text):
        raise ValueError(f"parsing time {_quoted(text)}: extra text: {_quoted(text[zone.end() :])}")
    year, month, day = fields["2006"], fields["01"], fields["02"]
    if not 1 <= day <= _days(year, month):
        raise _out_of_range(text, "day")
    # The calendar repeats every 400 years, and Python has no year 0.
    moved = 400 if year < 400 else -400 if year > 9000 else 0
    moment = datetime(year + moved, month, day, fields["15"], fields["04"], fields["05"], tzinfo=UTC) - offset
    try:
        return moment.replace(year=moment.year - moved), nanoseconds
    except ValueError:
        raise _out_of_range(text, "year") from None


#: Bounds that Go checks while parsing, and their names in its messages.
_RANGES: Final = {
    "01": (1, 12, "month"),
    "15": (0, 23, "hour"),
    "04": (0, 59, "minute"),
    "05": (0, 59, "second"),
}


def _days(year: int, month: int) -> int:
    if month == 2:
        return 29 if not year % 4 and (year % 100 or not year % 400) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def _cannot(text: str, layout: str, rest: str, part: str) -> ValueError:
    shown = f"cannot parse {_quoted(rest)} as {_quoted(part)}"
    return ValueError(f"parsing time {_quoted(text)} as {_quoted(layout)}: {shown}")


def _out_of_range(text: str, what: str) -> ValueError:
    return ValueError(f"parsing time {_quoted(text)}: {what} out of range")


def _quoted(text: str) -> str:
    """Quote a text as Go's package time does: non-printable characters are shown by their bytes."""
    shown = "".join(
        f"\\{char}" if char in '"\\' else char if " " <= char < "\x80" else _bytes_shown(char) for char in text
    )
    return f'"{shown}"'


def _bytes_shown(char: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in char.encode("utf-8", "surrogatepass"))
