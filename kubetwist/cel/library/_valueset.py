"""Sets of CEL values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kubetwist.cel.errors import CostLimitExceeded
from kubetwist.cel.values import UInt, Value, equal

#: Python's equality of these is CEL's.
_NUMBERS: Final = frozenset((int, UInt, float))

#: Maximum number of comparisons of values other than strings and numbers; more would exceed every cost limit.
_MAX_COMPARISONS: Final = 10_000_000


class ValueSet:
    """A set of CEL values with CEL's equality; strings and numbers are hashed."""

    __slots__ = ("_comparisons", "_numbers", "_strings", "_unhashed")

    def __init__(self, values: Iterable[Value] = ()) -> None:
        self._strings: set[str] = set()
        self._numbers: set[float] = set()
        self._unhashed: list[Value] = []
        self._comparisons = 0
        for value in values:
            self.add(value)

    def add(self, value: Value) -> None:
        """Add a value."""
        kind = type(value)
        if kind is str:
            self._strings.add(value)
        elif kind in _NUMBERS:
            self._numbers.add(value)
        else:
            self._unhashed.append(value)

    def __contains__(self, value: Value) -> bool:
        kind = type(value)
        if kind is str:
            return value in self._strings
        if kind in _NUMBERS:
            # NaN equals no number, not even itself.
            return value == value and value in self._numbers
        self._comparisons += len(self._unhashed)
        if self._comparisons > _MAX_COMPARISONS:
            raise CostLimitExceeded
        return any(equal(value, other) for other in self._unhashed)
