"""Summaries: quantiles of the latest observations, for clients without histogram functions."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from .registry import Histogram

#: Number of observations from which quantiles are computed.
_MAX_RECENT: Final = 500
_QUANTILES: Final = (0.5, 0.9, 0.99)


class Summary(Histogram):
    """A histogram with the latest observations. It is exposed as a summary, a histogram, or both."""

    __slots__ = ("_recent",)

    def __init__(self, bounds: Sequence[float] = (), recent: Iterable[float] = ()) -> None:
        """
        @param recent: The latest observations so far.
        """
        super().__init__(bounds)
        self._recent: deque[float] = deque(recent, maxlen=_MAX_RECENT)

    def observe(self, value: float) -> None:
        """Add an observation."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value
        self._recent.append(value)

    def recent(self) -> list[float]:
        """Return the latest observations. May be called in any thread."""
        return list(self._recent.copy())

    def quantiles(self) -> Iterator[tuple[float, float]]:
        """Return the exposed quantiles with their values."""
        ordered = sorted(self._recent.copy())
        for quantile in _QUANTILES if ordered else ():
            yield quantile, ordered[min(int(quantile * len(ordered)), len(ordered) - 1)]

    def copy(self) -> Summary:
        """Return a copy."""
        other = Summary(self.bounds)
        other.sum, other.counts, other._recent = self.sum, list(self.counts), self._recent.copy()
        return other
