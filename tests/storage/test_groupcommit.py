"""Tests for L{kubetwist.storage._groupcommit}."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.storage._groupcommit import MAX_BYTES, MAX_DELAY, MAX_ROWS, GroupCommit


class TurnClock(Clock):
    """A clock whose calls without delay run in the next turn, as in a reactor."""

    def turn(self, duration: float = 0.0001) -> None:
        """Run the calls that are due, except those that they schedule, and let time pass."""
        due, self.calls = self.calls, []
        for call in due:
            call.called = 1
            call.func(*call.args, **call.kw)
        self.rightNow += duration


class Case(SynchronousTestCase):
    """A group commit that records its groups."""

    def setUp(self) -> None:
        """Create it."""
        self.clock = TurnClock()
        self.groups: list[list[int]] = []
        self.commit = GroupCommit[int](self.clock, self.groups.append)

    def finish(self) -> None:
        """Finish all groups."""
        self.commit.finished(sum(map(len, self.groups)))
        self.groups.clear()


class LoneTests(Case):
    """One writer."""

    def test_at_once(self) -> None:
        """The item of a lone writer is handed on at once."""
        for number in range(3):
            self.commit.add(number)
            self.assertEqual(self.groups, [[number]])
            self.finish()

    def test_again(self) -> None:
        """The first item after a group of several waits until a turn adds none; the one after it does not wait."""
        for number in range(3):
            self.commit.add(number)
        self.commit.flush()
        self.assertEqual(self.groups, [[0], [1, 2]])
        self.finish()
        self.commit.add(3)
        self.clock.turn()
        self.assertEqual(self.groups, [])
        self.clock.turn()
        self.assertEqual(self.groups, [[3]])
        self.finish()
        self.commit.add(4)
        self.assertEqual(self.groups, [[4]])


class SeveralTests(Case):
    """Several writers."""

    def setUp(self) -> None:
        """Begin with an unfinished item."""
        super().setUp()
        self.commit.add(0)
        self.groups.clear()

    def test_until_idle(self) -> None:
        """A group is handed on after the first turn that adds nothing to it."""
        for number in range(1, 5):
            self.commit.add(number)
            self.clock.turn()
        self.assertEqual(self.groups, [])
        self.clock.turn()
        self.assertEqual(self.groups, [[1, 2, 3, 4]])

    def test_delay(self) -> None:
        """A group that every turn adds to is handed on after the maximum delay."""
        number = 0
        while not self.groups:
            number += 1
            self.commit.add(number)
            self.clock.turn(MAX_DELAY / 4)
        self.assertEqual(self.groups, [[1, 2, 3, 4, 5]])

    def test_rows(self) -> None:
        """A group with the maximum number of rows is handed on at once."""
        self.commit.add(1, MAX_ROWS - 1)
        self.assertEqual(self.groups, [])
        self.commit.add(2)
        self.assertEqual(self.groups, [[1, 2]])

    def test_bytes(self) -> None:
        """A group with the maximum size is handed on at once."""
        self.commit.add(1, 1, MAX_BYTES)
        self.assertEqual(self.groups, [[1]])

    def test_discard(self) -> None:
        """Discarded items are never handed on, and no later item waits for unfinished ones."""
        self.commit.add(1)
        self.commit.discard()
        self.clock.turn()
        self.clock.turn()
        self.assertEqual(self.groups, [])
        self.commit.add(2)
        self.assertEqual(self.groups, [[2]])


class OrderTests(SynchronousTestCase):
    """Any sequence of calls."""

    @given(st.lists(st.sampled_from(("add", "large", "turn", "long turn", "finish", "flush"))))
    def test_all_in_order(self, steps: list[str]) -> None:
        """All items are handed on in order, in groups within the bounds, and none waits for more than the delay."""
        clock = TurnClock()
        groups: list[list[int]] = []
        arrivals: dict[int, float] = {}
        unfinished = 0

        def send(group: list[int]) -> None:
            nonlocal unfinished
            unfinished += len(group)
            groups.append(group)
            self.assertLessEqual(len(group), MAX_ROWS)
            for item in group:
                # A turn of 1.5 ms may begin before the delay ends.
                self.assertLess(clock.seconds() - arrivals[item], MAX_DELAY + 0.0015)

        commit = GroupCommit[int](clock, send)
        for number, step in enumerate(steps):
            if step in ("add", "large"):
                arrivals[number] = clock.seconds()
                commit.add(number, 1, MAX_BYTES // 3 if step == "large" else 10)
            elif step == "flush":
                commit.flush()
            elif step == "finish":
                commit.finished(unfinished)
                unfinished = 0
            else:
                clock.turn(0.0015 if step == "long turn" else 0.0001)
        commit.flush()
        self.assertEqual([item for group in groups for item in group], list(arrivals))
