"""
Run long computations one at a time in a thread beside the reactor's.

The computations on one large object (decoding, defaulting, validating, merging, tracking field ownership) are pure
Python code that cannot pause. A thread shares the interpreter's lock with the reactor, which acquires it after
L{kubetwist.server.service.SWITCH_INTERVAL} seconds each time it needs it. With several threads the reactor would wait
for all of them, so there is one. A request consists of several computations, and different requests alternate.

The garbage collector is disabled during computations and until there was none for L{QUIET_SECONDS}. It would repeatedly
traverse the hundred thousands of objects of a request, holding the lock, and find nothing: JSON values have no cycles.
After L{COLLECTION_DUE_SECONDS} without collections, a pause of L{SHORT_PAUSE_SECONDS} is sufficient. If there is none
for L{MAX_UNCOLLECTED_SECONDS}, garbage is collected between two computations.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Final, TypeVar, TypeVarTuple

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.python.failure import Failure

if TYPE_CHECKING:
    from ..http.collaborators import DeferToThread

Arguments = TypeVarTuple("Arguments")
Result = TypeVar("Result")

#: Seconds without a computation after which the collector is enabled again.
QUIET_SECONDS: Final = 0.5
#: Seconds without collections after which a pause of L{SHORT_PAUSE_SECONDS} is sufficient.
COLLECTION_DUE_SECONDS: Final = 5.0
#: A client that sends large requests one after the other needs as long for a body, while no objects of requests exist.
SHORT_PAUSE_SECONDS: Final = 0.02
#: Maximum seconds without garbage collection.
MAX_UNCOLLECTED_SECONDS: Final = 10.0


class _Computation:
    """
    One call.

    Its exception is not passed on by the thread pool: a local variable of the pool references the failure, and the
    failure references the frame with that variable, so that the arguments would be kept until garbage is collected.
    """

    def __init__(
        self, function: Callable[[*Arguments], Result], arguments: tuple[*Arguments], result: Deferred[Result]
    ) -> None:
        self.result = result
        self._context = copy_context()
        self._function: Callable[..., Any] | None = function
        self._arguments: tuple[Any, ...] = arguments
        self._outcome: Any = None

    def run(self) -> None:
        """Call the function, in the thread."""
        assert self._function is not None
        try:
            self._outcome = self._context.run(self._function, *self._arguments)
        except BaseException:
            self._outcome = Failure()
        self._function, self._arguments = None, ()

    def take_outcome(self) -> Any:
        """Return the result of the call, or its failure, and drop it."""
        outcome, self._outcome = self._outcome, None
        return outcome


class Computing:
    """
    Queue of functions that run in a thread, in the order of their submission.

    @ivar waiting: The number of waiting calls.
    """

    def __init__(self, in_thread: DeferToThread, clock: IReactorTime) -> None:
        """
        @param in_thread: Calls a function with arguments in a thread.
        @param clock: L{twisted.internet.interfaces.IReactorTime}.
        """
        self._in_thread = in_thread
        self._clock = clock
        self._enable_timer: IDelayedCall | None = None
        self._disabled_since: float | None = None
        self._waiting: deque[_Computation] = deque()
        self._busy = False
        self._stopped = False

    @property
    def waiting(self) -> int:
        """Return the number of calls that wait for earlier ones."""
        return len(self._waiting)

    def __call__(self, function: Callable[[*Arguments], Result], *arguments: *Arguments) -> Deferred[Result]:
        """
        Call a function in the thread, in the caller's context.

        A call that is cancelled before its turn is not executed; the result of one that is cancelled later is dropped.

        @param function: Must not access anything that the reactor's thread changes.
        @return: A Deferred of its result.
        """
        result: Deferred[Result] = Deferred()
        self._waiting.append(_Computation(function, arguments, result))
        if not self._busy:
            self._next()
        return result

    def _next(self) -> None:
        """Start the next call."""
        while self._waiting:
            computation = self._waiting.popleft()
            if computation.result.called:
                continue
            self._busy = True
            self._disable_collector()
            self._in_thread(computation.run).addBoth(self._done, computation)
            return

    def _disable_collector(self) -> None:
        if self._enable_timer is not None:
            self._enable_timer.cancel()
            self._enable_timer = None
        now = self._clock.seconds()
        if self._disabled_since is not None and now - self._disabled_since > MAX_UNCOLLECTED_SECONDS:
            self._enable_collector()
        if self._disabled_since is None and gc.isenabled():
            self._disabled_since = now
            gc.disable()

    def _enable_collector(self) -> None:
        self._enable_timer = None
        if self._disabled_since is not None:
            self._disabled_since = None
            gc.enable()
            # New objects are in the young generations, unless they survived the last collection.
            gc.collect(1)

    def stop(self) -> None:
        """Enable garbage collection; running computations are finished."""
        self._stopped = True
        if self._enable_timer is not None:
            self._enable_timer.cancel()
        self._enable_collector()

    def _done(self, failed: Failure | None, computation: _Computation) -> None:
        """
        Hand over the outcome of a call.

        @param failed: The failure to get a thread, or L{None}.
        """
        outcome = failed or computation.take_outcome()
        result = computation.result
        self._busy = False
        if self._stopped:
            self._enable_collector()
        elif not self._waiting and self._disabled_since is not None:
            due = self._clock.seconds() - self._disabled_since >= COLLECTION_DUE_SECONDS
            self._enable_timer = self._clock.callLater(
                SHORT_PAUSE_SECONDS if due else QUIET_SECONDS, self._enable_collector
            )
        # The thread starts the next call before the caller handles this result.
        self._next()
        if result.called:
            return
        if isinstance(outcome, Failure):
            result.errback(outcome)
        else:
            result.callback(outcome)


def freeze() -> None:
    """
    Collect garbage, and exclude the remaining objects, such as modules, from later collections.

    A full collection holds the lock while it traverses all objects that are not excluded.
    """
    gc.collect()
    gc.freeze()
