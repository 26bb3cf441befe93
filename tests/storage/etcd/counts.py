"""Metrics of calls to etcd."""

from __future__ import annotations

from kubetwist.metrics.registry import Histogram
from kubetwist.storage.etcd._metrics import EtcdMetrics


def metric_values(metrics: EtcdMetrics, name: str) -> dict[tuple[str, ...], float]:
    """Return the values of a metric by labels; for histograms the number of observations."""
    return {
        labels: value.count if isinstance(value, Histogram) else value
        for reading in metrics.collect()
        if reading.name == name
        for labels, value in reading.values
    }
