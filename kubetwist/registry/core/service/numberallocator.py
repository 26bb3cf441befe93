"""Allocation of unique numbers, and its metrics."""

from __future__ import annotations

import random
from collections.abc import Callable
from time import perf_counter
from typing import Final, TypeVar

from ....metrics.registry import Histogram

_SCOPES: Final = ("static", "dynamic")
_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_T = TypeVar("_T")


class AllocationError(Exception):
    """The error for a number that cannot be allocated; the message is the reason."""


class AllocatorMetrics:
    """
    Metrics of an allocator, by scope: C{static} for requested numbers, C{dynamic} for any.

    @ivar allocations_total: Numbers of successful allocations.
    @ivar allocation_errors_total: Numbers of failed allocations.
    @ivar seconds: Durations of successful allocations, in seconds.
    """

    def __init__(self) -> None:
        self.allocations_total = dict.fromkeys(_SCOPES, 0)
        self.allocation_errors_total = dict.fromkeys(_SCOPES, 0)
        self.seconds = Histogram(_SECONDS)

    def observe(self, scope: str, allocate: Callable[[], _T]) -> _T:
        """
        Call C{allocate} and count the attempt.

        @param scope: C{"static"} or C{"dynamic"}.
        @param allocate: Allocates a number.
        @raise AllocationError: C{allocate} raised it.
        """
        began = perf_counter()
        try:
            result = allocate()
        except AllocationError:
            self.allocation_errors_total[scope] += 1
            raise
        self.allocations_total[scope] += 1
        self.seconds.observe(perf_counter() - began)
        return result


class NumberAllocator:
    """
    Base class of allocators: the numbers of stored objects, and those reserved by pending writes.

    @ivar allocations: The metrics.
    """

    def __init__(self) -> None:
        self.allocations = AllocatorMetrics()
        #: Number of stored objects that use each number, such as a service and its IPAddress object.
        self._references: dict[int, int] = {}
        self._pending: set[int] = set()

    def in_use(self, number: int) -> bool:
        """Return whether a number is used or reserved."""
        return number in self._references or number in self._pending

    def add_reference(self, number: int) -> None:
        """Add one reference of a stored object to a number."""
        self._references[number] = self._references.get(number, 0) + 1

    def drop_reference(self, number: int) -> None:
        """Drop one reference of a stored object to a number."""
        references = self._references.get(number, 0) - 1
        if references > 0:
            self._references[number] = references
        else:
            self._references.pop(number, None)

    def mark_pending(self, number: int) -> None:
        """Reserve a number for a pending write."""
        self._pending.add(number)

    def finish(self, number: int) -> None:
        """Drop the reservation of a finished write."""
        self._pending.discard(number)

    def pending(self) -> set[int]:
        """Return the numbers reserved by pending writes."""
        return set(self._pending)

    def pick(self, low: int, high: int) -> int | None:
        """Return a free number from C{low} to C{high}, random if possible; L{None} if there is none."""
        if low > high:
            return None
        start: int = low
        for _ in range(16):
            start = random.randint(low, high)
            if not self.in_use(start):
                return start
        for step in range(min(high - low, self.max_in_use()) + 1):
            candidate = low + (start - low + step) % (high - low + 1)
            if not self.in_use(candidate):
                return candidate
        return None

    def max_in_use(self) -> int:
        """Return an upper bound of the numbers in use."""
        return len(self._references) + len(self._pending)
