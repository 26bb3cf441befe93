"""
Options of metrics: disabled metrics, hidden metrics, and allow lists of label values.

They are applied to snapshots when metrics are rendered. The code that writes metrics is not involved.

@see: kubernetes/component-base, C{metrics/options.go}, C{metrics/api/v1/config.go}.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from attrs import evolve, field, frozen

from .registry import (
    Histogram,
    MetricSnapshot,
)
from .stability import (
    deprecated_in,
    described,
    is_hidden,
    level_of,
)

#: Replaces label values that are not in the allow list.
UNEXPECTED: Final = "unexpected"

Values = list[tuple[tuple[str, ...], "float | Histogram"]]


@frozen
class MetricsOptions:
    """
    Options that select and change the exposed metrics.

    @ivar release: The emulated Kubernetes release: major and minor number.
    @ivar disabled: Names of disabled metrics.
    @ivar allowed: Allowed values by metric and label.
    @ivar hidden: Whether metrics that the release hides are exposed.
    """

    release: tuple[int, int]
    disabled: frozenset[str] = frozenset()
    allowed: Mapping[tuple[str, str], frozenset[str]] = field(factory=dict)
    hidden: bool = False

    def apply(self, snapshots: Iterable[MetricSnapshot]) -> Iterator[MetricSnapshot]:
        """
        Return the exposed snapshots, and the metrics about metrics.

        @param snapshots: One snapshot per name.
        """
        registered: dict[tuple[str, ...], float] = {}
        hidden_count = unexpected = 0
        for snapshot in snapshots:
            name = snapshot.name
            if not self._is_exposed(name):
                hidden_count += 1
                continue
            level = level_of(name)
            if level:
                key = (level, deprecated_in(name))
                registered[key] = registered.get(key, 0.0) + 1
            values = list(snapshot.values)
            restricted = [self.allowed.get((name, label)) for label in snapshot.labels] if self.allowed else ()
            if any(restricted):
                values, replaced = _restrict(snapshot.metric_type, values, restricted)
                unexpected += replaced
            yield evolve(snapshot, help=described(name, snapshot.help, self.release), values=values)
        yield from self._metrics_of_metrics(registered, hidden_count, unexpected)

    def _is_exposed(self, name: str) -> bool:
        return name not in self.disabled and (self.hidden or not is_hidden(name, self.release))

    def _metrics_of_metrics(
        self, registered: dict[tuple[str, ...], float], hidden_count: int, unexpected: int
    ) -> Iterator[MetricSnapshot]:
        for name, text, labels, values in (
            (
                "registered_metrics_total",
                "Number of registered metrics by stability level and deprecation version.",
                ("stability_level", "deprecated_version"),
                list(registered.items()),
            ),
            ("disabled_metrics_total", "Number of disabled metrics.", (), [((), float(len(self.disabled)))]),
            ("hidden_metrics_total", "Number of hidden metrics.", (), [((), float(hidden_count))]),
            (
                "cardinality_enforcement_unexpected_categorizations_total",
                "Number of unexpected categorizations during cardinality enforcement.",
                (),
                [((), float(unexpected))],
            ),
        ):
            if self._is_exposed(name):
                yield MetricSnapshot(name, "counter", described(name, text, self.release), labels, values)


def _restrict(kind: str, values: Values, restricted: Sequence[frozenset[str] | None]) -> tuple[Values, int]:
    """
    Replace label values that are not allowed, and merge series with equal labels.

    @return: The values, and the number of observations, or the increments of counters, with replaced label values.
    """
    merged: dict[tuple[str, ...], float | Histogram] = {}
    unexpected = 0
    for labels, value in values:
        new_labels = tuple(
            label if allowed is None or label in allowed else UNEXPECTED
            for label, allowed in zip(labels, restricted, strict=True)
        )
        if new_labels != labels:
            unexpected += value.count if isinstance(value, Histogram) else int(value) if kind == "counter" else 0
        merged[new_labels] = _sum(merged.get(new_labels), value)
    return list(merged.items()), unexpected


def _sum(one: float | Histogram | None, other: float | Histogram) -> float | Histogram:
    if isinstance(other, Histogram):
        return merge_histograms([one, other] if isinstance(one, Histogram) else [other])
    return other + one if isinstance(one, (int, float)) else other


def merge_histograms(histograms: Sequence[Histogram]) -> Histogram:
    """Return the sum of one or more histograms with the same bounds."""
    total = Histogram(histograms[0].bounds)
    for histogram in histograms:
        total.sum += histogram.sum
        total.counts = [sum(pair) for pair in zip(total.counts, histogram.counts, strict=True)]
    return total
