"""What Prometheus reads."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from kubetwist.metrics.exposition import render
from kubetwist.metrics.registry import Reading, Registry


def read(registry: Registry) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """What Prometheus reads: numbers by name and labels."""
    text = render(registry.families(), registry.readings()).decode()
    found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
    return found


def told(*readings: Reading) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """What Prometheus reads of some readings."""
    registry = Registry()
    registry.read(lambda: readings)
    return read(registry)
