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
RETRY_FIRST = 0.005
RETRY_MOST = 1000.0
#: Bounds of times, in seconds.
BOUNDS = exponential(1e-8, 10.0, 10)
#: Seconds of work without a pause; then the reactor has its turn.
SLICE = 0.004


@define(eq=False)
class QueueMetrics:
    """
    What a queue has done.

    @ivar adds: Keys that were put in it, those aside that were in it already.
    @ivar retries: Of these, the ones put back after a failure.
    @ivar done: Keys that were worked on.
    @ivar waited: Seconds that they waited in the queue.
    @ivar worked: Seconds that the work took.
    """

    adds: int = 0
    retries: int = 0
    done: int = 0
    waited: Histogram = field(factory=lambda: Histogram(BOUNDS))
    worked: Histogram = field(factory=lambda: Histogram(BOUNDS))


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
        retry_first: float = RETRY_FIRST,
        retry_most: float = RETRY_MOST,
    ) -> None:
        """
        @param work: Does what is to be done about a key. It handles its own errors.
        @param workers: How many keys are worked on at the same time.
        """
        self.metrics = QueueMetrics()
        self._clock = clock
        self._work = work
        self._workers = workers
        self._retry = retry_first, retry_most
        self._ready: deque[Key] = deque()
        #: By key: since when it waits.
        self._since: dict[Key, float] = {}
        self._running: dict[Key, Deferred[None]] = {}
        #: By key: since when it is worked on.
        self._begun: dict[Key, float] = {}
        self._again: set[Key] = set()
        self._delayed: dict[Key, IDelayedCall] = {}
        self._failures: dict[Key, int] = {}
        self._call: IDelayedCall | None = None
        #: When the reactor last had its turn, as far as this queue knows.
        self._turn = 0.0
        self._started = False
        self._stopped = False

    def __len__(self) -> int:
        """How many keys wait, not counting delayed ones."""
        return len(self._ready) + len(self._again)

    def under_way(self) -> tuple[float, float]:
        """Seconds that keys have been worked on that are not done: all of them together, and the longest."""
        now = self._clock.seconds()
        lasted = [now - begun for begun in self._begun.values()]
        return sum(lasted), max(lasted, default=0.0)

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do now; delayed keys may come."""
        return not self._ready and not self._running

    @property
    def delayed(self) -> int:
        """How many keys come later."""
        return len(self._delayed)

    # --- putting in

    def add(self, key: Key) -> None:
        """Have a key worked on as soon as possible."""
        if self._stopped or key in self._since or key in self._again:
            return
        self.metrics.adds += 1
        if key in self._running:
            self._again.add(key)
            return
        self._since[key] = self._clock.seconds()
        self._ready.append(key)
        if self._call is None:
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
        self._delayed[key] = self._clock.callLater(seconds, self._due, key)

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

    def failures(self, key: Key) -> int:
        """How often it has failed since it was last forgotten."""
        return self._failures.get(key, 0)

    def _due(self, key: Key) -> None:
        del self._delayed[key]
        self.add(key)

    # --- working

    def start(self) -> None:
        """Begin to work."""
        self._started = True
        self._wake()

    async def stop(self, patience: float = 5.0) -> None:
        """
        Begin nothing more, and wait for what is under way.

        @param patience: In seconds; after that what still runs is cancelled.
        """
        self._stopped = True
        calls = [self._call, *self._delayed.values()]
        self._delayed.clear()
        self._ready.clear()
        self._since.clear()
        self._again.clear()
        for call in calls:
            if call is not None and call.active():
                call.cancel()
        self._call = None
        running = list(self._running.values())
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

        limit = self._clock.callLater(patience, cancel)
        await DeferredList(finished)
        if limit.active():
            limit.cancel()

    async def pause(self) -> None:
        """Let the reactor have its turn, if the work has lasted for long enough; for loops over many objects."""
        if self._clock.seconds() - self._turn <= SLICE:
            return
        turn: Deferred[None] = Deferred(lambda _: call.cancel())
        call = self._clock.callLater(0, turn.callback, None)
        await turn
        self._turn = self._clock.seconds()

    def _wake(self) -> None:
        if (
            self._started
            and not self._stopped
            and self._call is None
            and self._ready
            and len(self._running) < self._workers
        ):
            self._call = self._clock.callLater(0, self._dispatch)

    def _dispatch(self) -> None:
        self._call = None
        begun = self._turn = self._clock.seconds()
        while self._ready and len(self._running) < self._workers and not self._stopped:
            self._begin(self._ready.popleft())
            if self._clock.seconds() - begun > SLICE:
                break
        self._wake()

    def _begin(self, key: Key) -> None:
        begun = self._clock.seconds()
        self.metrics.waited.observe(begun - self._since.pop(key))
        self._begun[key] = begun
        # The work may add its own key before it waits for anything.
        self._running[key] = Deferred()
        work: Deferred[None] = Deferred.fromCoroutine(self._one(key))
        self._running[key] = work
        work.addBoth(self._finished, key, begun)

    async def _one(self, key: Key) -> None:
        await self._work(key)

    def _finished(self, result: object, key: Key, begun: float) -> None:
        del self._running[key]
        self._begun.pop(key, None)
        self.metrics.done += 1
        self.metrics.worked.observe(self._clock.seconds() - begun)
        if key in self._again:
            self._again.discard(key)
            if not self._stopped:
                self._since[key] = self._clock.seconds()
                self._ready.append(key)
        self._wake()
        check = getattr(result, "check", None)
        if check is not None and not check(CancelledError):
            return result  # type: ignore[return-value]
        return None


def _passing_on(result: object, done: Deferred[None]) -> object:
    done.callback(None)
    return result
