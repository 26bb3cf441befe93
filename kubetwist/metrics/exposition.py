"""
Prometheus' text format, version 0.0.4.

prometheus_client adds C{_total} to the names of counters, which some counters of Kubernetes lack. Therefore this module
writes the format. The metrics of the process come from prometheus_client.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from attrs import evolve

from .baseline import snapshot_of
from .registry import Counter, Family, Histogram, MetricSnapshot
from .summaries import Summary

CONTENT_TYPE: Final = b"text/plain; version=0.0.4; charset=utf-8; escaping=underscores"


def render(
    families: Iterable[Family[Counter] | Family[Histogram]],
    snapshots: Iterable[MetricSnapshot],
    *steps: Callable[[Iterable[MetricSnapshot]], Iterable[MetricSnapshot]],
) -> bytes:
    """
    Return all metrics in the text format, sorted by name. May run in any thread.

    @param families: Families of the registry.
    @param snapshots: Snapshots of the collectors.
    @param steps: Filters that are applied to the snapshots in this order.
    """
    filtered: Iterable[MetricSnapshot] = merge(families, snapshots)
    for step in steps:
        filtered = step(filtered)
    blocks = {snapshot.name: _block(snapshot) for snapshot in filtered}
    return "".join(blocks[name] for name in sorted(blocks)).encode()


def merge(
    families: Iterable[Family[Counter] | Family[Histogram]], snapshots: Iterable[MetricSnapshot]
) -> Iterable[MetricSnapshot]:
    """
    Return one snapshot for each name. May run in any thread.

    @param families: Families of the registry.
    @param snapshots: Snapshots of the collectors.
    """
    by_name: dict[str, MetricSnapshot] = {}
    for snapshot in (*map(snapshot_of, families), *snapshots):
        existing = by_name.get(snapshot.name)
        # Several collectors may return the same metric.
        by_name[snapshot.name] = (
            snapshot if existing is None else evolve(existing, values=[*existing.values, *snapshot.values])
        )
    return by_name.values()


def collect_process_metrics() -> Iterator[MetricSnapshot]:
    """Return the metrics of prometheus_client about the process: memory, CPU, files, garbage collection."""
    from prometheus_client import GC_COLLECTOR, PLATFORM_COLLECTOR, PROCESS_COLLECTOR

    for collector in (PROCESS_COLLECTOR, GC_COLLECTOR, PLATFORM_COLLECTOR):
        collected: Iterable[Any] = collector.collect()
        for metric in collected:
            samples: dict[str, list[Any]] = {}
            for sample in metric.samples:
                samples.setdefault(sample.name, []).append(sample)
            for name, same_name in samples.items():
                labels = tuple(same_name[0].labels)
                values = [(tuple(str(one.labels[label]) for label in labels), float(one.value)) for one in same_name]
                yield MetricSnapshot(name, metric.type, metric.documentation, labels, values)


def _block(snapshot: MetricSnapshot) -> str:
    name, labels = snapshot.name, snapshot.labels
    lines: list[str] = []
    for values, value in snapshot.values:
        if snapshot.metric_type == "summary" and isinstance(value, Summary):
            lines.extend(_summary(name, labels, values, value))
        elif isinstance(value, Histogram):
            lines.extend(_histogram(name, labels, values, value))
        else:
            lines.append(f"{name}{_labels(labels, values)} {number(value)}")
    if not lines:
        return ""
    text = snapshot.help.replace("\\", "\\\\").replace("\n", "\\n")
    return f"# HELP {name} {text}\n# TYPE {name} {snapshot.metric_type}\n" + "\n".join(lines) + "\n"


def _summary(name: str, labels: Sequence[str], values: Sequence[str], child: Summary) -> Iterator[str]:
    for quantile, value in child.quantiles():
        yield f"{name}{_labels((*labels, 'quantile'), (*values, number(quantile)))} {number(value)}"
    braces = _labels(labels, values)
    yield f"{name}_sum{braces} {number(child.sum)}"
    yield f"{name}_count{braces} {child.count}"


def _histogram(name: str, labels: Sequence[str], values: Sequence[str], child: Histogram) -> Iterator[str]:
    pairs = _pairs(labels, values)
    bucket_prefix = f"{name}_bucket{{{pairs}," if pairs else f"{name}_bucket{{"
    # Read the sum first: observations in between change the buckets only, and no bucket exceeds the count.
    total = child.sum
    cumulative = 0
    for bound, count in zip((*child.bounds, float("inf")), tuple(child.counts), strict=True):
        cumulative += count
        yield f'{bucket_prefix}le="{number(bound)}"}} {cumulative}'
    braces = f"{{{pairs}}}" if pairs else ""
    yield f"{name}_sum{braces} {number(total)}"
    yield f"{name}_count{braces} {cumulative}"


def _labels(names: Sequence[str], values: Sequence[str]) -> str:
    return f"{{{_pairs(names, values)}}}" if names else ""


def _pairs(names: Sequence[str], values: Sequence[str]) -> str:
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in zip(names, values, strict=True))


def _escaped(value: str) -> str:
    if "\\" in value or '"' in value or "\n" in value:
        value = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return value


def number(value: float) -> str:
    """Format a number for Prometheus. Integers have no decimal point."""
    if value == float("inf"):
        return "+Inf"
    if value == float("-inf"):
        return "-Inf"
    if value != value:
        return "NaN"
    integer = int(value)
    return str(integer) if integer == value and abs(integer) < 1 << 53 else repr(value)
