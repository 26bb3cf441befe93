"""Calls to etcd that are counted."""

from __future__ import annotations

from kubetwist.metrics.registry import Histogram
from kubetwist.storage.etcd._metrics import EtcdMetrics


def told(metrics: EtcdMetrics, name: str) -> dict[tuple[str, ...], float]:
    """The values of a name by their labels; of histograms how much was observed."""
    return {
        labels: value.count if isinstance(value, Histogram) else value
        for reading in metrics.collect()
        if reading.name == name
        for labels, value in reading.values
    }
