"""What controllers have to do: keys, each once, with the patience of client-go's queues."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from attrs import define, field

from twisted.internet.defer import CancelledError, Deferred, DeferredList
from twisted.internet.interfaces import IDelayedCall, IReactorTime

from ...metrics.registry import (
    Histogram,
    exponential,
)

Key = TypeVar("Key", bound=Hashable)

#: Seconds until a key that failed is tried again: the first time, and at most; it doubles in between.
RETRY_INITIAL = 0.005
RETRY_MAX = 1000.0
#: Bounds of times, in seconds.
BUCKETS = exponential(1e-8, 10.0, 10)
#: Seconds of work without a pause; then the reactor has its turn.
MAX_BLOCKING_SECONDS = 0.004


@define(eq=False)
class QueueMetrics:
    """
    What a queue has done.

    @ivar adds: Keys that were put in it, those aside that were in it already.
    @ivar retries: Of these, the ones put back after a failure.
    @ivar done: Keys that were worked on.
    @ivar queue_duration: Seconds that they waited in the queue.
    @ivar work_duration: Seconds that the work took.
    """

    adds: int = 0
    retries: int = 0
    done: int = 0
    queue_duration: Histogram = field(factory=lambda: Histogram(BUCKETS))
    work_duration: Histogram = field(factory=lambda: Histogram(BUCKETS))


class WorkQueue(Generic[Key]):
    """
    Keys to be worked on.

    A key is in the queue once, however often it is added. One that is added while it is worked on is worked on again
    afterwards, and never twice at the same time.

    @ivar metrics: For whoever counts.
    """

    def __init__(
        self,
        clock: IReactorTime,
        work: Callable[[Key], Awaitable[None]],
        *,
        workers: int = 1,
        retry_initial: float = RETRY_INITIAL,
        retry_max: float = RETRY_MAX,
    ) -> None:
        """
        @param work: Does what is to be done about a key. It handles its own errors.
        @param workers: How many keys are worked on at the same time.
        """
        self.metrics = QueueMetrics()
        self._clock = clock
        self._work = work
        self._workers = workers
        self._retry = retry_initial, retry_max
        self._waiting: deque[Key] = deque()
        #: By key: since when it waits.
        self._added_at: dict[Key, float] = {}
        self._processing: dict[Key, Deferred[None]] = {}
        #: By key: since when it is worked on.
        self._started_at: dict[Key, float] = {}
        self._dirty: set[Key] = set()
        self._delayed: dict[Key, IDelayedCall] = {}
        self._failures: dict[Key, int] = {}
        self._dispatch_call: IDelayedCall | None = None
        #: When the reactor last had its turn, as far as this queue knows.
        self._last_yield = 0.0
        self._started = False
        self._stopped = False

    def __len__(self) -> int:
        """How many keys wait, not counting delayed ones."""
        return len(self._waiting) + len(self._dirty)

    def unfinished_work(self) -> tuple[float, float]:
        """Seconds that keys have been worked on that are not done: all of them together, and the longest."""
        now = self._clock.seconds()
        lasted = [now - begun for begun in self._started_at.values()]
        return sum(lasted), max(lasted, default=0.0)

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do now; delayed keys may come."""
        return not self._waiting and not self._processing

    @property
    def delayed(self) -> int:
        """How many keys come later."""
        return len(self._delayed)

    # --- putting in

    def add(self, key: Key) -> None:
        """Have a key worked on as soon as possible."""
        if self._stopped or key in self._added_at or key in self._dirty:
            return
        self.metrics.adds += 1
        if key in self._processing:
            self._dirty.add(key)
            return
        self._added_at[key] = self._clock.seconds()
        self._waiting.append(key)
        if self._dispatch_call is None:
            self._wake()

    def add_after(self, key: Key, seconds: float) -> None:
        """Have a key worked on in a while; of several such calls the earliest counts."""
        if self._stopped:
            return
        if seconds <= 0:
            self.add(key)
            return
        known = self._delayed.get(key)
        if known is not None:
            if known.getTime() <= self._clock.seconds() + seconds:
                return
            known.cancel()
        self._delayed[key] = self._clock.callLater(seconds, self._add_delayed, key)

    def add_rate_limited(self, key: Key) -> float:
        """Have a key that failed worked on again, the later the oftener it failed; give the seconds until then."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        first, most = self._retry
        # A float has no room for more doublings, and nobody waits that long.
        delay = min(first * 2.0 ** min(failures, 64), most)
        self.metrics.retries += 1
        self.add_after(key, delay)
        return delay

    def forget(self, key: Key) -> None:
        """A key did not fail: the next time that it does is the first."""
        self._failures.pop(key, None)

    def num_requeues(self, key: Key) -> int:
        """How often it has failed since it was last forgotten."""
        return self._failures.get(key, 0)

    def _add_delayed(self, key: Key) -> None:
        del self._delayed[key]
        self.add(key)

    # --- working

    def start(self) -> None:
        """Begin to work."""
        self._started = True
        self._wake()

    async def stop(self, timeout: float = 5.0) -> None:
        """
        Begin nothing more, and wait for what is under way.

        @param timeout: In seconds; after that what still runs is cancelled.
        """
        self._stopped = True
        calls = [self._dispatch_call, *self._delayed.values()]
        self._delayed.clear()
        self._waiting.clear()
        self._added_at.clear()
        self._dirty.clear()
        for call in calls:
            if call is not None and call.active():
                call.cancel()
        self._dispatch_call = None
        running = list(self._processing.values())
        if not running:
            return
        finished: list[Deferred[None]] = []
        for work in running:
            done: Deferred[None] = Deferred()
            work.addBoth(_passing_on, done)
            finished.append(done)

        def cancel() -> None:
            for work in running:
                work.cancel()

        limit = self._clock.callLater(timeout, cancel)
        await DeferredList(finished)
        if limit.active():
            limit.cancel()

    async def yield_to_reactor(self) -> None:
        """Let the reactor have its turn, if the work has lasted for long enough; for loops over many objects."""
        if self._clock.seconds() - self._last_yield <= MAX_BLOCKING_SECONDS:
            return
        turn: Deferred[None] = Deferred(lambda _: call.cancel())
        call = self._clock.callLater(0, turn.callback, None)
        await turn
        self._last_yield = self._clock.seconds()

    def _wake(self) -> None:
        if (
            self._started
            and not self._stopped
            and self._dispatch_call is None
            and self._waiting
            and len(self._processing) < self._workers
        ):
            self._dispatch_call = self._clock.callLater(0, self._dispatch)

    def _dispatch(self) -> None:
        self._dispatch_call = None
        begun = self._last_yield = self._clock.seconds()
        while self._waiting and len(self._processing) < self._workers and not self._stopped:
            self._start_work(self._waiting.popleft())
            if self._clock.seconds() - begun > MAX_BLOCKING_SECONDS:
                break
        self._wake()

    def _start_work(self, key: Key) -> None:
        begun = self._clock.seconds()
        self.metrics.queue_duration.observe(begun - self._added_at.pop(key))
        self._started_at[key] = begun
        # The work may add its own key before it waits for anything.
        self._processing[key] = Deferred()
        work: Deferred[None] = Deferred.fromCoroutine(self._run_work(key))
        self._processing[key] = work
        work.addBoth(self._finished, key, begun)

    async def _run_work(self, key: Key) -> None:
        await self._work(key)

    def _finished(self, result: object, key: Key, begun: float) -> None:
        del self._processing[key]
        self._started_at.pop(key, None)
        self.metrics.done += 1
        self.metrics.work_duration.observe(self._clock.seconds() - begun)
        if key in self._dirty:
            self._dirty.discard(key)
            if not self._stopped:
                self._added_at[key] = self._clock.seconds()
                self._waiting.append(key)
        self._wake()
        check = getattr(result, "check", None)
        if check is not None and not check(CancelledError):
            return result  # type: ignore[return-value]
        return None


def _passing_on(result: object, done: Deferred[None]) -> object:
    done.callback(None)
    return result
