"""Tests of L{kubetwist.flowcontrol.concurrencyallocation}."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.flowcontrol.concurrencyallocation import (
    AllocationItem,
    ConcurrencyLimits,
    SeatDemandIntegrator,
    compute_concurrency_allocation,
    nominal_limits,
)

WISHES = st.lists(
    st.tuples(st.floats(0, 50), st.floats(0, 50), st.floats(0, 200)).map(
        lambda parts: AllocationItem(parts[0], parts[0] + parts[1], max(parts[2], parts[0]))
    ),
    min_size=1,
    max_size=8,
)


class NominalTests(SynchronousTestCase):
    """L{nominal_limits}."""

    def test_shares(self) -> None:
        """Seats are divided by shares, rounded up; lendable and borrowable seats set the bounds."""
        levels = {
            "exempt": {"type": "Exempt", "exempt": {"nominalConcurrencyShares": 0}},
            "a": {"type": "Limited", "limited": {"nominalConcurrencyShares": 40, "lendablePercent": 25}},
            "b": {"type": "Limited", "limited": {"nominalConcurrencyShares": 20, "borrowingLimitPercent": 10}},
        }
        limits = nominal_limits(levels, 100)
        self.assertEqual(limits["exempt"], ConcurrencyLimits(0, 0, 100))
        self.assertEqual(limits["a"], ConcurrencyLimits(67, 50, 100))
        self.assertEqual(limits["b"], ConcurrencyLimits(34, 34, 37))

    def test_default(self) -> None:
        """A level without shares has thirty."""
        limits = nominal_limits({"a": {"type": "Limited", "limited": {}}}, 10)
        self.assertEqual(limits["a"].nominal, 10)


class DemandTests(SynchronousTestCase):
    """L{SeatDemandIntegrator}."""

    def test_average(self) -> None:
        """Demand is averaged over time; the high watermark is reset with each period."""
        demand = SeatDemandIntegrator()
        demand.set(10, 0.0)
        demand.set(0, 5.0)
        self.assertEqual(demand.reset(10.0), 10)
        self.assertAlmostEqual(demand.average, 5.0)
        self.assertAlmostEqual(demand.deviation, 5.0)
        self.assertAlmostEqual(demand.smoothed, 10.0)
        self.assertEqual(demand.reset(20.0), 0)
        self.assertAlmostEqual(demand.smoothed, 9.77)


class AllocationTests(SynchronousTestCase):
    """L{compute_concurrency_allocation}."""

    def test_targets(self) -> None:
        """Each level gets the same fraction of its target, within its bounds."""
        shares, fraction = compute_concurrency_allocation(
            30, [AllocationItem(0, 100, 20), AllocationItem(0, 100, 40), AllocationItem(0, 3, 40)]
        )
        self.assertAlmostEqual(fraction, 27 / 60, places=6)
        self.assertAlmostEqual(shares[0], 9, places=4)
        self.assertAlmostEqual(shares[1], 18, places=4)
        self.assertEqual(shares[2], 3)

    @given(WISHES, st.floats(0, 1))
    def test_properties(self, items: list[AllocationItem], fraction_of_range: float) -> None:
        """All seats are allocated, and no bound is exceeded."""
        lowest, highest = sum(one.lower for one in items), sum(one.upper for one in items)
        total = lowest + (highest - lowest) * fraction_of_range
        shares, _ = compute_concurrency_allocation(total, items)
        self.assertAlmostEqual(sum(shares), total, places=3)
        for share, item in zip(shares, items, strict=True):
            self.assertGreaterEqual(share, item.lower - 1e-9)
            self.assertLessEqual(share, item.upper + 1e-9)

    def test_nothing(self) -> None:
        """Without levels nothing is allocated."""
        self.assertEqual(compute_concurrency_allocation(10, []), ([], 0.0))
