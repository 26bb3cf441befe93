"""Summaries: quantiles of what was observed last, for who has no query language for histograms."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final

from .registry import Histogram

#: How many observations quantiles are of, at most.
_MOST: Final = 500
_QUANTILES: Final = (0.5, 0.9, 0.99)


class Summary(Histogram):
    """A histogram that keeps the newest observations, too; told of as a summary, or as a histogram, or both."""

    __slots__ = ("_recent",)

    def __init__(self, bounds: Sequence[float] = ()) -> None:
        super().__init__(bounds)
        self._recent: deque[float] = deque(maxlen=_MOST)

    def observe(self, value: float) -> None:
        """Count one observation."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value
        self._recent.append(value)

    def quantiles(self) -> Iterator[tuple[float, float]]:
        """Some of them, each with its value."""
        ordered = sorted(self._recent.copy())
        for quantile in _QUANTILES if ordered else ():
            yield quantile, ordered[min(int(quantile * len(ordered)), len(ordered) - 1)]

    def copy(self) -> Summary:
        """One of its own, with the same observations."""
        other = Summary(self.bounds)
        other.sum, other.counts, other._recent = self.sum, list(self.counts), self._recent.copy()
        return other
