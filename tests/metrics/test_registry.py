"""Tests for L{kubetwist.metrics.registry}."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.metrics import registry as module
from kubetwist.metrics.exposition import number
from kubetwist.metrics.registry import HighWatermark, Histogram, MetricSnapshot, Registry, exponential, linear
from tests.metrics.reading import read


class RegistryTests(SynchronousTestCase):
    """Families and children in the text format."""

    def test_histograms(self) -> None:
        """Buckets are cumulative and count values up to their bound."""
        registry = Registry()
        durations = registry.histogram("seconds", "Seconds.", (0.1, 1.0), ("verb",))
        for value in (0.05, 0.1, 0.5, 1.0, 7.0):
            durations.with_label_values("GET").observe(value)
        found = read(registry)
        bounds = {dict(labels)["le"]: value for labels, value in found["seconds_bucket"].items()}
        self.assertEqual(bounds, {"0.1": 2, "1": 4, "+Inf": 5})
        self.assertEqual(list(found["seconds_count"].values()), [5])
        self.assertAlmostEqual(next(iter(found["seconds_sum"].values())), 8.65)

    @given(st.lists(st.floats(min_value=0, max_value=20, width=16), max_size=50))
    def test_observe_all(self, values: list[float]) -> None:
        """Adding many observations at once is equal to adding them one by one."""
        one, many = (Histogram((0.0, 0.5, 1.0, 5.0)) for _ in range(2))
        for value in values:
            one.observe(value)
        many.observe_all(sorted(values), sum(values))
        self.assertEqual(many.counts, one.counts)
        self.assertAlmostEqual(many.sum, one.sum)
        many.observe_often(1.0, 3)
        for _ in range(3):
            one.observe(1.0)
        self.assertEqual(many.counts, one.counts)

    def test_flush_hooks(self) -> None:
        """Buffered observations are flushed before metrics are read."""
        registry = Registry()
        counter = registry.gauge("noted", "Noted.").with_label_values()
        notes = [1, 2]

        def settle() -> Iterator[None]:
            while notes:
                counter.value += notes.pop()
                yield

        registry.add_flush_hook(settle)
        self.assertEqual(read(registry)["noted"], {(): 3.0})

    def test_bounded_cardinality(self) -> None:
        """CVE-2020-8552: the number of children is bounded, for any number of label values."""
        self.patch(module, "MAX_CHILDREN", 3)
        registry = Registry()
        family = registry.counter("some", "Some.", ("label",))
        for value in range(10):
            family.with_label_values(str(value)).value += 1
        self.assertEqual(len(read(registry)["some_total"]), 3)
        self.assertEqual(family.hidden, 7)

    def test_readings(self) -> None:
        """Collectors are called when metrics are read."""
        registry = Registry()
        registry.register_collector(lambda: [MetricSnapshot("open", "gauge", "Open.", ("kind",), [(("watch",), 4.0)])])
        registry.register_collector(lambda: [MetricSnapshot("none", "gauge", "None.", (), [])])
        self.assertEqual(read(registry), {"open": {(("kind", "watch"),): 4.0}})

    def test_names(self) -> None:
        """Two families cannot have the same name."""
        registry = Registry()
        registry.gauge("some", "Some.")
        with self.assertRaises(ValueError):
            registry.counter("some", "Some.")

    def test_bounds(self) -> None:
        """Bounds are computed from the first bound and a step."""
        self.assertEqual(exponential(1.0, 2.0, 4), (1.0, 2.0, 4.0, 8.0))
        self.assertEqual(linear(1.0, 2.0, 3), (1.0, 3.0, 5.0))
        self.assertEqual([number(one) for one in (float("inf"), 2.0, 0.1, -3.0)], ["+Inf", "2", "0.1", "-3"])


class WatermarkTests(SynchronousTestCase):
    """The maximum within the last second."""

    def test_maximum(self) -> None:
        """A short peak is reported for one to two seconds, a lasting value as long as it lasts."""
        now = 0.0
        mark = HighWatermark(lambda: now)
        for at in (0.1, 0.2, 0.3):
            mark.up(at)
        mark.down(0.4)
        mark.down(0.5)
        self.assertEqual((mark.count, mark.maximum()), (1, 3))
        now = 1.3
        self.assertEqual(mark.maximum(), 3)
        now = 9.0
        self.assertEqual(mark.maximum(), 1)

    def test_idle(self) -> None:
        """The value at the beginning of a second counts for that second, even if nothing changes."""
        now = 5.0
        mark = HighWatermark(lambda: now)
        mark.up(0.0)
        mark.down(4.9)
        self.assertEqual(mark.maximum(), 1)
        now = 8.0
        self.assertEqual(mark.maximum(), 0)
