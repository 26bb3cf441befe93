"""Tests for L{kubetwist.server.workerrole}."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.server.workerrole import WorkerRole


class WorkerRoleTests(SynchronousTestCase):
    """Tests for L{WorkerRole}."""

    @given(st.integers(1, 10_000), st.integers(1, 64))
    def test_shares(self, total: int, count: int) -> None:
        """The shares of all fronts differ by at most one, and their sum is the limit."""
        shares = [WorkerRole(number, count).share(total) for number in range(1, count + 1)]
        self.assertLessEqual(max(shares) - min(shares), 1)
        self.assertEqual(sum(shares), max(total, count))

    def test_no_limit(self) -> None:
        """A front has no limit if the server has none."""
        self.assertEqual(WorkerRole(1, 2).share(0), 0)

    def test_one_process(self) -> None:
        """A server of one process has the whole limit."""
        self.assertEqual(WorkerRole().share(7), 7)
