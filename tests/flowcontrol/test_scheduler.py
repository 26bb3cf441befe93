"""Tests of L{kubetwist.flowcontrol.scheduler}."""

from __future__ import annotations

from functools import partial

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.flowcontrol.scheduler import (
    CHEAP_EXPIRY_ITERATIONS,
    CooperativeScheduler,
)
from tests.flowcontrol.requests import BusyLoopClock


class CooperativeSchedulerTests(SynchronousTestCase):
    """L{CooperativeScheduler}."""

    def test_failing_work(self) -> None:
        """An exception of a piece of work is logged, and the next piece runs."""
        clock = BusyLoopClock()
        scheduler = CooperativeScheduler(clock, budget=1e-9)
        done: list[str] = []

        def fail() -> None:
            raise ZeroDivisionError

        for work in (fail, fail, lambda: done.append("a"), lambda: done.append("b")):
            scheduler.run_or_defer(work)
        for _ in range(8):
            clock.advance(0)
        self.assertEqual((done, scheduler.waiting), (["a", "b"], 0))
        self.assertEqual(len(self.flushLoggedErrors(ZeroDivisionError)), 2)

    def test_last_of_all(self) -> None:
        """The time of the last piece of an iteration does not count for the next iteration."""
        clock = BusyLoopClock()
        scheduler = CooperativeScheduler(clock, budget=1e-9)
        for _ in range(2):
            scheduler.run_or_defer(lambda: None)
        for _ in range(3):
            clock.advance(0)
        self.assertEqual((scheduler.waiting, scheduler.free), (0, True))
        self.assertEqual(clock.getDelayedCalls(), [])

    def test_work_in_work(self) -> None:
        """Work that is scheduled during a piece of work runs after it."""
        clock = BusyLoopClock()
        scheduler = CooperativeScheduler(clock, budget=1e-9)
        done: list[str] = []

        def outer() -> None:
            scheduler.run_or_defer(lambda: done.append("inner"))
            done.append("outer")

        scheduler.run_or_defer(outer)
        self.assertEqual(done, ["outer"])
        clock.advance(0)
        self.assertEqual(done, ["outer", "inner"])

    def test_wait_for_slot(self) -> None:
        """A waiting caller continues in a later iteration, and its time counts as expensive work."""
        clock = BusyLoopClock()
        scheduler = CooperativeScheduler(clock, budget=1e-9)
        free = []
        for _ in range(2):
            scheduler.wait_for_slot().addCallback(lambda _: free.append(scheduler.free))
        self.assertEqual((free, scheduler.waiting), ([], 2))
        clock.advance(0)
        self.assertEqual((free, scheduler.waiting), ([False, False], 0))

    def test_cheap_requests(self) -> None:
        """While there are cheap requests, each iteration runs one piece of expensive work."""
        clock = BusyLoopClock()
        scheduler = CooperativeScheduler(clock, budget=100.0)
        done: list[int] = []
        for number in range(3):
            scheduler.run_or_defer(partial(done.append, number))
        self.assertEqual((done, scheduler.has_cheap_requests), ([0, 1, 2], False))
        scheduler.note_cheap_request()
        self.assertTrue(scheduler.has_cheap_requests)
        for number in range(CHEAP_EXPIRY_ITERATIONS + 2):
            scheduler.run_or_defer(partial(done.append, number))
        self.assertEqual(len(done), 3)
        with_work = 0
        while scheduler.has_cheap_requests:
            before = len(done)
            calls = [call for call in clock.getDelayedCalls() if call.active()]
            self.assertEqual(len(calls), 1)
            clock.calls.clear()
            calls[0].func()
            with_work += len(done) > before
            self.assertLessEqual(len(done), before + (1 if scheduler.has_cheap_requests else CHEAP_EXPIRY_ITERATIONS))
        self.assertEqual(with_work, CHEAP_EXPIRY_ITERATIONS + 1)
