"""Tests of L{kubetwist.registry.core.service.numberallocator}."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.core.service.numberallocator import AllocationError, AllocatorMetrics, NumberAllocator


class NumbersTests(SynchronousTestCase):
    """Tests of L{NumberAllocator}."""

    def test_holders(self) -> None:
        """A number is free when no stored object uses it and no pending write reserves it."""
        numbers = NumberAllocator()
        for step, used in (
            (numbers.mark_pending, True),
            (numbers.add_reference, True),
            (numbers.finish, True),
            (numbers.add_reference, True),
            (numbers.drop_reference, True),
            (numbers.drop_reference, False),
            (numbers.drop_reference, False),
        ):
            step(7)
            self.assertEqual(numbers.in_use(7), used, step)
        numbers.mark_pending(3)
        self.assertEqual((numbers.pending(), numbers.max_in_use()), ({3}, 1))

    @given(used=st.sets(st.integers(0, 9)), low=st.integers(0, 9), high=st.integers(0, 9))
    def test_pick(self, used: set[int], low: int, high: int) -> None:
        """A picked number is free and in the range; there is none only if none is free."""
        numbers = NumberAllocator()
        for number in used:
            numbers.add_reference(number)
        free = set(range(low, high + 1)) - used
        picked = numbers.pick(low, high)
        self.assertTrue(picked in free if free else picked is None)


class AllocationsTests(SynchronousTestCase):
    """Tests of L{AllocatorMetrics}."""

    def test_counted(self) -> None:
        """Successful and failed allocations are counted; only successful ones have a duration."""
        counted = AllocatorMetrics()

        def refuse() -> int:
            raise AllocationError("full")

        self.assertEqual(counted.observe("static", lambda: 3), 3)
        self.assertRaises(AllocationError, counted.observe, "dynamic", refuse)
        self.assertEqual(counted.allocations_total, {"static": 1, "dynamic": 0})
        self.assertEqual(counted.allocation_errors_total, {"static": 0, "dynamic": 1})
        self.assertEqual(counted.seconds.count, 1)
