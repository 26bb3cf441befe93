"""Tests for L{kubetwist.controllers.machinery.queue}."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.controllers.machinery.queue import WorkQueue


class WorkQueueTests(SynchronousTestCase):
    """Tests for L{WorkQueue}."""

    def setUp(self) -> None:
        """Clear the record."""
        self.clock = Clock()
        self.done: list[str] = []
        self.open: dict[str, Deferred[None]] = {}

    async def work(self, key: str) -> None:
        """Record the key."""
        self.done.append(key)

    async def hold(self, key: str) -> None:
        """Record the key, and wait."""
        self.done.append(key)
        self.open[key] = Deferred()
        await self.open[key]

    def queue(self, work: Callable[[str], object] | None = None, **options: int) -> WorkQueue[str]:
        """Return a started queue."""
        queue: WorkQueue[str] = WorkQueue(self.clock, work or self.work, **options)  # type: ignore[arg-type]
        queue.start()
        return queue

    def test_once(self) -> None:
        """A key is queued once, and keys are processed in order."""
        queue = self.queue()
        for key in "abacab":
            queue.add(key)
        self.assertEqual((len(queue), self.done), (3, []))
        self.clock.advance(0)
        self.assertEqual(self.done, ["a", "b", "c"])
        self.assertTrue(queue.idle)
        queue.add("a")
        self.clock.advance(0)
        self.assertEqual(self.done, ["a", "b", "c", "a"])

    def test_adds_itself(self) -> None:
        """A key that its work function adds before the first await is processed again."""
        ends: list[Deferred[None]] = []

        async def work(key: str) -> None:
            self.done.append(key)
            if len(self.done) == 1:
                queue.add(key)
            ends.append(Deferred())
            await ends[-1]

        queue = self.queue(work, workers=5)
        queue.add("a")
        self.clock.advance(0)
        self.clock.advance(1)
        self.assertEqual(self.done, ["a"])
        ends[0].callback(None)
        self.clock.advance(0)
        self.assertEqual(self.done, ["a", "a"])
        ends[1].callback(None)
        self.assertTrue(queue.idle)

    def test_before_start(self) -> None:
        """Keys that are added before start are processed after it."""
        queue: WorkQueue[str] = WorkQueue(self.clock, self.work)
        queue.add("a")
        self.clock.advance(1)
        self.assertEqual(self.done, [])
        queue.start()
        self.clock.advance(0)
        self.assertEqual(self.done, ["a"])

    def test_added_during_processing(self) -> None:
        """A key that is added while it is processed is processed once more afterwards."""
        queue = self.queue(self.hold, workers=5)
        queue.add("a")
        self.clock.advance(0)
        queue.add("a")
        queue.add("a")
        self.clock.advance(0)
        self.assertEqual(self.done, ["a"])
        self.open["a"].callback(None)
        self.clock.advance(0)
        self.assertEqual(self.done, ["a", "a"])
        self.open["a"].callback(None)
        self.clock.advance(0)
        self.assertEqual(self.done, ["a", "a"])
        self.assertTrue(queue.idle)

    def test_workers(self) -> None:
        """Concurrency is limited by the number of workers."""
        queue = self.queue(self.hold, workers=2)
        for key in "abc":
            queue.add(key)
        self.clock.advance(0)
        self.assertEqual(self.done, ["a", "b"])
        self.open["b"].callback(None)
        self.clock.advance(0)
        self.assertEqual(self.done, ["a", "b", "c"])

    def test_delays(self) -> None:
        """A delayed key is added once, at the earliest of its times."""
        queue = self.queue()
        queue.add_after("a", 10)
        queue.add_after("a", 5)
        queue.add_after("a", 7)
        queue.add_after("b", 0)
        self.clock.advance(0)
        self.assertEqual((self.done, queue.delayed), (["b"], 1))
        self.clock.pump([4.9, 0])
        self.assertEqual(self.done, ["b"])
        self.clock.pump([0.1, 0])
        self.assertEqual(self.done, ["b", "a"])
        self.clock.pump([20, 0])
        self.assertEqual(self.done, ["b", "a"])

    def test_backoff_of_keys(self) -> None:
        """Failed keys are retried with exponential backoff from 5 ms to 1000 s, until forgotten."""
        queue = self.queue()
        delays = [queue.add_rate_limited("a") for _ in range(30)]
        self.assertEqual(delays[:4], [0.005, 0.01, 0.02, 0.04])
        self.assertEqual(delays[17:19], [655.36, 1000.0])
        self.assertEqual(delays[-1], 1000.0)
        self.assertEqual(queue.num_requeues("a"), 30)
        queue.forget("a")
        self.assertEqual(queue.add_rate_limited("a"), 0.005)
        for _ in range(2000):
            self.assertLessEqual(queue.add_rate_limited("b"), 1000.0)

    def test_yields_between_keys(self) -> None:
        """The queue yields to the reactor between slow keys."""

        async def slow(key: str) -> None:
            self.clock.rightNow += 0.003
            self.done.append(key)

        queue = self.queue(slow)
        for key in "abcd":
            queue.add(key)
        self.clock.callLater(0.001, self.done.append, "other")
        self.clock.advance(0)
        self.assertEqual(self.done, ["a", "b", "other", "c", "d"])

    def test_yield_to_reactor(self) -> None:
        """C{yield_to_reactor} yields after long work, and returns immediately otherwise."""

        async def slow(key: str) -> None:
            for step in range(4):
                self.done.append(f"{key}{step}")
                self.clock.rightNow += 0.003
                await queue.yield_to_reactor()

        queue = self.queue(slow)
        queue.add("a")
        self.clock.callLater(0.001, self.done.append, "other")
        self.clock.advance(0)
        self.assertEqual(self.done, ["a0", "a1", "other", "a2", "a3"])

    def test_stop(self) -> None:
        """Stop waits for keys in progress and starts no further ones."""
        queue = self.queue(self.hold)
        for key in "ab":
            queue.add(key)
        queue.add_after("c", 1)
        self.clock.advance(0)
        stopped = Deferred.fromCoroutine(queue.stop())
        self.assertNoResult(stopped)
        queue.add("d")
        queue.add_after("e", 1)
        self.open["a"].callback(None)
        self.successResultOf(stopped)
        self.clock.advance(10)
        self.assertEqual((self.done, self.clock.getDelayedCalls()), (["a"], []))
        self.successResultOf(Deferred.fromCoroutine(queue.stop()))

    def test_stop_timeout(self) -> None:
        """Keys in progress are cancelled after the timeout."""
        cancelled = []

        async def hang(key: str) -> None:
            try:
                await Deferred()
            except CancelledError:
                cancelled.append(key)
                raise

        queue = self.queue(hang)
        queue.add("a")
        self.clock.advance(0)
        stopped = Deferred.fromCoroutine(queue.stop(5))
        self.clock.advance(4.9)
        self.assertNoResult(stopped)
        self.clock.advance(0.2)
        self.successResultOf(stopped)
        self.assertEqual(cancelled, ["a"])

    def test_metrics(self) -> None:
        """Metrics count adds, queue and work durations, and retries."""
        queue = self.queue(self.hold)
        queue.add("a")
        queue.add("a")
        queue.add("b")
        self.clock.advance(0)
        self.clock.advance(2)
        self.open["a"].callback(None)
        self.clock.advance(0)
        self.open["b"].callback(None)
        queue.add_rate_limited("a")
        found = queue.metrics
        self.assertEqual(
            (found.adds, found.done, found.queue_duration.sum, found.work_duration.sum, found.retries),
            (2, 2, 2.0, 2.0, 1),
        )

    @settings(deadline=None)
    @given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["add", "later", "fail", "turn", "end"]))))
    def test_any_order(self, steps: list[tuple[str, str]]) -> None:
        """With any order of operations, each key is processed after its last add, and never concurrently."""
        clock = Clock()
        running: dict[str, Deferred[None]] = {}
        begun: dict[str, int] = {}
        added: dict[str, int] = {}

        async def work(key: str) -> None:
            assert key not in running, "twice at a time"
            begun[key] = moment
            running[key] = Deferred()
            await running[key]

        def end(key: str) -> None:
            if key in running:
                running.pop(key).callback(None)

        queue: WorkQueue[str] = WorkQueue(clock, work, workers=2)
        queue.start()
        for moment, (key, step) in enumerate(steps):
            if step in ("add", "later", "fail"):
                added[key] = moment
            if step == "add":
                queue.add(key)
            elif step == "later":
                queue.add_after(key, 1)
            elif step == "fail":
                queue.add_rate_limited(key)
            elif step == "turn":
                clock.advance(0.5)
            else:
                end(key)
        moment = len(steps)
        for _ in range(3 * len(steps) + 10):
            clock.advance(2000)
            clock.advance(0)
            for key in "abc":
                end(key)
        for key, when in added.items():
            self.assertGreaterEqual(begun[key], when)
        self.assertTrue(queue.idle)
