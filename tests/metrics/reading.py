"""Parses metrics as Prometheus does."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from kubetwist.metrics.exposition import render
from kubetwist.metrics.registry import MetricSnapshot, Registry


def read(registry: Registry) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """Return the values of a registry by name and labels, as Prometheus parses them."""
    text = render(registry.families(), registry.collect()).decode()
    found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
    return found


def parse_snapshots(*snapshots: MetricSnapshot) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """Return the values of snapshots by name and labels, as Prometheus parses them."""
    registry = Registry()
    registry.register_collector(lambda: snapshots)
    return read(registry)
