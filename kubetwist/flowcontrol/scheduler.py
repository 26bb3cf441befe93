"""
Cooperative scheduling of expensive work in the reactor's thread.

One thread answers all requests, so sixty lists of five milliseconds would delay every other request by 300 ms.
Expensive work is therefore done in small pieces: once the time slice of an iteration of the reactor is used up, the
rest waits for the next iteration, and cheap requests run in between. While there are cheap requests, each iteration
runs only one small piece of expensive work.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Final

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

#: Seconds of expensive work per iteration; a started piece is completed.
SLICE_SECONDS: Final = 0.0001
#: Iterations without expensive work in which a cheap request is read, answered and sent.
RESERVED_ITERATIONS: Final = 3
#: Maximum number of consecutive iterations without expensive work.
MAX_RESERVED_ITERATIONS: Final = 8
#: Iterations with expensive work after which no more cheap requests are expected.
CHEAP_EXPIRY_ITERATIONS: Final = 64


class CooperativeScheduler:
    """
    Queue of expensive work, with a time limit per iteration of the reactor.

    @ivar waiting: Number of queued pieces.
    """

    _log = Logger()

    def __init__(self, reactor: IReactorTime, budget: float = SLICE_SECONDS) -> None:
        self._reactor = reactor
        self._budget = self._time_slice = budget
        self._iterations_without_cheap = 0
        self._spent = 0.0
        self._scheduled = False
        self._working = False
        self._reserved_iterations = 0
        self._skipped = 0
        self._work: deque[Callable[[], object]] = deque()

    @property
    def waiting(self) -> int:
        """Return the number of queued pieces of work."""
        return len(self._work)

    @property
    def has_cheap_requests(self) -> bool:
        """Return whether there were cheap requests recently, so that pieces must be small."""
        return not self._time_slice

    @property
    def free(self) -> bool:
        """Return whether this iteration has time left; it has none during a piece of work."""
        return self._spent <= self._time_slice and not self._work and not self._working

    def note_cheap_request(self) -> None:
        """Reserve the next iterations for a cheap request."""
        self._reserved_iterations = RESERVED_ITERATIONS
        self._time_slice = 0.0
        self._iterations_without_cheap = 0

    def run_or_defer(self, work: Callable[[], object]) -> None:
        """Run expensive work now if there is time, or else after the queued work."""
        if self.free and not self._reserved_iterations:
            self._run_timed(work)
            self._schedule()
        else:
            self._enqueue(work)

    def wait_for_slot(self) -> Deferred[None]:
        """Return a Deferred that fires in a later iteration; the callbacks' time counts as expensive work."""
        waiting: Deferred[None] = Deferred()
        self._enqueue(partial(waiting.callback, None))
        return waiting

    def _enqueue(self, work: Callable[[], object]) -> None:
        self._work.append(work)
        self._schedule()

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._reactor.callLater(0, self._next)

    def _next(self) -> None:
        """Run queued work for the time slice of a new iteration."""
        self._scheduled = False
        self._spent = 0.0
        if self._reserved_iterations and self._work and self._skipped < MAX_RESERVED_ITERATIONS:
            self._reserved_iterations -= 1
            self._skipped += 1
            self._schedule()
            return
        self._reserved_iterations = self._skipped = 0
        self._iterations_without_cheap += 1
        if self._iterations_without_cheap > CHEAP_EXPIRY_ITERATIONS:
            self._time_slice = self._budget
        while self._work and self._spent <= self._time_slice:
            self._run_timed(self._work.popleft())
        # Also without queued work, so that the used time is reset in the next iteration.
        if self._spent or self._work:
            self._schedule()

    def _run_timed(self, work: Callable[[], object]) -> None:
        start = perf_counter()
        self._working = True
        try:
            work()
        except Exception:
            # The work behind it must run.
            self._log.failure("a piece of work failed")
        finally:
            self._working = False
            self._spent += perf_counter() - start
