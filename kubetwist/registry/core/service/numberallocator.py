"""Numbers that no two objects may share, and what is counted of their allocation."""

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
    """A number can not be had; the text tells why."""


class AllocatorMetrics:
    """
    How often numbers were wanted.

    @ivar given: How often one was got, C{"static"} where it was asked for by its name, C{"dynamic"} where any would do.
    @ivar refused: How often there was none to be had, likewise.
    @ivar seconds: How long it took.
    """

    def __init__(self) -> None:
        self.given = dict.fromkeys(_SCOPES, 0)
        self.refused = dict.fromkeys(_SCOPES, 0)
        self.seconds = Histogram(_SECONDS)

    def count(self, scope: str, take: Callable[[], _T]) -> _T:
        """
        Count one attempt.

        @raise AllocationError: C{take} has raised it.
        """
        began = perf_counter()
        try:
            taken = take()
        except AllocationError:
            self.refused[scope] += 1
            raise
        self.given[scope] += 1
        self.seconds.observe(perf_counter() - began)
        return taken


class NumberAllocator:
    """
    Which numbers are in use, and why: what is stored holds them, or a write that is under way.

    @ivar allocations: What is counted.
    """

    def __init__(self) -> None:
        self.allocations = AllocatorMetrics()
        #: How many hold each: a service, and the object of its address.
        self._held: dict[int, int] = {}
        self._taken: set[int] = set()

    def in_use(self, number: int) -> bool:
        """Whether nobody else can have a number."""
        return number in self._held or number in self._taken

    def add_reference(self, number: int) -> None:
        """Something that is stored has this number."""
        self._held[number] = self._held.get(number, 0) + 1

    def drop_reference(self, number: int) -> None:
        """Something that had it is gone, or has it no more."""
        left = self._held.get(number, 0) - 1
        if left > 0:
            self._held[number] = left
        else:
            self._held.pop(number, None)

    def take(self, number: int) -> None:
        """A write is under way that will have something hold it."""
        self._taken.add(number)

    def settle(self, number: int) -> None:
        """That write is over."""
        self._taken.discard(number)

    def pending(self) -> set[int]:
        """What writes that are not done yet will have something hold."""
        return set(self._taken)

    def pick(self, low: int, high: int) -> int | None:
        """A number from C{low} to C{high} that is free: by chance while many are, by search when few are."""
        if low > high:
            return None
        start: int = low
        for _ in range(16):
            start = random.randint(low, high)
            if not self.in_use(start):
                return start
        for step in range(min(high - low, self.most()) + 1):
            candidate = low + (start - low + step) % (high - low + 1)
            if not self.in_use(candidate):
                return candidate
        return None

    def most(self) -> int:
        """No more than so many are in use: a range may be far larger."""
        return len(self._held) + len(self._taken)
