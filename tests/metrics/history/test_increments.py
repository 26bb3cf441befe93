"""Tests of L{kubetwist.metrics.history.increments}."""

from __future__ import annotations

from math import isnan

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.metrics.history.increments import CounterIncrements, HistogramIncrements, Observations
from kubetwist.metrics.registry import Histogram

BOUNDS = (1.0, 2.0, 5.0)
SECONDS = st.integers(0, 700).map(lambda hundredths: hundredths / 100)


class ObservationsTests(SynchronousTestCase):
    """L{Observations}."""

    @given(st.lists(SECONDS, min_size=1), st.sampled_from((0.5, 0.9, 0.99)))
    def test_bucket(self, values: list[float], q: float) -> None:
        """A quantile is not above the upper bound of its bucket, and not below the lower one unless the mean is."""
        histogram = Histogram(BOUNDS)
        for value in values:
            histogram.observe(value)
        estimate = Observations(histogram.sum, histogram.counts).quantile(q, BOUNDS)
        exact = sorted(values)[min(int(q * len(values)), len(values) - 1)]
        above = min((bound for bound in BOUNDS if bound >= exact), default=BOUNDS[-1])
        self.assertLessEqual(estimate, above)
        self.assertLessEqual(estimate, sum(values) / len(values) / (1 - q) + 1e-9)

    def test_values(self) -> None:
        """Quantiles are interpolated; the mean limits them; above the last bound they are that bound."""
        self.assertEqual(Observations(15.0, [0, 10, 0, 0]).quantile(0.5, BOUNDS), 1.5)
        self.assertAlmostEqual(Observations(1.0, [10, 0, 0, 0]).quantile(0.5, BOUNDS), 0.2)
        self.assertEqual(Observations(90.0, [0, 0, 0, 10]).quantile(0.5, BOUNDS), 5.0)
        self.assertTrue(isnan(Observations().quantile(0.5, BOUNDS)))
        self.assertTrue(isnan(Observations(0.0, [0, 0, 0, 0]).quantile(0.5, BOUNDS)))

    def test_add(self) -> None:
        """Observations of several processes are added, also to none."""
        total = Observations()
        total.add(Observations())
        total.add(Observations(1.0, [1, 0]))
        total.add(Observations(2.0, [1, 1]))
        self.assertEqual((total.total, total.counts, total.count), (3.0, [2, 1], 3))


class HistogramIncrementsTests(SynchronousTestCase):
    """L{HistogramIncrements}."""

    @given(st.lists(st.lists(SECONDS), max_size=8))
    def test_increments(self, batches: list[list[float]]) -> None:
        """Each call returns what was observed since the last one, or nothing."""
        histogram, increments = Histogram(BOUNDS), HistogramIncrements()
        for batch in batches:
            expected = Histogram(BOUNDS)
            for value in batch:
                histogram.observe(value)
                expected.observe(value)
            increment = increments.take("x", histogram)
            if increment is None:
                self.assertEqual(batch, [])
            else:
                self.assertEqual(increment.counts, expected.counts)
                self.assertAlmostEqual(increment.total, expected.sum)

    def test_reset(self) -> None:
        """After a reset, all observations are new."""
        histogram, increments = Histogram(BOUNDS), HistogramIncrements()
        histogram.observe_often(0.5, 5)
        increments.take("x", histogram)
        again = Histogram(BOUNDS)
        again.observe(0.5)
        again.observe(4.0)
        self.assertEqual(increments.take("x", again), Observations(4.5, [1, 0, 1, 0]))

    def test_take_all(self) -> None:
        """Histograms with the same buckets are added; each is remembered by its key."""
        first, second = Histogram(BOUNDS), Histogram(BOUNDS)
        first.observe(0.5)
        second.observe(1.5)
        increments = HistogramIncrements()
        pairs = [(1, first), (2, second)]
        self.assertEqual(increments.take_all(pairs), Observations(2.0, [1, 1, 0, 0]))
        second.observe(1.5)
        self.assertEqual(increments.take_all(pairs), Observations(1.5, [0, 1, 0, 0]))
        self.assertEqual(increments.take_all(pairs), Observations())


class CounterIncrementsTests(SynchronousTestCase):
    """L{CounterIncrements}."""

    @given(st.lists(st.integers(0, 5), max_size=8), st.lists(st.integers(0, 5), max_size=8))
    def test_reset(self, before: list[int], after: list[int]) -> None:
        """The increases of a counter are exact, except for what a reset hides."""
        increments, value = CounterIncrements(), 0.0
        for step in before:
            value += step
            self.assertEqual(increments.take("x", value), step)
        if not value:
            return
        reset = 0.0
        self.assertEqual(increments.take("x", reset), 0.0)
        for step in after:
            reset += step
            self.assertEqual(increments.take("x", reset), step)
