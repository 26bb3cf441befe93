"""What histograms and counters have counted since the last sample, and quantiles of it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from operator import add

from attrs import define, field

from ..registry import Histogram
from .ring import MISSING


@define
class Observations:
    """
    The observations of a histogram in some time.

    @ivar total: Sum of the observed values.
    @ivar counts: Observations per bucket; empty without any.
    """

    total: float = 0.0
    counts: list[int] = field(factory=list)

    @property
    def count(self) -> int:
        """Return the number of observations."""
        return sum(self.counts)

    def add(self, other: Observations) -> None:
        """Add observations in the same buckets."""
        self.total += other.total
        if not self.counts:
            self.counts = list(other.counts)
        elif other.counts:
            self.counts = list(map(add, self.counts, other.counts))

    def quantile(self, q: float, bounds: Sequence[float]) -> float:
        """
        Estimate the q-quantile by linear interpolation in a bucket.

        The mean limits the estimate: at most the share 1 - q of positive values is above the mean, divided by 1 - q
        (Markov's inequality). Without this limit, all latencies below the first bound would look alike.

        @param q: Between 0 and 1, less than 1.
        @param bounds: Upper bounds of the buckets.
        @return: NaN without observations; the highest bound if the quantile is above it.
        """
        count = self.count
        if not count:
            return MISSING
        rank, below, low = q * count, 0, 0.0
        for bound, here in zip(bounds, self.counts, strict=False):
            if here and below + here >= rank:
                low += (bound - low) * (rank - below) / here
                break
            below, low = below + here, bound
        return min(low, self.total / count / (1 - q))


class HistogramIncrements:
    """Remembers the counts of histograms, by any key."""

    def __init__(self) -> None:
        self._before: dict[Hashable, tuple[float, list[int]]] = {}

    def take(self, key: Hashable, histogram: Histogram) -> Observations | None:
        """
        Return what a histogram has observed since the last call with this key; L{None} for nothing.

        A histogram whose counts are smaller than before was reset: everything in it is new.
        """
        counts = histogram.counts
        before = self._before.get(key)
        if before is None:
            if not any(counts):
                return None
            increment = Observations(histogram.sum, list(counts))
        elif before[1] == counts:
            return None
        else:
            changes = [now - then for now, then in zip(counts, before[1], strict=True)]
            if min(changes) < 0:
                increment = Observations(histogram.sum, list(counts))
            else:
                increment = Observations(histogram.sum - before[0], changes)
        self._before[key] = histogram.sum, list(counts)
        return increment

    def take_all(self, histograms: Iterable[tuple[Hashable, Histogram]]) -> Observations:
        """Return the sum of what histograms with the same buckets have observed."""
        total = Observations()
        for key, histogram in histograms:
            increment = self.take(key, histogram)
            if increment is not None:
                total.add(increment)
        return total


class CounterIncrements:
    """Remembers the values of counters, by any key."""

    def __init__(self) -> None:
        self._before: dict[Hashable, float] = {}

    def take(self, key: Hashable, value: float) -> float:
        """Return the increase of a counter since the last call with this key. A counter that is smaller was reset."""
        before = self._before.get(key, 0.0)
        if value == before:
            return 0.0
        self._before[key] = value
        return value - before if value > before else value
