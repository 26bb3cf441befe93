"""Tests for L{kubetwist.metrics.baseline}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.metrics.baseline import Baseline
from kubetwist.metrics.exposition import render
from kubetwist.metrics.registry import MetricSnapshot, Registry
from kubetwist.metrics.summaries import Summary


class BaselineTests(SynchronousTestCase):
    """Reset of metrics."""

    def setUp(self) -> None:
        """Register metrics of all types."""
        self.registry = Registry()
        self.baseline = Baseline()
        self.labelled = self.registry.counter("labelled_total", "L.", ("a",))
        self.plain = self.registry.counter("plain_total", "P.").with_label_values()
        self.gauge = self.registry.gauge("gauge", "G.", ("a",))
        self.looked = Summary((1.0,))
        self.registry.register_collector(
            lambda: [MetricSnapshot("looked_seconds", "histogram", "S.", ("a",), [(("x",), self.looked)])]
        )
        self.registry.register_collector(lambda: [MetricSnapshot("looked", "gauge", "S.", ("a",), [(("x",), 3.0)])])

    def samples(self) -> list[str]:
        """Return the samples since the reset."""
        text = render(self.registry.families(), self.registry.collect(), self.baseline.since).decode()
        return [line for line in text.splitlines() if not line.startswith("#")]

    def test_reset(self) -> None:
        """A reset subtracts the previous values of counters and labeled histograms. Computed gauges stay."""
        for _ in range(3):
            self.labelled.with_label_values("x").value += 1
            self.plain.value += 1
            self.looked.observe(0.5)
        self.gauge.with_label_values("x").value = 1
        self.baseline.take(self.registry)()
        self.assertEqual(self.samples(), ['looked{a="x"} 3', "plain_total 0"])
        self.labelled.with_label_values("x").value += 1
        self.labelled.with_label_values("y").value += 1
        self.looked.observe(5.0)
        self.gauge.with_label_values("x").value = 1
        self.assertEqual(
            self.samples(),
            [
                'gauge{a="x"} 1',
                'labelled_total{a="x"} 1',
                'labelled_total{a="y"} 1',
                'looked{a="x"} 3',
                'looked_seconds_bucket{a="x",le="1"} 0',
                'looked_seconds_bucket{a="x",le="+Inf"} 1',
                'looked_seconds_sum{a="x"} 5',
                'looked_seconds_count{a="x"} 1',
                "plain_total 0",
            ],
        )

    def test_reset_counter(self) -> None:
        """A counter that was reset itself does not become negative."""
        self.labelled.with_label_values("x").value = 5
        self.looked.observe(0.5)
        self.baseline.take(self.registry)()
        self.labelled.with_label_values("x").value = 2
        self.looked = Summary((1.0,))
        self.looked.observe(3.0)
        self.assertIn('labelled_total{a="x"} 2', self.samples())
        self.assertIn('looked_seconds_count{a="x"} 1', self.samples())
