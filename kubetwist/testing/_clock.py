"""
The clock of servers in this process, which tests can stop and move.

It replaces the reactor: storage, controllers and filters read its time and schedule delayed calls on it. Objects,
tokens and certificates use the time of the process (L{kubetwist.api.times}), so all servers of the process share the
clock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from twisted.internet.error import AlreadyCalled, AlreadyCancelled
from twisted.internet.interfaces import IDelayedCall
from zope.interface import directlyProvides, implementer, providedBy

from ..api import times
from ..interfaces import IServerReactor

#: Delays up to this number of seconds use real time even while the clock is frozen: they pace work, and tests do not
#: depend on them.
REAL_TIME_THRESHOLD: Final = 1.0


@implementer(IDelayedCall)
class _DelayedCall:
    """A delayed call, scheduled on the reactor while the clock runs."""

    __slots__ = ("_call", "_clock", "_real", "_state", "due")

    def __init__(self, clock: ServerClock, due: float, call: Callable[[], object]) -> None:
        self.due = due
        self._clock = clock
        self._call = call
        self._real: Any = None
        self._state: type[Exception] | None = None

    def schedule(self) -> None:
        """Schedule the call on the reactor if the clock runs; immediately if it is due."""
        clock = self._clock
        delay = self.due - clock.seconds()
        if self._real is not None and self._real.active():
            self._real.cancel()
            self._real = None
        if delay <= 0 or not clock.frozen:
            self._real = clock.reactor.callLater(max(delay, 0), self._run)

    def _run(self) -> None:
        self._state = AlreadyCalled
        self._clock.calls.pop(self, None)
        self._call()

    def getTime(self) -> float:
        return self.due

    def active(self) -> bool:
        return self._state is None

    def _check(self) -> None:
        if self._state is not None:
            raise self._state()

    def cancel(self) -> None:
        self._check()
        self._state = AlreadyCancelled
        self._clock.calls.pop(self, None)
        if self._real is not None:
            self._real.cancel()
            self._real = None

    def reset(self, seconds: float) -> None:
        self._check()
        self.due = self._clock.seconds() + seconds
        self.schedule()

    def delay(self, seconds: float) -> None:
        self._check()
        self.due += seconds
        self.schedule()


class ServerClock:
    """
    A reactor whose time can be stopped and moved; all further methods are forwarded to the real reactor.

    @ivar reactor: The real reactor.
    @ivar frozen: Whether the time is stopped.
    @ivar calls: Calls that are delayed by more than L{REAL_TIME_THRESHOLD}, unordered.
    """

    def __init__(self, reactor: IServerReactor) -> None:
        self.reactor = reactor
        self.frozen = False
        self.calls: dict[_DelayedCall, None] = {}
        self._offset = 0.0
        self._frozen_at = 0.0
        directlyProvides(self, providedBy(reactor))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.reactor, name)

    # --- reactor

    def seconds(self) -> float:
        """Return the time in POSIX seconds."""
        return self._frozen_at if self.frozen else self.reactor.seconds() + self._offset

    def callLater(self, delay: float, call: Callable[..., object], /, *args: object, **kw: object) -> IDelayedCall:
        """Schedule a call as L{IReactorTime.callLater} does, in the time of this clock."""
        if delay <= REAL_TIME_THRESHOLD:
            return self.reactor.callLater(delay, call, *args, **kw)
        delayed_call = _DelayedCall(self, self.seconds() + delay, lambda: call(*args, **kw))
        self.calls[delayed_call] = None
        delayed_call.schedule()
        return delayed_call

    # --- for tests

    @property
    def is_adjusted(self) -> bool:
        """Return whether the time differs from real time."""
        return self.frozen or self._offset != 0

    def freeze(self, at: float | None = None) -> None:
        """Stop the clock, now or at C{at}."""
        self._frozen_at = self.seconds() if at is None else at
        self.frozen = True
        self._changed()

    def advance(self, seconds: float) -> None:
        """
        Advance the clock, and make the calls that are due.

        @raise ValueError: The duration is negative.
        """
        if seconds < 0:
            raise ValueError("time cannot go back")
        if self.frozen:
            self._frozen_at += seconds
        else:
            self._offset += seconds
        self._changed()

    def resume(self) -> None:
        """Let the clock run, starting at its current time."""
        if self.frozen:
            self._offset = self._frozen_at - self.reactor.seconds()
            self.frozen = False
            self._changed()

    def restore_real_time(self) -> None:
        """Return to real time."""
        if self.is_adjusted:
            self.frozen = False
            self._offset = 0.0
            self._changed()

    def _changed(self) -> None:
        if self.is_adjusted:
            times.use_clock(self.seconds)
        else:
            times.use_clock()
        for delayed_call in sorted(self.calls, key=_DelayedCall.getTime):
            delayed_call.schedule()


_clocks: dict[int, ServerClock] = {}


def clock_of(reactor: IServerReactor) -> ServerClock:
    """Return the clock of the servers on a reactor."""
    clock = _clocks.get(id(reactor))
    if clock is None:
        clock = _clocks[id(reactor)] = ServerClock(reactor)
    return clock
