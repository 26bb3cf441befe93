"""Tests of L{kubetwist.metrics.history.slots}."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.metrics.history.ring import SampleRing
from kubetwist.metrics.history.slots import MAX_CANDIDATES, Slots

NUMBERS = st.dictionaries(st.integers(0, 12), st.integers(1, 100).map(float))


class SlotsTests(SynchronousTestCase):
    """L{Slots}."""

    @given(st.lists(NUMBERS, max_size=25))
    def test_sum(self, samples: list[dict[int, float]]) -> None:
        """Each key has columns, or belongs to the rest, and nothing is lost in the sum."""
        ring = SampleRing(5 * 2, 100)
        slots: Slots[int] = Slots(ring, 0, 4, 2, (0,))
        for time, numbers in enumerate(samples):
            slots.update(numbers)
            values = dict.fromkeys((*slots.assigned.values(), slots.rest), 0.0)
            for key, number in numbers.items():
                values[slots.assigned.get(key, slots.rest)] += number
            ring.append(float(time), values)
        columns = list(slots.assigned.values())
        self.assertEqual(len(columns), len(set(columns)))
        self.assertLessEqual(set(columns), {0, 2, 4, 6})
        for row, numbers in enumerate(samples):
            total = [ring.values(column, len(samples))[row] for column in (0, 2, 4, 6, slots.rest)]
            self.assertEqual(sum(value for value in total if value == value), sum(numbers.values()))

    def test_exchange(self) -> None:
        """A key that becomes larger than another one gets its columns, whose counts are part of the rest then."""
        ring = SampleRing(4, 10)
        slots: Slots[str] = Slots(ring, 0, 1, 2, (0,))
        slots.update({"a": 5.0})
        ring.append(0.0, {0: 5.0, 1: 0.1})
        slots.update({"b": 6.0})
        self.assertEqual(slots.assigned, {"a": 0})
        slots.update({"b": 6.0})
        self.assertEqual(slots.assigned, {"b": 0})
        self.assertEqual(list(ring.values(slots.rest, 1)), [5.0])
        self.assertNotEqual(list(ring.values(1, 1)), list(ring.values(1, 1)))

    def test_bounded(self) -> None:
        """Keys without columns are forgotten if there are many, or after a long time."""
        slots: Slots[int] = Slots(SampleRing(4, 10), 0, 1, 2, (0,))
        slots.update({key: float(key) for key in range(1000)})
        self.assertEqual(len(slots._weights), MAX_CANDIDATES + 1)
        for _ in range(2000):
            slots.update({0: 1.0})
        self.assertLess(len(slots._weights), 10)
