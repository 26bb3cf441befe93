"""Tests for L{kubetwist.metrics.summing}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.metrics.exposition import render
from kubetwist.metrics.registry import Histogram, MetricSnapshot
from kubetwist.metrics.summaries import Summary
from kubetwist.metrics.summing import encode_snapshots, sum_snapshots


class SumTests(SynchronousTestCase):
    """Tests for L{sum_snapshots}."""

    def sum(self, *processes: MetricSnapshot) -> list[str]:
        """Return the lines of the sum of processes, each with one metric."""
        encoded = [encode_snapshots([one], str(number)) for number, one in enumerate(processes, 1)]
        return render((), sum_snapshots(encoded)).decode().splitlines()[2:]

    def test_counters(self) -> None:
        """Counters are added by their labels."""
        one = MetricSnapshot("requests_total", "counter", "Text.", ("code",), [(("200",), 3.0), (("404",), 1.0)])
        other = MetricSnapshot("requests_total", "counter", "Text.", ("code",), [(("200",), 4.0), (("500",), 2.0)])
        self.assertEqual(
            self.sum(one, other),
            ['requests_total{code="200"} 7', 'requests_total{code="404"} 1', 'requests_total{code="500"} 2'],
        )

    def test_gauges(self) -> None:
        """Gauges are added."""
        one, other = (MetricSnapshot("depth", "gauge", "Text.", (), [((), value)]) for value in (1.5, 2.0))
        self.assertEqual(self.sum(one, other), ["depth 3.5"])

    def test_shared_gauges(self) -> None:
        """Gauges that all processes share, constants and times are not added."""
        for name in ("apiserver_storage_objects", "kubernetes_build_info", "reload_last_timestamp_seconds"):
            one, other = (MetricSnapshot(name, "gauge", "Text.", (), [((), value)]) for value in (4.0, 5.0))
            self.assertEqual(self.sum(one, other), [f"{name} 5"])

    def test_process(self) -> None:
        """Metrics of a process have its name as a label."""
        one, other = (MetricSnapshot("process_open_fds", "gauge", "Text.", (), [((), value)]) for value in (4.0, 5.0))
        self.assertEqual(self.sum(one, other), ['process_open_fds{worker="1"} 4', 'process_open_fds{worker="2"} 5'])

    def test_histograms(self) -> None:
        """Histograms are added by buckets."""

        def snapshot(*values: float) -> MetricSnapshot:
            histogram = Histogram((1.0, 2.0))
            for value in values:
                histogram.observe(value)
            return MetricSnapshot("seconds", "histogram", "Text.", (), [((), histogram)])

        self.assertEqual(
            self.sum(snapshot(0.5, 1.5), snapshot(1.5, 9.0)),
            [
                'seconds_bucket{le="1"} 1',
                'seconds_bucket{le="2"} 3',
                'seconds_bucket{le="+Inf"} 4',
                "seconds_sum 12.5",
                "seconds_count 4",
            ],
        )

    def test_summaries(self) -> None:
        """Summaries are added; quantiles are computed from the observations of all processes."""

        def snapshot(*values: float) -> MetricSnapshot:
            summary = Summary()
            for value in values:
                summary.observe(value)
            return MetricSnapshot("seconds", "summary", "Text.", (), [((), summary)])

        lines = self.sum(snapshot(1.0, 2.0), snapshot(3.0, 4.0))
        self.assertEqual(lines[0], 'seconds{quantile="0.5"} 3')
        self.assertEqual(lines[-2:], ["seconds_sum 10", "seconds_count 4"])

    def test_one_process(self) -> None:
        """A metric that only one process has is unchanged, also a number that JSON lacks."""
        one = MetricSnapshot("ratio", "gauge", "Text.", (), [((), float("nan"))])
        other = MetricSnapshot("other", "gauge", "Text.", (), [((), 1.0)])
        self.assertEqual(self.sum(one, other)[-1], "ratio NaN")
