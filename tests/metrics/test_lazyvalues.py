"""Tests for L{kubetwist.metrics.lazyvalues}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.metrics.exposition import render
from kubetwist.metrics.lazyvalues import LazyValues
from kubetwist.metrics.registry import MetricSnapshot


class LazyValuesTests(SynchronousTestCase):
    """L{LazyValues}."""

    def test_when_written(self) -> None:
        """Values are computed at each rendering."""
        numbers = [1.0]
        reading = MetricSnapshot("a", "gauge", "A.", (), LazyValues(lambda: [((), one) for one in numbers]))
        numbers[0] = 2.0
        self.assertTrue(render((), [reading]).endswith(b"\na 2\n"))
        numbers[0] = 3.0
        self.assertTrue(render((), [reading]).endswith(b"\na 3\n"))
