"""Tests of L{kubetwist.metrics.history.ring}."""

from __future__ import annotations

from collections.abc import Iterable
from math import isnan

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.metrics.history.ring import SampleRing

VALUES = st.dictionaries(st.integers(0, 2), st.integers(-1000, 1000).map(float))


def known(values: Iterable[float]) -> list[float | None]:
    """Return a column with L{None} for what a sample lacks."""
    return [None if isnan(value) else value for value in values]


class SampleRingTests(SynchronousTestCase):
    """L{SampleRing}."""

    @given(st.integers(1, 7), st.lists(VALUES, max_size=30))
    def test_newest(self, capacity: int, samples: list[dict[int, float]]) -> None:
        """The ring has the newest samples in order, and its size does not change."""
        ring = SampleRing(3, capacity)
        size = ring.size
        for time, values in enumerate(samples):
            ring.append(float(time), values)
        kept = list(enumerate(samples))[-capacity:]
        self.assertEqual((ring.count, ring.size), (len(kept), size))
        for newest in range(len(kept) + 1):
            expected = kept[len(kept) - newest :]
            self.assertEqual(list(ring.times(newest)), [time for time, _ in expected])
            for column in range(3):
                self.assertEqual(known(ring.values(column, newest)), [values.get(column) for _, values in expected])

    @given(st.integers(1, 7), st.integers(0, 20), st.integers(-1, 21))
    def test_newer(self, capacity: int, count: int, since: int) -> None:
        """Samples are selected by their time."""
        ring = SampleRing(1, capacity)
        for time in range(count):
            ring.append(float(time), {})
        expected = [time for time in range(count)[-capacity:] if time > since]
        self.assertEqual(list(ring.times(ring.newer_than(float(since)))), expected)

    def test_size(self) -> None:
        """A column needs four bytes for each sample."""
        self.assertEqual(SampleRing(10, 100).size, 8 * 100 + 4 * 10 * 100)

    def test_columns(self) -> None:
        """A column is added to another one where it has values, and is empty then."""
        ring = SampleRing(2, 3)
        for row, values in enumerate(({0: 1.0}, {1: 2.0}, {0: 3.0, 1: 4.0})):
            ring.append(float(row), values)
        ring.add_column(0, 1)
        self.assertEqual(known(ring.values(0, 3)), [None, None, None])
        self.assertEqual(known(ring.values(1, 3)), [1.0, 2.0, 7.0])
        ring.clear_column(1)
        self.assertEqual(known(ring.values(1, 3)), [None, None, None])
