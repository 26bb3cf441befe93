"""Rate limits for repeated log lines, so that clients cannot flood the log. No I/O: the caller passes the time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable

#: Number of lines of one kind that are logged per second.
LINES_PER_SECOND = 20


class RateLimiter:
    """Allows a number of lines per second, and reports the number of suppressed lines when the next second begins."""

    def __init__(self, report: Callable[[int], object], per_second: int = LINES_PER_SECOND) -> None:
        """
        @param report: Called with the number of suppressed lines, if there are any.
        @param per_second: Maximum number of lines per second.
        """
        self._report = report
        self._per_second = per_second
        self._second = 0.0
        self._count = 0

    def allow(self, now: float) -> bool:
        """
        Count a line, and return whether it may be logged.

        @param now: Seconds of a monotonic clock.
        """
        if now - self._second >= 1:
            if self._count > self._per_second:
                self._report(self._count - self._per_second)
            self._second, self._count = now, 0
        self._count += 1
        return self._count <= self._per_second


class RepeatFilter:
    """Recognizes repeated events, in bounded memory."""

    def __init__(self, interval: float, size: int = 1024) -> None:
        """
        @param interval: Seconds during which an event is a repetition.
        @param size: Maximum number of remembered events. The oldest are forgotten first.
        """
        self._interval = interval
        self._size = size
        self._seen: OrderedDict[Hashable, float] = OrderedDict()

    def is_new(self, event: Hashable, now: float) -> bool:
        """Return whether C{event} did not occur within the interval before C{now}, and remember it then."""
        last = self._seen.get(event)
        if last is not None and now - last < self._interval:
            return False
        self._seen[event] = now
        self._seen.move_to_end(event)
        if len(self._seen) > self._size:
            self._seen.popitem(last=False)
        return True
