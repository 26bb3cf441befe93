"""The environment of storage tests: a reactor whose time tests set, and an observer that records its calls."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from queue import SimpleQueue
from typing import Any, TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.python.failure import Failure
from zope.interface import implementer

from ..api.storage import (
    UNKNOWN_REVISION,
    StorageEvent,
)
from ..interfaces import IStorageObserver

T = TypeVar("T")

#: Seconds without a call after which a thread counts as dead; no test waits that long.
DEAD = 60.0


class StorageReactor(Clock):
    """A clock that tests set, which also runs the calls from threads of a storage backend."""

    def __init__(self) -> None:
        super().__init__()
        self.rightNow = 1_000_000.0
        self._calls: SimpleQueue[tuple[Callable[..., object], Any, Any]] = SimpleQueue()

    def callFromThread(self, call: Callable[..., object], /, *args: object, **kw: object) -> None:
        """Queue a call, which L{run} makes."""
        self._calls.put((call, args, kw))

    def run(self, awaitable: Deferred[T] | Coroutine[Any, Any, T]) -> T:
        """Run calls from threads until there is a result, and return or raise it."""
        results: list[Any] = []
        deferred = awaitable if isinstance(awaitable, Deferred) else Deferred.fromCoroutine(awaitable)
        deferred.addBoth(results.append)
        while not results:
            self.turn()
        (result,) = results
        if isinstance(result, Failure):
            result.raiseException()
        found: T = result
        return found

    def close(self) -> None:
        """Close the reactor at the end of the test."""

    def turn(self) -> None:
        """Run the delayed calls that are due, wait for one call from a thread, and run it."""
        self.advance(0)
        call, args, kw = self._calls.get(timeout=DEAD)
        call(*args, **kw)


@implementer(IStorageObserver)
class RecordingObserver:
    """
    Records all its calls.

    @ivar then: Called after each batch of events.
    """

    def __init__(self, then: Callable[[Sequence[StorageEvent]], object] | None = None) -> None:
        self.events: list[StorageEvent] = []
        self.progress = 0
        self.reasons: list[Exception] = []
        self.then = then

    def committed(self, events: Sequence[StorageEvent]) -> None:
        """See L{IStorageObserver.committed}."""
        self.events += events
        if self.then is not None:
            self.then(events)

    def progressed(self, revision: int) -> None:
        """See L{IStorageObserver.progressed}."""
        self.progress = revision

    def ended(self, reason: Exception) -> None:
        """See L{IStorageObserver.ended}."""
        self.reasons.append(reason)

    def seen(self) -> list[tuple[str, bytes | None, int, Any]]:
        """Return key, value, revision and previous revision of every event; an unknown previous revision equals any."""
        return [
            (
                event.key,
                event.value,
                event.revision,
                ANY_REVISION if event.previous == UNKNOWN_REVISION else event.previous,
            )
            for event in self.events
        ]


class _AnyRevision:
    """Equals any revision but 0."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, int) and other > 0

    __hash__ = None  # type: ignore[assignment]


ANY_REVISION = _AnyRevision()
