"""
The metrics of a server of several processes: each process encodes its metrics, and one adds them.

Counters and histograms are added. Gauges are added, too, unless they describe what all processes share: then all values
are alike, and the largest one is shown. Metrics of a process (C{process_...}) get the label C{worker}.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import orjson

from .options import merge_histograms
from .registry import Histogram, MetricSnapshot
from .summaries import Summary

#: Prefixes of metrics that describe one process.
PROCESS_PREFIXES: Final = ("process_", "python_")
#: The label with the process: C{storage}, or the number of a front.
WORKER: Final = "worker"
#: Suffixes of gauges that are not added: constants with labels, and times.
_NOT_ADDED: Final = ("_info", "timestamp_seconds")
#: Further gauges that are not added: they describe what all processes share, such as stored objects and settings.
SHARED_GAUGES: Final = frozenset(
    (
        "aggregator_unavailable_apiservice",
        "apiserver_flowcontrol_seat_fair_frac",
        "apiserver_requested_deprecated_apis",
        "apiserver_resource_objects",
        "apiserver_resource_size_estimate_bytes",
        "apiserver_storage_objects",
        "apiserver_storage_size_bytes",
        "apiserver_watch_cache_resource_version",
        "kube_apiserver_clusterip_allocator_allocated_ips",
        "kube_apiserver_clusterip_allocator_available_ips",
        "kube_apiserver_nodeport_allocator_allocated_ports",
        "kube_apiserver_nodeport_allocator_available_ports",
        "kubernetes_feature_enabled",
        "leader_election_master_status",
        "watch_cache_capacity",
    )
)


def encode_snapshots(snapshots: Iterable[MetricSnapshot], worker: str) -> str:
    """
    Return the metrics of a process as JSON. May run in any thread.

    @param worker: The value of the label of this process.
    """
    return orjson.dumps(
        [
            [
                one.name,
                one.metric_type,
                one.help,
                list(one.labels),
                [[list(labels), _encode(value)] for labels, value in one.values],
            ]
            for one in (_labelled(one, worker) for one in snapshots)
        ]
    ).decode()


def _labelled(snapshot: MetricSnapshot, worker: str) -> MetricSnapshot:
    if not snapshot.name.startswith(PROCESS_PREFIXES):
        return snapshot
    return MetricSnapshot(
        snapshot.name,
        snapshot.metric_type,
        snapshot.help,
        (*snapshot.labels, WORKER),
        [((*labels, worker), value) for labels, value in snapshot.values],
    )


def _encode(value: float | Histogram) -> object:
    if not isinstance(value, Histogram):
        return value
    recent = value.recent() if isinstance(value, Summary) else None
    return [list(value.bounds), list(value.counts), value.sum, recent]


def _decode(value: Any) -> float | Histogram:
    if value is None:
        # JSON has no such number.
        return float("nan")
    if not isinstance(value, list):
        return float(value)
    bounds, counts, total, recent = value
    histogram = Histogram(bounds) if recent is None else Summary(bounds, recent)
    histogram.counts, histogram.sum = counts, total
    return histogram


def sum_snapshots(processes: Sequence[str]) -> list[MetricSnapshot]:
    """
    Add the metrics of all processes. May run in any thread.

    @param processes: The results of L{encode_snapshots}.
    """
    families: dict[str, tuple[str, str, tuple[str, ...], dict[tuple[str, ...], list[float | Histogram]]]] = {}
    for process in processes:
        for name, metric_type, text, labels, values in orjson.loads(process):
            series = families.setdefault(name, (metric_type, text, tuple(labels), {}))[3]
            for label_values, value in values:
                series.setdefault(tuple(label_values), []).append(_decode(value))
    return [
        MetricSnapshot(
            name, metric_type, text, labels, [(key, _add(name, metric_type, each)) for key, each in series.items()]
        )
        for name, (metric_type, text, labels, series) in families.items()
    ]


def _add(name: str, metric_type: str, values: Sequence[float | Histogram]) -> float | Histogram:
    if len(values) == 1:
        return values[0]
    histograms = [value for value in values if isinstance(value, Histogram)]
    if histograms:
        return _merge_summaries(histograms) if isinstance(histograms[0], Summary) else merge_histograms(histograms)
    numbers = [value for value in values if not isinstance(value, Histogram)]
    is_shared = name in SHARED_GAUGES or name.endswith(_NOT_ADDED)
    return max(numbers) if metric_type == "gauge" and is_shared else sum(numbers)


def _merge_summaries(summaries: Sequence[Histogram]) -> Summary:
    """Return the sum of summaries; quantiles are computed from the latest observations of all."""
    total = merge_histograms(summaries)
    recent = [value for one in summaries if isinstance(one, Summary) for value in one.recent()]
    merged = Summary(total.bounds, recent)
    merged.counts, merged.sum = total.counts, total.sum
    return merged
