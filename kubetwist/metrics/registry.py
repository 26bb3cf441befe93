"""
Counters, gauges and histograms that are cheap to write to.

Code that writes often looks up a child (one combination of label values) once. Writing changes an attribute. There are
no locks, as all writes are in the reactor's thread. A thread that renders a histogram may see a sum that is one
observation ahead of the buckets, which queries tolerate.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Final, Generic, TypeVar

from attrs import frozen

#: Maximum number of children per family, as a protection against labels with unbounded values.
MAX_CHILDREN: Final = 20_000


class Counter:
    """
    The value of a counter or a gauge.

    @ivar value: The current value. Counters only increase.
    """

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0


class Histogram:
    """
    A histogram.

    @ivar counts: Observations per bucket, not cumulative. The last bucket has no upper bound.
    """

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        """Add an observation."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def observe_often(self, value: float, times: int) -> None:
        """Add C{times} equal observations."""
        self.counts[bisect_left(self.bounds, value)] += times
        self.sum += value * times

    def observe_all(self, values: Sequence[float], total: float) -> None:
        """
        Add many observations.

        @param values: The observed values in ascending order.
        @param total: Sum of the values.
        """
        counts, below, total_count = self.counts, 0, len(values)
        for index, bound in enumerate(self.bounds):
            up_to = bisect_right(values, bound)
            counts[index] += up_to - below
            below = up_to
            if up_to == total_count:
                break
        else:
            counts[-1] += total_count - below
        self.sum += total

    @property
    def count(self) -> int:
        """Return the number of observations."""
        return sum(self.counts)


Child = TypeVar("Child", Counter, Histogram)


class Family(Generic[Child]):
    """
    A metric with its children (client_golang: a metric vector).

    @ivar metric_type: C{"counter"}, C{"gauge"} or C{"histogram"}.
    @ivar labels: Names of the labels, in the order of the values.
    @ivar hidden: Number of children above the limit, which are not exposed.
    """

    def __init__(self, name: str, kind: str, text: str, labels: Sequence[str], make: Callable[[], Child]) -> None:
        self.name = name
        self.metric_type = kind
        self.help = text
        self.labels = tuple(labels)
        self.hidden = 0
        self._make: Callable[[], Child] = make
        self._children: dict[tuple[str, ...], Child] = {}

    def with_label_values(self, *values: str) -> Child:
        """Return the child with these label values. It is created if it does not exist."""
        child = self._children.get(values)
        if child is None:
            assert len(values) == len(self.labels), f"{self.name} has the labels {self.labels}, not {values}"
            child = self._make()
            if len(self._children) < MAX_CHILDREN:
                self._children[values] = child
            else:
                self.hidden += 1
        return child

    def delete_label_values(self, *values: str) -> None:
        """Delete the child with these label values."""
        self._children.pop(values, None)

    def reset(self) -> None:
        """Delete all children. Writes to children that were looked up before are lost."""
        self._children.clear()

    def children(self) -> list[tuple[tuple[str, ...], Child]]:
        """Return all children with their label values. May be called in any thread."""
        return list(self._children.items())


class HighWatermark:
    """
    A gauge with its maximum in the last one to two seconds.

    @ivar count: The current value.
    """

    __slots__ = ("_high", "_last", "_now", "_until", "count")

    def __init__(self, now: Callable[[], float]) -> None:
        """
        @param now: Returns the time in seconds, of the clock that L{up} and L{down} use.
        """
        self._now = now
        self._until = 0.0
        self._high = self._last = self.count = 0

    def up(self, now: float) -> None:
        """Increment the gauge."""
        if now >= self._until:
            self._turn(now)
        self.count += 1
        if self.count > self._high:
            self._high = self.count

    def down(self, now: float) -> None:
        """Decrement the gauge."""
        if now >= self._until:
            self._turn(now)
        self.count -= 1

    def maximum(self) -> int:
        """Return the maximum in this second and the one before."""
        now = self._now()
        if now >= self._until:
            self._turn(now)
        return max(self._last, self._high)

    def _turn(self, now: float) -> None:
        self._last = self._high if now < self._until + 1.0 else self.count
        self._high = self.count
        self._until = now + 1.0


@frozen
class MetricSnapshot:
    """
    A metric family at a point in time.

    @ivar metric_type: C{"counter"}, C{"gauge"}, C{"histogram"} or C{"summary"}.
    @ivar help: Help text.
    @ivar labels: Names of the labels.
    @ivar values: Label values with a number, or with a L{Histogram}.
    """

    name: str
    metric_type: str
    help: str
    labels: Sequence[str]
    values: Iterable[tuple[tuple[str, ...], float | Histogram]]


class Registry:
    """The metric families and collectors of one server."""

    def __init__(self) -> None:
        self._families: dict[str, Family[Counter] | Family[Histogram]] = {}
        self._collectors: list[Callable[[], Iterable[MetricSnapshot]]] = []
        self._flush_hooks: list[Callable[[], Iterable[object]]] = []

    def counter(self, name: str, text: str, labels: Sequence[str] = ()) -> Family[Counter]:
        """Register a counter family."""
        return self._add(Family(name, "counter", text, labels, Counter))

    def gauge(self, name: str, text: str, labels: Sequence[str] = ()) -> Family[Counter]:
        """Register a gauge family."""
        return self._add(Family(name, "gauge", text, labels, Counter))

    def histogram(self, name: str, text: str, bounds: Sequence[float], labels: Sequence[str] = ()) -> Family[Histogram]:
        """
        Register a histogram family.

        @param name: Name of the metric.
        @param text: Help text.
        @param bounds: Upper bounds of the buckets, ascending.
        @param labels: Names of the labels.
        """
        bounds = tuple(bounds)
        return self._add(Family(name, "histogram", text, labels, lambda: Histogram(bounds)))

    def _add(self, family: Family[Child]) -> Family[Child]:
        if family.name in self._families:
            raise ValueError(f"metric {family.name} is already registered")
        self._families[family.name] = family
        return family

    def register_collector(self, collector: Callable[[], Iterable[MetricSnapshot]]) -> None:
        """Register a function that returns snapshots. It is called in the reactor's thread at each scrape."""
        self._collectors.append(collector)

    def add_flush_hook(self, flush: Callable[[], Iterable[object]]) -> None:
        """
        Register a function that writes buffered observations. It is called before each scrape.

        @param flush: Returns an iterator that writes a small part at each step.
        """
        self._flush_hooks.append(flush)

    def flush(self) -> Iterator[object]:
        """Add buffered observations to the families, a small part at each step. Call it in the reactor's thread."""
        return chain.from_iterable(flush() for flush in self._flush_hooks)

    def find(self, name: str) -> Family[Counter] | Family[Histogram] | None:
        """Return the family with this name; L{None} if there is none."""
        return self._families.get(name)

    def families(self) -> list[Family[Counter] | Family[Histogram]]:
        """Flush buffered observations, and return the families sorted by name. Call it in the reactor's thread."""
        for _ in self.flush():
            pass
        return [self._families[name] for name in sorted(self._families)]

    def collect(self) -> Iterator[MetricSnapshot]:
        """Return the snapshots of all collectors."""
        for collector in self._collectors:
            yield from collector()


def exponential(first: float, factor: float, count: int) -> tuple[float, ...]:
    """Return exponentially growing bucket bounds."""
    return tuple(first * factor**step for step in range(count))


def linear(first: float, width: float, count: int) -> tuple[float, ...]:
    """Return equidistant bucket bounds."""
    return tuple(first + width * step for step in range(count))
