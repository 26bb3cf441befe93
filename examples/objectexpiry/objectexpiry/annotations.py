"""The annotations with the time at which an object expires."""

from __future__ import annotations

import re
from typing import Final

from kubetwist.api.jsontypes import JSONObject
from kubetwist.api.times import seconds_since_epoch

#: The domain of both annotations.
DOMAIN: Final = "expiry.example.org/"
#: A time such as C{2027-01-31T18:00:00Z}.
AT: Final = f"{DOMAIN}at"
#: A duration after the creation of the object, such as C{36h} or C{1d12h}.
AFTER: Final = f"{DOMAIN}after"

#: Maximum duration in seconds: 100 years.
MAX_DURATION: Final = 100 * 365 * 86400

_UNITS: Final = {"w": 604800, "d": 86400, "h": 3600, "m": 60, "s": 1}
_DURATION: Final = re.compile("".join(rf"(?:(?P<{unit}>[0-9]{{1,10}}){unit})?" for unit in _UNITS), re.ASCII)


def parse_duration(text: str) -> int:
    """
    Return the seconds of a duration.

    @param text: Numbers with units from large to small: C{1w2d3h4m5s}; at least one.
    @raise ValueError: It is no duration, or is longer than L{MAX_DURATION}.
    """
    match = _DURATION.fullmatch(text)
    if not text or match is None:
        raise ValueError(f"{text[:40]!r} is no duration such as 36h or 1d12h")
    seconds = sum(int(match[unit] or 0) * factor for unit, factor in _UNITS.items())
    if seconds > MAX_DURATION:
        raise ValueError(f"{text[:40]!r} is longer than 100 years")
    return seconds


def expiry_of(obj: JSONObject) -> float | None:
    """
    Return the time at which an object expires, in seconds since the epoch; the earlier one of both annotations.

    @return: L{None} for an object without annotations.
    @raise ValueError: An annotation is invalid; the text has its name.
    """
    metadata = obj["metadata"]
    annotations = metadata.get("annotations") or {}
    times = []
    if AT in annotations:
        try:
            times.append(seconds_since_epoch(annotations[AT]))
        except ValueError:
            raise ValueError(f"{AT}: {annotations[AT][:40]!r} is no time such as 2027-01-31T18:00:00Z") from None
    if AFTER in annotations:
        try:
            duration = parse_duration(annotations[AFTER])
        except ValueError as error:
            raise ValueError(f"{AFTER}: {error}") from None
        times.append(seconds_since_epoch(metadata["creationTimestamp"]) + duration)
    return min(times, default=None)
