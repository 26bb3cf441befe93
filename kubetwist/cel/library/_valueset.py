"""Membership in lists, without comparing each element where possible."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kubetwist.cel.errors import CostLimitExceeded
from kubetwist.cel.values import UInt, Value, equal

#: Python's equality of these is CEL's.
_NUMBERS: Final = frozenset((int, UInt, float))

#: Comparisons of other values than texts and numbers; nothing that may be evaluated could pay for more.
_MAX_COMPARISONS: Final = 10_000_000


class ValueSet:
    """Values that were added; none equals another type's but numbers."""

    __slots__ = ("_comparisons", "_numbers", "_others", "_texts")

    def __init__(self, values: Iterable[Value] = ()) -> None:
        self._texts: set[str] = set()
        self._numbers: set[float] = set()
        self._others: list[Value] = []
        self._comparisons = 0
        for value in values:
            self.add(value)

    def add(self, value: Value) -> None:
        """Take a value in."""
        kind = type(value)
        if kind is str:
            self._texts.add(value)
        elif kind in _NUMBERS:
            self._numbers.add(value)
        else:
            self._others.append(value)

    def __contains__(self, value: Value) -> bool:
        kind = type(value)
        if kind is str:
            return value in self._texts
        if kind in _NUMBERS:
            # NaN equals no number, not even itself.
            return value == value and value in self._numbers
        self._comparisons += len(self._others)
        if self._comparisons > _MAX_COMPARISONS:
            raise CostLimitExceeded
        return any(equal(value, other) for other in self._others)
