"""How a connection is read: in portions, and only as long as somebody takes what it brings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from twisted.internet.interfaces import IDelayedCall, IPushProducer, IReactorTime
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure
from zope.interface import implementer

#: How many frames are looked at before others have their turn.
PORTION: Final = 100
#: How much may wait of a connection that is held, but read.
MAX_WAITING: Final = 64 * 1024

#: What a protocol calls a frame.
F = TypeVar("F")


@implementer(IPushProducer)
def ignore_pressure(full: bool) -> None:
    """Do nothing."""


def ignore() -> None:
    """Do nothing."""


class Inlet(Protocol, Generic[F]):
    """
    A connection whose protocol has frames.

    What has arrived before it is held, or before the connection is lost, is neither forgotten nor overtaken: the end is
    told when all that came before it was.

    @ivar on_pressure: Told when what was written is not taken (L{True}), and when it is again (L{False}).
    @ivar on_gone: Told when the connection is gone, and all that came was handled.
    """

    transport: Any

    def __init__(
        self,
        reactor: IReactorTime,
        on_pressure: Callable[[bool], object] = ignore_pressure,
        on_gone: Callable[[], object] = ignore,
    ) -> None:
        self._reactor = reactor
        self._holds: set[object] = set()
        self._watched: set[object] = set()
        self._waiting = 0
        self._working = False
        self._turn: IDelayedCall | None = None
        self._paused = False
        self._full = False
        self._leaving = False
        self._gone: Failure | None = None
        self._over = False
        self.on_pressure = on_pressure
        self.on_gone = on_gone

    # What a protocol says of itself.

    def _feed(self, data: bytes) -> None:
        """Take bytes."""
        raise NotImplementedError

    def _next(self) -> F | None:
        """A frame, or L{None} if there is none."""
        raise NotImplementedError

    def _handle(self, frame: F) -> None:
        """Do what a frame says."""
        raise NotImplementedError

    def _lost(self, reason: Failure) -> None:
        """The connection is gone, and every frame was handled."""
        raise NotImplementedError

    # MetricSnapshot.

    def connectionMade(self) -> None:
        """As L{IProtocol}."""
        self.transport.registerProducer(self, True)
        if self._holds:
            self._adjust()

    def dataReceived(self, data: bytes) -> None:
        """As L{IProtocol}."""
        if not self._over:
            self._waiting += len(data)
            self._feed(data)
            self._work()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """As L{IProtocol}."""
        self._gone = reason
        if self._watched & self._holds:
            self._end(reason)
        else:
            self._work()

    def hold(self, why: object, *, watch: bool = False) -> None:
        """
        Handle nothing that comes until L{release} is called for the same reason; the last of several counts.

        @param watch: Whether it matters if the connection is lost in the meantime. Then it is read until too much
            waits, and its end is told before anything that does.
        """
        self._holds.add(why)
        if watch:
            self._watched.add(why)
        self._adjust()

    def release(self, why: object) -> None:
        """Read on, unless there is another reason not to."""
        if why in self._holds:
            self._holds.discard(why)
            self._work()

    def _work(self) -> None:
        if self._working or self._turn is not None:
            return
        self._working = True
        try:
            for _ in range(PORTION):
                if self._holds or self._over:
                    break
                frame = self._next()
                if frame is None:
                    self._drained()
                    break
                self._handle(frame)
            else:
                self._turn = self._reactor.callLater(0, self._on_turn)
        finally:
            self._working = False
        self._adjust()

    def _on_turn(self) -> None:
        self._turn = None
        self._work()

    def _drained(self) -> None:
        self._waiting = 0
        if self._gone is not None:
            self._end(self._gone)

    def _end(self, reason: Failure) -> None:
        if not self._over:
            self._over = True
            self._lost(reason)
            self.on_gone()

    def _adjust(self) -> None:
        """Have the transport read, or not."""
        paused = bool(self._holds - self._watched) or self._turn is not None
        if self._holds and self._waiting > MAX_WAITING:
            paused = True
        if paused == self._paused or self._gone is not None or self.transport is None:
            return
        self._paused = paused
        if paused:
            self.transport.pauseProducing()
        else:
            self.transport.resumeProducing()

    # Writing.

    @property
    def usable(self) -> bool:
        """Whether there is a connection that can be written to."""
        return self._gone is None and not self._leaving and self.transport is not None

    @property
    def full(self) -> bool:
        """Whether the other side does not take what was written."""
        return self._full

    def pauseProducing(self) -> None:
        """As L{IPushProducer}: what was written is not taken."""
        if not self._full:
            self._full = True
            self.on_pressure(True)

    def resumeProducing(self) -> None:
        """As L{IPushProducer}: it is taken again."""
        if self._full:
            self._full = False
            self.on_pressure(False)

    def stopProducing(self) -> None:
        """As L{IPushProducer}: the connection is gone, which L{connectionLost} is told as well."""

    # Its end.

    def _leave(self) -> None:
        """Go when what was written is taken. How long that may take is the transport's business."""
        # Nobody waits for this connection any more, nor it for anybody.
        self._holds.clear()
        if self.usable:
            self._leaving = True
            self.transport.unregisterProducer()
            self.resumeProducing()
            self._adjust()
            self.transport.loseConnection()
        elif self._gone is not None:
            self._work()

    def abort(self) -> None:
        """End the connection now; what was written may be lost."""
        self._holds.clear()
        if self._gone is None and self.transport is not None:
            self.transport.abortConnection()
