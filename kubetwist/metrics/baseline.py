"""
Reset of metrics by C{DELETE /metrics}: values at the reset are subtracted from later snapshots.

The code that writes metrics is not involved. As in kube-apiserver, histograms without labels and metrics that are
computed during a scrape are not reset.

@see: kubernetes/component-base, C{metrics/http.go}, C{metrics/registry.go}.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeAlias

from attrs import evolve

from .registry import Counter, Family, Histogram, MetricSnapshot, Registry
from .summaries import Summary

_CUMULATIVE_TYPES: Final = frozenset(("counter", "histogram", "summary"))
#: Prefixes of metrics that are not reset.
_NOT_RESET: Final = ("process_", "python_", "go_", "registered_metrics_", "disabled_metrics_", "hidden_metrics_")


#: The name of a metric and its label values.
SeriesKey: TypeAlias = tuple[str, tuple[str, ...]]
#: Value of a series at a reset: a number, or the sum and counts of a histogram.
BaselineValue: TypeAlias = float | tuple[float, tuple[int, ...]]


def snapshot_of(family: Family[Counter] | Family[Histogram]) -> MetricSnapshot:
    """Return the current snapshot of a family."""
    values = [(labels, one.value if isinstance(one, Counter) else one) for labels, one in family.children()]
    return MetricSnapshot(family.name, family.metric_type, family.help, family.labels, values)


class Baseline:
    """The values at the last reset. Empty before the first one."""

    def __init__(self) -> None:
        self._baseline: dict[SeriesKey, BaselineValue] = {}

    def take(self, registry: Registry) -> Callable[[], None]:
        """
        Read the values for a reset, in the reactor's thread.

        @return: A function that completes the reset. It may run in any thread, as there may be thousands of series.
        """
        families = registry.families()
        snapshots = [*map(snapshot_of, families), *registry.collect()]
        for family in families:
            if family.metric_type == "gauge" and family.labels:
                family.reset()

        def complete() -> None:
            baseline: dict[SeriesKey, BaselineValue] = {}
            for snapshot in filter(_resets, snapshots):
                for labels, value in snapshot.values:
                    baseline_value = (value.sum, tuple(value.counts)) if isinstance(value, Histogram) else value
                    baseline[snapshot.name, labels] = baseline_value
            self._baseline = baseline

        return complete

    def since(self, snapshots: Iterable[MetricSnapshot]) -> Iterator[MetricSnapshot]:
        """Return the differences since the reset, without unchanged series. May run in any thread."""
        baseline = self._baseline
        for snapshot in snapshots:
            yield (
                evolve(snapshot, values=list(_since(snapshot, baseline)))
                if baseline and _resets(snapshot)
                else snapshot
            )


def _resets(snapshot: MetricSnapshot) -> bool:
    if snapshot.metric_type not in _CUMULATIVE_TYPES or snapshot.name.startswith(_NOT_RESET):
        return False
    return bool(snapshot.labels) or snapshot.metric_type == "counter"


def _since(
    snapshot: MetricSnapshot, baseline: dict[SeriesKey, BaselineValue]
) -> Iterator[tuple[tuple[str, ...], float | Histogram]]:
    for labels, value in snapshot.values:
        baseline_value = baseline.get((snapshot.name, labels))
        if baseline_value is None:
            yield labels, value
        elif isinstance(value, Histogram) and isinstance(baseline_value, tuple):
            difference = _subtract(value, *baseline_value)
            if difference.count:
                yield labels, difference
        elif not (isinstance(value, Histogram) or isinstance(baseline_value, tuple)):
            if value < baseline_value:
                # The counter itself was reset.
                yield labels, value
            elif value > baseline_value or not labels:
                yield labels, value - baseline_value


def _subtract(value: Histogram, total: float, counts: tuple[int, ...]) -> Histogram:
    difference = value.copy() if isinstance(value, Summary) else Histogram(value.bounds)
    difference.counts = [current - previous for current, previous in zip(value.counts, counts, strict=True)]
    difference.sum = value.sum - total
    if min(difference.counts) < 0:
        difference.counts, difference.sum = list(value.counts), value.sum
    return difference
