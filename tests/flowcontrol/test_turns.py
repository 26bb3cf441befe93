"""Tests for L{kubetwist.flowcontrol.turns}."""

from __future__ import annotations

from functools import partial

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.flowcontrol.turns import ALONE, Turns
from tests.flowcontrol.requests import Impatient


class TurnsTests(SynchronousTestCase):
    """Heavy work."""

    def test_failing_work(self) -> None:
        """Work that fails is logged, and keeps no other from being done."""
        clock = Impatient()
        turns = Turns(clock, budget=1e-9)
        done: list[str] = []

        def fail() -> None:
            raise ZeroDivisionError

        for work in (fail, fail, lambda: done.append("a"), lambda: done.append("b")):
            turns.do(work)
        for _ in range(8):
            clock.advance(0)
        self.assertEqual((done, turns.waiting), (["a", "b"], 0))
        self.assertEqual(len(self.flushLoggedErrors(ZeroDivisionError)), 2)

    def test_last_of_all(self) -> None:
        """What the last piece of work has spent of its turn is not spent of those that follow."""
        clock = Impatient()
        turns = Turns(clock, budget=1e-9)
        for _ in range(2):
            turns.do(lambda: None)
        for _ in range(3):
            clock.advance(0)
        self.assertEqual((turns.waiting, turns.free), (0, True))
        self.assertEqual(clock.getDelayedCalls(), [])

    def test_work_in_work(self) -> None:
        """What a piece of work asks for is done after it, and not within: it would not be known what it has taken."""
        clock = Impatient()
        turns = Turns(clock, budget=1e-9)
        done: list[str] = []

        def outer() -> None:
            turns.do(lambda: done.append("inner"))
            done.append("outer")

        turns.do(outer)
        self.assertEqual(done, ["outer"])
        clock.advance(0)
        self.assertEqual(done, ["outer", "inner"])

    def test_due(self) -> None:
        """What is waited for comes in another turn, and is heavy work."""
        clock = Impatient()
        turns = Turns(clock, budget=1e-9)
        free = []
        for _ in range(2):
            turns.due().addCallback(lambda _: free.append(turns.free))
        self.assertEqual((free, turns.waiting), ([], 2))
        clock.advance(0)
        self.assertEqual((free, turns.waiting), ([False, False], 0))

    def test_crowded(self) -> None:
        """Beside light requests, and for a while after them, each turn has one piece of heavy work."""
        clock = Impatient()
        turns = Turns(clock, budget=100.0)
        done: list[int] = []
        for number in range(3):
            turns.do(partial(done.append, number))
        self.assertEqual((done, turns.crowded), ([0, 1, 2], False))
        turns.light()
        self.assertTrue(turns.crowded)
        for number in range(ALONE + 2):
            turns.do(partial(done.append, number))
        self.assertEqual(len(done), 3)
        with_work = 0
        while turns.crowded:
            before = len(done)
            calls = [call for call in clock.getDelayedCalls() if call.active()]
            self.assertEqual(len(calls), 1)
            clock.calls.clear()
            calls[0].func()
            with_work += len(done) > before
            self.assertLessEqual(len(done), before + (1 if turns.crowded else ALONE))
        self.assertEqual(with_work, ALONE + 1)
