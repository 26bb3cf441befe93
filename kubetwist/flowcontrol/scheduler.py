"""
How much heavy work is done before the reactor looks who else wants something.

One thread answers all requests, so a list that takes five milliseconds makes everybody wait that long, and sixty of
them that have arrived together make everybody wait for all. What is heavy is therefore done a little at a time: once
the budget of a turn of the reactor is spent, the rest waits for the next one, and light requests go in between. As long
as there are such, each turn has one piece of heavy work, and that a small one.
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

#: Seconds of heavy work in one turn; what was begun is finished.
SLICE_SECONDS: Final = 0.0001
#: Turns without heavy work that a light request is given, to be read, answered and sent.
RESERVED_ITERATIONS: Final = 3
#: Turns without heavy work one after the other, at most.
MAX_RESERVED_ITERATIONS: Final = 8
#: Turns with heavy work after which those who were light are taken to be gone.
CHEAP_EXPIRY_ITERATIONS: Final = 64


class CooperativeScheduler:
    """
    Counts the heavy work of each turn, and keeps what is left for the next.

    @ivar waiting: Pieces of work that wait.
    """

    _log = Logger()

    def __init__(self, reactor: IReactorTime, budget: float = SLICE_SECONDS) -> None:
        self._reactor = reactor
        self._budget = self._allowed = budget
        self._alone = 0
        self._spent = 0.0
        self._planned = False
        self._working = False
        self._quiet = 0
        self._skipped = 0
        self._work: deque[Callable[[], object]] = deque()

    @property
    def waiting(self) -> int:
        """How much work waits."""
        return len(self._work)

    @property
    def has_cheap_requests(self) -> bool:
        """Whether there are light requests, too: what can be done in small pieces is to be."""
        return not self._allowed

    @property
    def free(self) -> bool:
        """Whether more can be done in this turn; what asks in the midst of its own work has its share."""
        return self._spent <= self._allowed and not self._work and not self._working

    def note_cheap_request(self) -> None:
        """Somebody wants something light: let its answer go out before anything heavy is done."""
        self._quiet = RESERVED_ITERATIONS
        self._allowed = 0.0
        self._alone = 0

    def run_or_defer(self, work: Callable[[], object]) -> None:
        """Do something heavy: now, or in one of the next turns, after all that waits already."""
        if self.free and not self._quiet:
            self._timed(work)
            self._plan()
        else:
            self._later(work)

    def wait_for_slot(self) -> Deferred[None]:
        """Fires in another turn, when there is time; what is done at once by who waits for it is heavy work."""
        waiting: Deferred[None] = Deferred()
        self._later(partial(waiting.callback, None))
        return waiting

    def _later(self, work: Callable[[], object]) -> None:
        self._work.append(work)
        self._plan()

    def _plan(self) -> None:
        if not self._planned:
            self._planned = True
            self._reactor.callLater(0, self._next)

    def _next(self) -> None:
        """A new turn."""
        self._planned = False
        self._spent = 0.0
        if self._quiet and self._work and self._skipped < MAX_RESERVED_ITERATIONS:
            self._quiet -= 1
            self._skipped += 1
            self._plan()
            return
        self._quiet = self._skipped = 0
        self._alone += 1
        if self._alone > CHEAP_EXPIRY_ITERATIONS:
            self._allowed = self._budget
        while self._work and self._spent <= self._allowed:
            self._timed(self._work.popleft())
        # Also when all is done: what was spent of this turn is not spent of those that follow.
        if self._spent or self._work:
            self._plan()

    def _timed(self, work: Callable[[], object]) -> None:
        begun = perf_counter()
        self._working = True
        try:
            work()
        except Exception:
            # Others wait behind it.
            self._log.failure("a piece of work failed")
        finally:
            self._working = False
            self._spent += perf_counter() - begun
