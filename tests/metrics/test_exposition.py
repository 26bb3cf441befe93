"""Tests for L{kubetwist.metrics.exposition}."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.metrics.exposition import collect_process_metrics, render
from kubetwist.metrics.registry import Registry
from tests.metrics.reading import read


class ExpositionTests(SynchronousTestCase):
    """Tests for L{kubetwist.metrics.exposition}."""

    def test_numbers(self) -> None:
        """Counters and gauges are exposed with their labels, and their names are unchanged."""
        registry = Registry()
        attempts = registry.counter("authentication_attempts", "Attempts.", ("result",))
        attempts.with_label_values("success").value += 2
        attempts.with_label_values("success").value += 1
        registry.gauge("depth", "Depth.").with_label_values().value = 1.5
        text = render(registry.families(), ()).decode()
        self.assertIn("# TYPE authentication_attempts counter\n", text)
        self.assertIn('\nauthentication_attempts{result="success"} 3\n', text)
        self.assertEqual(read(registry)["depth"], {(): 1.5})

    @given(st.dictionaries(st.text(max_size=8), st.floats(allow_nan=False), max_size=5))
    def test_labels(self, values: dict[str, float]) -> None:
        """Any text can be a label value, and any number can be a value."""
        registry = Registry()
        family = registry.gauge("some", "A text \\ of\ntwo lines.", ("label",))
        for label, value in values.items():
            family.with_label_values(label).value = value
        found = read(registry).get("some", {})
        self.assertEqual({dict(labels)["label"]: value for labels, value in found.items()}, values)

    def test_process(self) -> None:
        """Memory and CPU of the process have the usual names."""
        names = {reading.name for reading in collect_process_metrics()}
        self.assertLessEqual({"process_resident_memory_bytes", "process_cpu_seconds_total"}, names)
