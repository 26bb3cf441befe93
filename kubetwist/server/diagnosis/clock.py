"""Checks of the clock: synchronization, and the difference to other servers."""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

from attrs import frozen

from .findings import Finding, error, note, ok, warning

#: The time before which no clock can be right: the release of Kubernetes 1.36.
_OLDEST: Final = datetime(2026, 4, 1, tzinfo=UTC)
#: Differences to other servers in seconds. Leases last 15 s; certificates are backdated by 5 minutes. Smaller ones than
#: this cannot be measured by the Date header.
WARNED_SKEW: Final = 2.0
_FAILED_SKEW: Final = 60.0
#: See adjtimex(2).
_UNSYNCHRONIZED: Final = 5
_STATUS_UNSYNC: Final = 0x40
_SIZE: Final = 1024


@frozen
class ClockFacts:
    """
    Facts about the clock.

    @ivar now: The present time.
    @ivar synchronized: Whether the kernel takes the clock to be synchronized; L{None} if it does not say.
    """

    now: datetime
    synchronized: bool | None


def kernel_synchronized() -> bool | None:
    """Return whether a time service has synchronized the clock of the kernel; L{None} if it cannot be read."""
    try:
        library = ctypes.CDLL(ctypes.util.find_library("c"), use_errno=True)
        # All fields are 0: nothing is set. The structure is smaller than this buffer.
        buffer = ctypes.create_string_buffer(_SIZE)
        state = library.adjtimex(buffer)
    except (OSError, AttributeError, TypeError):
        return None
    if state < 0:
        return None
    # struct timex: modes (unsigned int), then longs offset, freq, maxerror, esterror; then the int status.
    long = ctypes.sizeof(ctypes.c_long)
    status = ctypes.c_int.from_buffer(buffer, long * 5).value
    return state != _UNSYNCHRONIZED and not status & _STATUS_UNSYNC


def judge_clock(facts: ClockFacts) -> Iterator[Finding]:
    """Judge the facts."""
    if facts.now < _OLDEST:
        yield error(
            "clock/time",
            f"the clock shows {facts.now:%Y-%m-%d %H:%M} UTC, which is in the past",
            "set the clock: certificates that are valid appear not to be valid yet",
        )
    if facts.synchronized is None:
        yield note("clock/synchronization", "the kernel does not report whether the clock is synchronized")
    elif facts.synchronized:
        yield ok("clock/synchronization", "the clock is synchronized")
    else:
        yield note(
            "clock/synchronization",
            "the kernel does not take the clock to be synchronized",
            "run a time service such as chrony or systemd-timesyncd; in a container, on the machine below",
        )


def judge_skews(skews: Mapping[str, float]) -> Iterator[Finding]:
    """
    Judge differences of clocks.

    @param skews: Seconds by which this clock is ahead, by the names of other servers. The Date header,
        which they come from, has whole seconds.
    """
    for name, skew in sorted(skews.items()):
        yield _judge_skew(name, skew)


def _judge_skew(name: str, skew: float) -> Finding:
    direction = "ahead of" if skew > 0 else "behind"
    message = f"the clock is {abs(skew):.1f} s {direction} the one of {name}"
    remedy = "synchronize the clocks: expiry of leases, tokens and certificates depends on them"
    if abs(skew) >= _FAILED_SKEW:
        return error("clock/skew", message, remedy)
    if abs(skew) >= WARNED_SKEW:
        return warning("clock/skew", message, remedy)
    return ok("clock/skew", f"the clock agrees with {name}, within {WARNED_SKEW:g} s")
