"""What C{/metrics} shows of what is counted: L{kubetwist.metrics.shown}, C{stability}, C{baseline} and C{summaries}."""

from __future__ import annotations

import random

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.metrics.baseline import Baseline
from kubetwist.metrics.exposition import render
from kubetwist.metrics.registry import Distribution, Reading, Registry
from kubetwist.metrics.shown import Shown
from kubetwist.metrics.stability import described, is_hidden
from kubetwist.metrics.summaries import Summary


def lines(registry: Registry, shown: Shown) -> list[str]:
    """What is shown, without what is said about it."""
    text = render(registry.families(), registry.readings(), shown.select).decode()
    return [line for line in text.splitlines() if not line.startswith("#")]


class ShownTests(SynchronousTestCase):
    """What operators have said."""

    def registry(self) -> Registry:
        """One with a series of each sort."""
        registry = Registry()
        counter = registry.counter("a_total", "A.", ("verb", "code"))
        for code, count in (("200", 5), ("404", 2), ("500", 1)):
            counter.of("GET", code).value = count
        histogram = registry.histogram("b_seconds", "B.", (1.0, 2.0), ("code",))
        for code, seconds in (("404", 0.5), ("500", 1.5)):
            histogram.of(code).observe(seconds)
        gauge = registry.gauge("apiserver_storage_db_total_size_in_bytes", "Bytes.", ("endpoint",))
        gauge.of("e").value = 7
        registry.gauge("process_things", "Things.").of().value = 1
        return registry

    def test_levels(self) -> None:
        """Series say how far they can be relied on, unless they are a library's."""
        self.assertEqual(described("apiserver_request_total", "R.", (1, 36)), "[STABLE] R.")
        self.assertEqual(described("workqueue_depth", "R.", (1, 36)), "[BETA] R.")
        self.assertEqual(described("x", "R.", (1, 36)), "[ALPHA] R.")
        self.assertEqual(described("process_open_fds", "R.", (1, 36)), "R.")
        deprecated = "[STABLE] (Deprecated since 1.34.0) R."
        self.assertEqual(described("apiserver_storage_objects", "R.", (1, 36)), deprecated)
        self.assertEqual(described("apiserver_storage_objects", "R.", (1, 33)), "[STABLE] R.")

    def test_hidden(self) -> None:
        """What is deprecated is shown as long as its level promises, and only then by who asks for it."""
        for release, hidden in (((1, 34), False), ((1, 36), False), ((1, 37), True)):
            self.assertIs(is_hidden("apiserver_storage_objects", release), hidden)
        name = "apiserver_storage_db_total_size_in_bytes"
        shown = "\n".join(lines(self.registry(), Shown((1, 36))))
        self.assertNotIn(name, shown)
        self.assertIn("\nhidden_metrics_total 1\n", shown)
        shown = "\n".join(lines(self.registry(), Shown((1, 36), hidden=True)))
        self.assertIn(f'{name}{{endpoint="e"}} 7', shown)
        self.assertIn("\nhidden_metrics_total 0\n", shown)
        self.assertIn('registered_metrics_total{stability_level="ALPHA",deprecated_version="1.28.0"} 1', shown)
        self.assertIn('registered_metrics_total{stability_level="ALPHA",deprecated_version=""} 2', shown)

    def test_disabled(self) -> None:
        """What is switched off is not shown, hidden or not; a name that is not there counts as well."""
        shown = lines(self.registry(), Shown((1, 36), frozenset(("a_total", "x", "hidden_metrics_total")), hidden=True))
        self.assertFalse([line for line in shown if line.startswith(("a_total", "hidden_"))])
        self.assertIn("disabled_metrics_total 3", shown)

    def test_allowed_values(self) -> None:
        """Other values of a label are put together, whatever they are of, and counted."""
        allowed = {("a_total", "code"): frozenset(("200",)), ("b_seconds", "code"): frozenset(("",))}
        shown = lines(self.registry(), Shown((1, 36), allowed=allowed))
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

    def test_parts_of_a_label(self) -> None:
        """A label whose values are not restricted keeps them beside one whose are."""
        allowed = {("a_total", "verb"): frozenset(("LIST",))}
        shown = lines(self.registry(), Shown((1, 36), allowed=allowed))
        self.assertIn('a_total{verb="unexpected",code="404"} 2', shown)


class BaselineTests(SynchronousTestCase):
    """Counting anew."""

    def setUp(self) -> None:
        """Something to count."""
        self.registry = Registry()
        self.baseline = Baseline()
        self.labelled = self.registry.counter("labelled_total", "L.", ("a",))
        self.plain = self.registry.counter("plain_total", "P.").of()
        self.gauge = self.registry.gauge("gauge", "G.", ("a",))
        self.looked = Summary((1.0,))
        self.registry.read(lambda: [Reading("looked_seconds", "histogram", "S.", ("a",), [(("x",), self.looked)])])
        self.registry.read(lambda: [Reading("looked", "gauge", "S.", ("a",), [(("x",), 3.0)])])

    def shown(self) -> list[str]:
        """What is shown."""
        text = render(self.registry.families(), self.registry.readings(), self.baseline.since).decode()
        return [line for line in text.splitlines() if not line.startswith("#")]

    def test_reset(self) -> None:
        """What was counted before is taken off, whoever counts it; what is looked at stays."""
        for _ in range(3):
            self.labelled.of("x").value += 1
            self.plain.value += 1
            self.looked.observe(0.5)
        self.gauge.of("x").value = 1
        self.baseline.take(self.registry)()
        self.assertEqual(self.shown(), ['looked{a="x"} 3', "plain_total 0"])
        self.labelled.of("x").value += 1
        self.labelled.of("y").value += 1
        self.looked.observe(5.0)
        self.gauge.of("x").value = 1
        self.assertEqual(
            self.shown(),
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

    def test_counted_anew(self) -> None:
        """What has begun anew by itself is not less than nothing."""
        self.labelled.of("x").value = 5
        self.looked.observe(0.5)
        self.baseline.take(self.registry)()
        self.labelled.of("x").value = 2
        self.looked = Summary((1.0,))
        self.looked.observe(3.0)
        self.assertIn('labelled_total{a="x"} 2', self.shown())
        self.assertIn('looked_seconds_count{a="x"} 1', self.shown())


class SummaryTests(SynchronousTestCase):
    """Quantiles."""

    def test_quantiles(self) -> None:
        """They are of the newest observations; sum and count are of all."""
        summary = Summary()
        values = [index / 100 for index in range(100)]
        random.Random(1).shuffle(values)
        for value in (*(9.0 for _ in range(400)), *values, *values, *values, *values, *values):
            summary.observe(value)
        text = render((), [Reading("s", "summary", "S.", ("a",), [(("x",), summary)])]).decode()
        self.assertEqual(
            text.splitlines()[1:],
            [
                "# TYPE s summary",
                's{a="x",quantile="0.5"} 0.5',
                's{a="x",quantile="0.9"} 0.9',
                's{a="x",quantile="0.99"} 0.99',
                's_sum{a="x"} ' + repr(summary.sum),
                's_count{a="x"} 900',
            ],
        )

    def test_as_histogram(self) -> None:
        """One that has bounds is a histogram like any other."""
        summary, histogram = Summary((1.0, 2.0)), Distribution((1.0, 2.0))
        for value in (0.5, 1.0, 1.5, 9.0):
            summary.observe(value)
            histogram.observe(value)
        both = [render((), [Reading("s", "histogram", "S.", (), [((), one)])]) for one in (summary, histogram)]
        self.assertEqual(*both)
        self.assertEqual(list(Summary().quantiles()), [])
