"""The work queue of controllers: keys without duplicates, with the rate limits of client-go's workqueue."""

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

#: The first and the maximum delay, in seconds, of the exponential backoff.
RETRY_INITIAL = 0.005
RETRY_MAX = 1000.0
#: Upper bounds of the histogram buckets, in seconds.
BUCKETS = exponential(1e-8, 10.0, 10)
#: Maximum time, in seconds, that a queue blocks the reactor before it yields.
MAX_BLOCKING_SECONDS = 0.004
#: Maximum number of keys for which a queue does so. It bounds the work while the clock of a test is stopped.
MAX_BLOCKING_KEYS = 100


@define(eq=False)
class QueueMetrics:
    """
    The metrics of a queue.

    @ivar adds: Number of keys that were added, without duplicates.
    @ivar retries: Number of keys that were added with backoff.
    @ivar done: Number of processed keys.
    @ivar queue_duration: Seconds that keys waited in the queue.
    @ivar work_duration: Seconds that processing took.
    """

    adds: int = 0
    retries: int = 0
    done: int = 0
    queue_duration: Histogram = field(factory=lambda: Histogram(BUCKETS))
    work_duration: Histogram = field(factory=lambda: Histogram(BUCKETS))


class WorkQueue(Generic[Key]):
    """
    A work queue of keys (client-go: workqueue).

    A key is queued once, even if it is added several times. A key that is added while it is being processed is
    processed again afterwards, and never concurrently.

    @ivar metrics: Counters and histograms of this queue.
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
        @param work: Processes a key. It must handle errors.
        @param workers: Maximum number of keys that are processed concurrently.
        """
        self.metrics = QueueMetrics()
        self._clock = clock
        self._work = work
        self._workers = workers
        self._retry = retry_initial, retry_max
        self._waiting: deque[Key] = deque()
        #: Time when a key was added, by key.
        self._added_at: dict[Key, float] = {}
        self._processing: dict[Key, Deferred[None]] = {}
        #: Time when the processing of a key began, by key.
        self._started_at: dict[Key, float] = {}
        self._dirty: set[Key] = set()
        self._delayed: dict[Key, IDelayedCall] = {}
        self._failures: dict[Key, int] = {}
        self._dispatch_call: IDelayedCall | None = None
        #: When this queue last yielded to the reactor.
        self._last_yield = 0.0
        self._started = False
        self._stopped = False

    def __len__(self) -> int:
        """Return the number of waiting keys, without delayed ones."""
        return len(self._waiting) + len(self._dirty)

    def unfinished_work(self) -> tuple[float, float]:
        """Return the seconds since the processing of the current keys began: the sum and the maximum."""
        now = self._clock.seconds()
        durations = [now - started for started in self._started_at.values()]
        return sum(durations), max(durations, default=0.0)

    @property
    def idle(self) -> bool:
        """Return whether no key is waiting or being processed. Delayed keys are not counted."""
        return not self._waiting and not self._processing

    @property
    def delayed(self) -> int:
        """Return the number of delayed keys."""
        return len(self._delayed)

    # --- adding keys

    def add(self, key: Key) -> None:
        """Add a key, to be processed as soon as possible."""
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
        """Add a key after a delay in seconds. Of several delays the shortest is used."""
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
        """Add a key after an exponential backoff, and return the delay in seconds."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        first, most = self._retry
        # The exponent is bounded because a float would overflow.
        delay = min(first * 2.0 ** min(failures, 64), most)
        self.metrics.retries += 1
        self.add_after(key, delay)
        return delay

    def forget(self, key: Key) -> None:
        """Reset the backoff of a key, after success."""
        self._failures.pop(key, None)

    def num_requeues(self, key: Key) -> int:
        """Return how often a key was requeued since L{forget}."""
        return self._failures.get(key, 0)

    def _add_delayed(self, key: Key) -> None:
        del self._delayed[key]
        self.add(key)

    # --- processing

    def start(self) -> None:
        """Start processing keys."""
        self._started = True
        self._wake()

    async def stop(self, timeout: float = 5.0) -> None:
        """
        Stop, and wait for the keys that are being processed.

        @param timeout: Seconds until keys that are still being processed are cancelled.
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
        """Yield to the reactor if the work has blocked it for L{MAX_BLOCKING_SECONDS}. For loops over many objects."""
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
        started = self._last_yield = self._clock.seconds()
        for _ in range(MAX_BLOCKING_KEYS):
            if not self._waiting or len(self._processing) >= self._workers or self._stopped:
                break
            self._start_work(self._waiting.popleft())
            if self._clock.seconds() - started > MAX_BLOCKING_SECONDS:
                break
        self._wake()

    def _start_work(self, key: Key) -> None:
        started = self._clock.seconds()
        self.metrics.queue_duration.observe(started - self._added_at.pop(key))
        self._started_at[key] = started
        # The function may add the same key before its first await.
        self._processing[key] = Deferred()
        work: Deferred[None] = Deferred.fromCoroutine(self._run_work(key))
        self._processing[key] = work
        work.addBoth(self._finished, key, started)

    async def _run_work(self, key: Key) -> None:
        await self._work(key)

    def _finished(self, result: object, key: Key, started: float) -> None:
        del self._processing[key]
        self._started_at.pop(key, None)
        self.metrics.done += 1
        self.metrics.work_duration.observe(self._clock.seconds() - started)
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
