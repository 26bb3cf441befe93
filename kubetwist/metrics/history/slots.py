"""Columns for the keys with the largest numbers; the rest is summed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Generic, TypeVar

from .ring import SampleRing

Key = TypeVar("Key")

#: Factor of a weight per sample: half of it remains after 10 minutes of samples each 10 seconds.
DECAY: Final = 0.5 ** (1 / 60)
#: A key takes the place of one whose weight is smaller by this factor.
_FACTOR: Final = 1.5
#: The smallest weight of a key without columns that is remembered.
_MIN_WEIGHT: Final = 0.01
#: The number of keys without columns that are remembered.
MAX_CANDIDATES: Final = 200


class Slots(Generic[Key]):
    """
    Assigns columns of a ring to keys.

    @ivar first: The first column.
    @ivar rest: The first column of the sum of all other keys.
    @ivar end: The column after the last one.
    """

    def __init__(self, ring: SampleRing, first: int, count: int, width: int, summed: Sequence[int]) -> None:
        """
        @param ring: The ring.
        @param first: The first column.
        @param count: The number of keys that have columns.
        @param width: The number of columns of a key.
        @param summed: Columns among them whose values are added to the rest when a key loses its columns.
        """
        self._ring = ring
        self.first = first
        self._width = width
        self._summed = summed
        self.rest = first + count * width
        self.end = self.rest + width
        self._free = list(range(first, self.rest, width))[::-1]
        self._assigned: dict[Key, int] = {}
        self._weights: dict[Key, float] = {}

    @property
    def assigned(self) -> Mapping[Key, int]:
        """Return the first column of each key that has columns."""
        return self._assigned

    def update(self, numbers: Mapping[Key, float]) -> None:
        """
        Assign the columns again, before a sample is added.

        @param numbers: By key: what the sample has counted.
        """
        weights = self._weights
        for key in weights:
            weights[key] *= DECAY
        for key, number in numbers.items():
            weights[key] = weights.get(key, 0.0) + number
            if key not in self._assigned and self._free:
                self._assigned[key] = self._free.pop()
        self._exchange()
        self._forget()

    def _exchange(self) -> None:
        """Give the columns of the smallest keys to larger ones."""
        weights, assigned = self._weights, self._assigned
        candidates = sorted((key for key in weights if key not in assigned), key=weights.__getitem__, reverse=True)
        for candidate in candidates:
            smallest = min(assigned, key=weights.__getitem__)
            if weights[candidate] <= _FACTOR * weights[smallest]:
                return
            column = assigned.pop(smallest)
            for offset in range(self._width):
                if offset in self._summed:
                    self._ring.add_column(column + offset, self.rest + offset)
                else:
                    self._ring.clear_column(column + offset)
            assigned[candidate] = column

    def _forget(self) -> None:
        """Limit the number of keys that are remembered."""
        weights = self._weights
        candidates = sorted(
            (key for key in weights if key not in self._assigned), key=weights.__getitem__, reverse=True
        )
        for number, key in enumerate(candidates):
            if number >= MAX_CANDIDATES or weights[key] < _MIN_WEIGHT:
                del weights[key]
