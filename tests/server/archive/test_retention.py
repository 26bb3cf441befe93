# mypy: allow-untyped-calls
"""Tests for L{kubetwist.server.archive.retention}."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.server.archive.retention import RetentionPolicy, select_kept

BEGIN = datetime(2026, 11, 1, tzinfo=UTC)


def kept(hours: list[float], **numbers: int) -> list[float]:
    """Return the backups that a policy keeps, as hours since L{BEGIN}."""
    backups = [(BEGIN + timedelta(hours=one), one) for one in hours]
    return sorted(hours[index] for index in select_kept(backups, RetentionPolicy(**numbers)))


class SelectTests(SynchronousTestCase):
    """The backups that are kept."""

    def test_all(self) -> None:
        """Without numbers, all backups are kept."""
        self.assertEqual(kept([0, 1, 500]), [0, 1, 500])

    def test_last(self) -> None:
        """The newest backups are kept, in any order of the input."""
        self.assertEqual(kept([3, 1, 2, 4], last=2), [3, 4])

    def test_periods(self) -> None:
        """The newest backup of each hour, day, week and month is kept; periods without backups do not count."""
        self.assertEqual(kept([0, 0.2, 0.9, 1.5, 9], hourly=3), [0.9, 1.5, 9])
        self.assertEqual(kept([0, 5, 23, 24, 24 * 9], daily=2), [24, 24 * 9])
        # 2026-11-01 is a Sunday: the next day begins a week.
        self.assertEqual(kept([0, 23, 24, 24 * 7, 24 * 8], weekly=3), [23, 24 * 7, 24 * 8])
        self.assertEqual(kept([0, 24 * 29.9, 24 * 31, 24 * 62], monthly=3), [24 * 29.9, 24 * 31, 24 * 62])

    def test_reasons(self) -> None:
        """A backup can be kept for several reasons."""
        backups = [(BEGIN, None), (BEGIN + timedelta(hours=1), None)]
        policy = RetentionPolicy(last=1, daily=1, hourly=2)
        self.assertEqual(select_kept(backups, policy), {1: ["last", "hourly", "daily"], 0: ["hourly"]})

    @settings(deadline=None)
    @given(
        st.lists(st.integers(0, 2000).map(lambda quarters: quarters / 4), unique=True, max_size=30),
        st.fixed_dictionaries({name: st.integers(0, 4) for name in ("last", "hourly", "daily", "weekly", "monthly")}),
    )
    def test_bounds(self, hours: list[float], numbers: dict[str, int]) -> None:
        """
        The newest backup is always kept, and not more than the sum of the numbers.

        Taking backups one by one, and removing in between, keeps the newest ones of each period as one removal at the
        end does.
        """
        found = kept(hours, **numbers)
        if not hours:
            self.assertEqual(found, [])
            return
        self.assertIn(max(hours), found)
        if any(numbers.values()):
            self.assertLessEqual(len(found), max(1, sum(numbers.values())))
        gradually: list[float] = []
        for one in sorted(hours):
            gradually = kept([*gradually, one], **numbers)
        self.assertEqual(gradually, found)
