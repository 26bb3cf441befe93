"""Tests for L{kubetwist.metrics.summaries}."""

from __future__ import annotations

import random

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.metrics.exposition import render
from kubetwist.metrics.registry import Histogram, MetricSnapshot
from kubetwist.metrics.summaries import Summary


class SummaryTests(SynchronousTestCase):
    """Quantiles of summaries."""

    def test_quantiles(self) -> None:
        """Quantiles are computed from the latest observations. Sum and count include all."""
        summary = Summary()
        values = [index / 100 for index in range(100)]
        random.Random(1).shuffle(values)
        for value in (*(9.0 for _ in range(400)), *values, *values, *values, *values, *values):
            summary.observe(value)
        text = render((), [MetricSnapshot("s", "summary", "S.", ("a",), [(("x",), summary)])]).decode()
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
        """A summary with bounds is a histogram, too."""
        summary, histogram = Summary((1.0, 2.0)), Histogram((1.0, 2.0))
        for value in (0.5, 1.0, 1.5, 9.0):
            summary.observe(value)
            histogram.observe(value)
        both = [render((), [MetricSnapshot("s", "histogram", "S.", (), [((), one)])]) for one in (summary, histogram)]
        self.assertEqual(*both)
        self.assertEqual(list(Summary().quantiles()), [])
