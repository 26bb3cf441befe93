"""Calls to etcd that are counted."""

from __future__ import annotations

from kubetwist.metrics.registry import Distribution
from kubetwist.storage.etcd._metrics import EtcdTally


def told(tally: EtcdTally, name: str) -> dict[tuple[str, ...], float]:
    """The values of a name by their labels; of histograms how much was observed."""
    return {
        labels: value.count if isinstance(value, Distribution) else value
        for reading in tally.readings()
        if reading.name == name
        for labels, value in reading.values
    }
