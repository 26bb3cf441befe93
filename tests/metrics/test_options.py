"""Tests for L{kubetwist.metrics.options}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.metrics.exposition import render
from kubetwist.metrics.options import MetricsOptions
from kubetwist.metrics.registry import Registry
from kubetwist.metrics.stability import is_hidden


def lines(registry: Registry, shown: MetricsOptions) -> list[str]:
    """Return the exposed samples, without help and types."""
    text = render(registry.families(), registry.collect(), shown.apply).decode()
    return [line for line in text.splitlines() if not line.startswith("#")]


class MetricsOptionsTests(SynchronousTestCase):
    """L{MetricsOptions}."""

    def registry(self) -> Registry:
        """Return a registry with a metric of each type."""
        registry = Registry()
        counter = registry.counter("a_total", "A.", ("verb", "code"))
        for code, count in (("200", 5), ("404", 2), ("500", 1)):
            counter.with_label_values("GET", code).value = count
        histogram = registry.histogram("b_seconds", "B.", (1.0, 2.0), ("code",))
        for code, seconds in (("404", 0.5), ("500", 1.5)):
            histogram.with_label_values(code).observe(seconds)
        gauge = registry.gauge("apiserver_storage_db_total_size_in_bytes", "Bytes.", ("endpoint",))
        gauge.with_label_values("e").value = 7
        registry.gauge("process_things", "Things.").with_label_values().value = 1
        return registry

    def test_hidden(self) -> None:
        """A deprecated metric is exposed for the releases of its stability level, and then only on request."""
        for release, hidden in (((1, 34), False), ((1, 36), False), ((1, 37), True)):
            self.assertIs(is_hidden("apiserver_storage_objects", release), hidden)
        name = "apiserver_storage_db_total_size_in_bytes"
        shown = "\n".join(lines(self.registry(), MetricsOptions((1, 36))))
        self.assertNotIn(name, shown)
        self.assertIn("\nhidden_metrics_total 1\n", shown)
        shown = "\n".join(lines(self.registry(), MetricsOptions((1, 36), hidden=True)))
        self.assertIn(f'{name}{{endpoint="e"}} 7', shown)
        self.assertIn("\nhidden_metrics_total 0\n", shown)
        self.assertIn('registered_metrics_total{stability_level="ALPHA",deprecated_version="1.28.0"} 1', shown)
        self.assertIn('registered_metrics_total{stability_level="ALPHA",deprecated_version=""} 2', shown)

    def test_disabled(self) -> None:
        """A disabled metric is not exposed, hidden or not. An unknown name counts as disabled, too."""
        shown = lines(
            self.registry(), MetricsOptions((1, 36), frozenset(("a_total", "x", "hidden_metrics_total")), hidden=True)
        )
        self.assertFalse([line for line in shown if line.startswith(("a_total", "hidden_"))])
        self.assertIn("disabled_metrics_total 3", shown)

    def test_allowed_values(self) -> None:
        """Label values that are not allowed are merged and counted."""
        allowed = {("a_total", "code"): frozenset(("200",)), ("b_seconds", "code"): frozenset(("",))}
        shown = lines(self.registry(), MetricsOptions((1, 36), allowed=allowed))
        self.assertIn('a_total{verb="GET",code="200"} 5', shown)
        self.assertIn('a_total{verb="GET",code="unexpected"} 3', shown)
        self.assertEqual(
            [line for line in shown if line.startswith("b_seconds")],
            [
                'b_seconds_bucket{code="unexpected",le="1"} 1',
                'b_seconds_bucket{code="unexpected",le="2"} 2',
                'b_seconds_bucket{code="unexpected",le="+Inf"} 2',
                'b_seconds_sum{code="unexpected"} 2',
                'b_seconds_count{code="unexpected"} 2',
            ],
        )
        self.assertIn("cardinality_enforcement_unexpected_categorizations_total 5", shown)

    def test_unrestricted_label(self) -> None:
        """A label without an allow list keeps its values beside a label with one."""
        allowed = {("a_total", "verb"): frozenset(("LIST",))}
        shown = lines(self.registry(), MetricsOptions((1, 36), allowed=allowed))
        self.assertIn('a_total{verb="unexpected",code="404"} 2', shown)
