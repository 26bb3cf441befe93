"""A ring of samples: a table of numbers with a fixed size, whose oldest row is overwritten."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from math import isnan, nan

#: The value of a column that a sample lacks.
MISSING = nan


class SampleRing:
    """
    The latest samples of a fixed set of columns, in single precision.

    @ivar capacity: The number of samples that are kept.
    @ivar count: The number of samples so far, at most C{capacity}.
    """

    def __init__(self, columns: int, capacity: int) -> None:
        """
        @param columns: The number of columns.
        @param capacity: The number of samples that are kept.
        """
        self.capacity = capacity
        self.count = 0
        self._next = 0
        self._times = array("d", bytes(8 * capacity))
        self._columns = [array("f", [MISSING]) * capacity for _ in range(columns)]

    @property
    def size(self) -> int:
        """Return the size of the numbers in bytes."""
        return sum(one.itemsize * len(one) for one in (self._times, *self._columns))

    def append(self, time: float, values: Mapping[int, float]) -> None:
        """
        Add a sample, which may replace the oldest one.

        @param time: Seconds since 1970-01-01.
        @param values: Values by the number of the column; all other columns have none.
        """
        row = self._next
        self._times[row] = time
        get = values.get
        for number, column in enumerate(self._columns):
            column[row] = get(number, MISSING)
        self._next = (row + 1) % self.capacity
        self.count = min(self.count + 1, self.capacity)

    def newer_than(self, time: float) -> int:
        """Return the number of samples after the last one that is not newer than C{time}."""
        for newest in range(self.count):
            if self._times[self._next - 1 - newest] <= time:
                return newest
        return self.count

    def times(self, newest: int) -> array[float]:
        """Return the times of the newest samples, the oldest first."""
        return self._newest(self._times, newest)

    def values(self, column: int, newest: int) -> array[float]:
        """Return the values of a column in the newest samples, the oldest first."""
        return self._newest(self._columns[column], newest)

    def _newest(self, column: array[float], newest: int) -> array[float]:
        start = self._next - newest
        return column[start : self._next] if start >= 0 else column[start:] + column[: self._next]

    def clear_column(self, column: int) -> None:
        """Remove all values of a column."""
        self._columns[column] = array("f", [MISSING]) * self.capacity

    def add_column(self, source: int, target: int) -> None:
        """Add the values of a column to another one, and remove them."""
        added, sums = self._columns[source], self._columns[target]
        for row, value in enumerate(added):
            if not isnan(value):
                sums[row] = value if isnan(sums[row]) else sums[row] + value
        self.clear_column(source)
