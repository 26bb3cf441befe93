"""The expiry of keys with a time to live: the due times, and one timer for the first of them."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from typing import Protocol

from attrs import define, field

from twisted.internet.interfaces import IDelayedCall

#: Maximum number of keys expired in one turn of the reactor, so that many keys due together do not block it.
EXPIRE_BATCH_SIZE = 200


class Timer(Protocol):
    """The part of L{twisted.internet.interfaces.IReactorTime} that storage uses."""

    def seconds(self) -> float:
        """Return the wall time."""

    def callLater(self, delay: float, call: Callable[..., object], /, *args: object) -> IDelayedCall:
        """Call something later."""


@define
class ExpirationQueue:
    """
    The keys with a time to live.

    @ivar expire: Called with a key and the revision at which it is due; must not raise.
    """

    clock: Timer
    expire: Callable[[str, int], None]
    #: The time each key is due: C{(when, revision)}; heap entries that differ from it are outdated.
    _due: dict[str, tuple[float, int]] = field(factory=dict, init=False)
    _heap: list[tuple[float, int, str]] = field(factory=list, init=False)
    _call: IDelayedCall | None = field(default=None, init=False)
    _stopped: bool = field(default=False, init=False)

    def load(self, list_expirations: Iterable[tuple[str, float, int]]) -> None:
        """Take over the keys that were read at the start: C{(key, when, revision)}."""
        self._due = {key: (when, revision) for key, when, revision in list_expirations}
        self._rebuild()

    @property
    def expires(self) -> bool:
        """Return whether any key expires."""
        return bool(self._due)

    def update(self, key: str, when: float | None, revision: int) -> None:
        """Note a write; C{when} is the wall time at which the key is due, L{None} for never."""
        if when is None:
            if self._due:
                self._due.pop(key, None)
            return
        self._due[key] = (when, revision)
        if len(self._heap) > 2 * len(self._due) + 100:
            self._rebuild()
        else:
            heapq.heappush(self._heap, (when, revision, key))
            self._schedule()

    def retry(self, key: str, revision: int, delay: float) -> None:
        """Retry the failed expiry of a key later."""
        if key not in self._due:
            self.update(key, self.clock.seconds() + delay, revision)

    def list_expirations(self) -> dict[str, float]:
        """Return the due time of each key."""
        return {key: when for key, (when, _) in self._due.items()}

    def stop(self) -> None:
        """Stop expiring keys."""
        self._stopped = True
        if self._call is not None and self._call.active():
            self._call.cancel()

    def _rebuild(self) -> None:
        self._heap = [(when, revision, key) for key, (when, revision) in self._due.items()]
        heapq.heapify(self._heap)
        self._schedule()

    def _schedule(self) -> None:
        if self._stopped or not self._heap:
            return
        delay = max(self._heap[0][0] - self.clock.seconds(), 0)
        if self._call is not None and self._call.active():
            if self._call.getTime() <= self.clock.seconds() + delay:
                return
            self._call.reset(delay)
        else:
            self._call = self.clock.callLater(delay, self._run)

    def _run(self) -> None:
        now = self.clock.seconds()
        remaining = EXPIRE_BATCH_SIZE
        while self._heap and self._heap[0][0] <= now and remaining and not self._stopped:
            when, revision, key = heapq.heappop(self._heap)
            if self._due.get(key) == (when, revision):
                del self._due[key]
                remaining -= 1
                self.expire(key, revision)
        self._schedule()
