"""
Counting anew, for who looks: what was counted before a C{DELETE /metrics} is taken off.

Those who count know nothing of it. Plain histograms, and what is looked at rather than counted, stay as they are, as in
the reference.

@see: kubernetes/component-base, C{metrics/http.go}, C{metrics/registry.go}.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeAlias

from attrs import evolve

from .registry import Distribution, Family, Number, Reading, Registry
from .summaries import Summary

_COUNTED: Final = frozenset(("counter", "histogram", "summary"))
#: What nobody counts: it is told as it is.
_KEPT: Final = ("process_", "python_", "go_", "registered_metrics_", "disabled_metrics_", "hidden_metrics_")


#: The name of a metric, and the values of its labels.
SeriesKey: TypeAlias = tuple[str, tuple[str, ...]]
#: What a series was at a reset: a number, or the sum and the counts of a histogram.
Taken: TypeAlias = float | tuple[float, tuple[int, ...]]


def reading_of(family: Family[Number] | Family[Distribution]) -> Reading:
    """A family as it is now."""
    values = [(labels, one.value if isinstance(one, Number) else one) for labels, one in family.children()]
    return Reading(family.name, family.kind, family.text, family.labels, values)


class Baseline:
    """What there was at the last reset; nothing before the first."""

    def __init__(self) -> None:
        self._before: dict[SeriesKey, Taken] = {}

    def take(self, registry: Registry) -> Callable[[], None]:
        """
        Begin anew, in the reactor's thread.

        @return: What does the rest of it, in any thread: there may be thousands of series.
        """
        families = registry.families()
        readings = [*map(reading_of, families), *registry.readings()]
        for family in families:
            if family.kind == "gauge" and family.labels:
                family.clear()

        def write_down() -> None:
            before: dict[SeriesKey, Taken] = {}
            for reading in filter(_resets, readings):
                for labels, value in reading.values:
                    taken = (value.sum, tuple(value.counts)) if isinstance(value, Distribution) else value
                    before[reading.name, labels] = taken
            self._before = before

        return write_down

    def since(self, readings: Iterable[Reading]) -> Iterator[Reading]:
        """What has been counted since then, in any thread; series that nothing was counted in are left out."""
        before = self._before
        for reading in readings:
            yield evolve(reading, values=list(_since(reading, before))) if before and _resets(reading) else reading


def _resets(reading: Reading) -> bool:
    if reading.kind not in _COUNTED or reading.name.startswith(_KEPT):
        return False
    return bool(reading.labels) or reading.kind == "counter"


def _since(reading: Reading, before: dict[SeriesKey, Taken]) -> Iterator[tuple[tuple[str, ...], float | Distribution]]:
    for labels, value in reading.values:
        taken = before.get((reading.name, labels))
        if taken is None:
            yield labels, value
        elif isinstance(value, Distribution) and isinstance(taken, tuple):
            left = _less(value, *taken)
            if left.count:
                yield labels, left
        elif not (isinstance(value, Distribution) or isinstance(taken, tuple)):
            if value < taken:
                # What counts has begun anew by itself.
                yield labels, value
            elif value > taken or not labels:
                yield labels, value - taken


def _less(value: Distribution, total: float, counts: tuple[int, ...]) -> Distribution:
    left = value.copy() if isinstance(value, Summary) else Distribution(value.bounds)
    left.counts = [now - then for now, then in zip(value.counts, counts, strict=True)]
    left.sum = value.sum - total
    if min(left.counts) < 0:
        left.counts, left.sum = list(value.counts), value.sum
    return left
