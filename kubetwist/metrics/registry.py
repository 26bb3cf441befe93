"""
Counters, gauges and histograms, cheap to write to.

A child (one combination of label values) is looked up once by code that writes to it often. Writing changes an
attribute. There are no locks: all writes are in the reactor's thread. A thread that renders a histogram may see a sum
that is one observation ahead of the buckets, which no query notices.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Generic, TypeVar

from attrs import frozen

#: Children of one family at most. Labels are from closed sets; this is for the case that one is not after all.
MOST_CHILDREN: Final = 20_000


class Counter:
    """
    A counter, or a gauge.

    @ivar value: To be added to, or set.
    """

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0


class Histogram:
    """
    A histogram.

    @ivar counts: How many observations fell into each bucket and into no earlier one; the last has no bound.
    """

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        """Count one observation."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def observe_often(self, value: float, times: int) -> None:
        """Count so many equal observations."""
        self.counts[bisect_left(self.bounds, value)] += times
        self.sum += value * times

    def observe_all(self, values: Sequence[float], total: float) -> None:
        """
        Count many observations.

        @param values: In ascending order.
        @param total: Their sum.
        """
        counts, before, many = self.counts, 0, len(values)
        for place, bound in enumerate(self.bounds):
            up_to = bisect_right(values, bound)
            counts[place] += up_to - before
            before = up_to
            if up_to == many:
                break
        else:
            counts[-1] += many - before
        self.sum += total

    @property
    def count(self) -> int:
        """How many there were."""
        return sum(self.counts)


Child = TypeVar("Child", Counter, Histogram)


class Family(Generic[Child]):
    """
    All children of one name.

    @ivar metric_type: C{"counter"}, C{"gauge"} or C{"histogram"}.
    @ivar labels: Their names, in the order in which values are given.
    @ivar hidden: How many children are not told of, as there are too many.
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
        """The child with these values of the labels; made when it is first asked for."""
        child = self._children.get(values)
        if child is None:
            assert len(values) == len(self.labels), f"{self.name} has the labels {self.labels}, not {values}"
            child = self._make()
            if len(self._children) < MOST_CHILDREN:
                self._children[values] = child
            else:
                self.hidden += 1
        return child

    def delete_label_values(self, *values: str) -> None:
        """Tell no more of what is not there any more."""
        self._children.pop(values, None)

    def reset(self) -> None:
        """Tell of none of them; who has looked one up writes to it in vain from now on."""
        self._children.clear()

    def children(self) -> list[tuple[tuple[str, ...], Child]]:
        """All of them, as of now; from any thread."""
        return list(self._children.items())


class HighWatermark:
    """
    How many there are of something that comes and goes, and the most there were within the last second or so.

    @ivar count: How many there are now.
    """

    __slots__ = ("_high", "_last", "_now", "_until", "count")

    def __init__(self, now: Callable[[], float]) -> None:
        """
        @param now: Tells the time, in seconds; what others tell is by the same clock.
        """
        self._now = now
        self._until = 0.0
        self._high = self._last = self.count = 0

    def up(self, now: float) -> None:
        """There is one more."""
        if now >= self._until:
            self._turn(now)
        self.count += 1
        if self.count > self._high:
            self._high = self.count

    def down(self, now: float) -> None:
        """There is one less."""
        if now >= self._until:
            self._turn(now)
        self.count -= 1

    def most(self) -> int:
        """The most there were in this second and the one before."""
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
    What is looked at only when somebody asks.

    @ivar values: Values of the labels, with a number each, or the L{Histogram} of a histogram.
    """

    name: str
    metric_type: str
    help: str
    labels: Sequence[str]
    values: Iterable[tuple[tuple[str, ...], float | Histogram]]


class Registry:
    """The families of one server."""

    def __init__(self) -> None:
        self._families: dict[str, Family[Counter] | Family[Histogram]] = {}
        self._collectors: list[Callable[[], Iterable[MetricSnapshot]]] = []
        self._settling: list[Callable[[], object]] = []

    def counter(self, name: str, text: str, labels: Sequence[str] = ()) -> Family[Counter]:
        """A family of what only grows."""
        return self._add(Family(name, "counter", text, labels, Counter))

    def gauge(self, name: str, text: str, labels: Sequence[str] = ()) -> Family[Counter]:
        """A family of what goes up and down."""
        return self._add(Family(name, "gauge", text, labels, Counter))

    def histogram(self, name: str, text: str, bounds: Sequence[float], labels: Sequence[str] = ()) -> Family[Histogram]:
        """
        A family of what is distributed.

        @param bounds: The upper bounds of buckets, ascending.
        """
        bounds = tuple(bounds)
        return self._add(Family(name, "histogram", text, labels, lambda: Histogram(bounds)))

    def _add(self, family: Family[Child]) -> Family[Child]:
        if family.name in self._families:
            raise ValueError(f"there is a metric {family.name} already")
        self._families[family.name] = family
        return family

    def register_collector(self, collector: Callable[[], Iterable[MetricSnapshot]]) -> None:
        """Have C{collector} called, in the reactor's thread, whenever somebody wants to know."""
        self._collectors.append(collector)

    def add_flush_hook(self, settle: Callable[[], object]) -> None:
        """Have C{settle} called before anybody looks: it writes what was only noted until then."""
        self._settling.append(settle)

    def families(self) -> list[Family[Counter] | Family[Histogram]]:
        """Those that are written to, by name; to be called in the reactor's thread."""
        for settle in self._settling:
            settle()
        return [self._families[name] for name in sorted(self._families)]

    def collect(self) -> Iterator[MetricSnapshot]:
        """What is looked at now."""
        for collector in self._collectors:
            yield from collector()


def exponential(first: float, factor: float, count: int) -> tuple[float, ...]:
    """Bounds each of which is a multiple of the one before."""
    return tuple(first * factor**step for step in range(count))


def linear(first: float, width: float, count: int) -> tuple[float, ...]:
    """Bounds at equal distances."""
    return tuple(first + width * step for step in range(count))
