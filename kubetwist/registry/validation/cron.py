"""
The schedules of cron jobs: checked here, followed by whoever runs the jobs.

The grammar and the texts are those of C{github.com/robfig/cron}, ParseStandard.
"""

from __future__ import annotations

import re
from typing import Final

_BOUNDS: Final = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
_MONTHS: Final = {
    name: number
    for number, name in enumerate(
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"], 1
    )
}
_DAYS: Final = {name: number for number, name in enumerate(["sun", "mon", "tue", "wed", "thu", "fri", "sat"])}
_NAMES: Final[tuple[dict[str, int], ...]] = ({}, {}, {}, _MONTHS, _DAYS)
_DESCRIPTORS: Final = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")


class CronError(ValueError):
    """A schedule that makes no sense; the text tells why."""


def check_schedule(schedule: str) -> None:
    """
    Read a schedule.

    @raise CronError: It is none.
    """
    spec = schedule
    if spec.startswith(("TZ=", "CRON_TZ=")):
        zone, _, spec = spec.partition(" ")
        _zone(zone.partition("=")[2])
        spec = spec.strip()
    if spec.startswith("@"):
        _descriptor(spec)
        return
    fields = spec.split()
    if len(fields) != 5:
        raise CronError(f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")
    for field, (low, high), names in zip(fields, _BOUNDS, _NAMES, strict=True):
        for expression in field.split(","):
            _range(expression, low, high, names)


def _zone(name: str) -> None:
    import zoneinfo

    try:
        if name not in ("", "UTC", "Local"):
            zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise CronError(f"provided bad location {name}: unknown time zone {name}") from None


def _descriptor(text: str) -> None:
    if text in _DESCRIPTORS:
        return
    if text.startswith("@every "):
        duration = text[len("@every ") :]
        if re.fullmatch(r"[-+]?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+", duration):
            return
        raise CronError(f'failed to parse duration {text}: time: invalid duration "{duration}"')
    raise CronError(f"unrecognized descriptor: {text}")


def _range(expression: str, low: int, high: int, names: dict[str, int]) -> None:
    span, slash, step_text = expression.partition("/")
    if "/" in step_text:
        raise CronError(f"too many slashes: {expression}")
    first, dash, last = span.partition("-")
    if first in ("*", "?"):
        start, end = low, high
    else:
        start = end = _number(first, names)
        if dash:
            if "-" in last:
                raise CronError(f"too many hyphens: {expression}")
            end = _number(last, names)
    if slash:
        step = _plain_number(step_text)
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
