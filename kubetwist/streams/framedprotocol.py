"""Base class of framed protocols: pauses reading for several reasons, and reports backpressure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from twisted.internet.interfaces import IDelayedCall, IPushProducer, IReactorTime
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure
from zope.interface import implementer

#: Maximum number of frames that are handled in one iteration of the reactor.
PORTION: Final = 100
#: Maximum bytes that wait while handling is paused but the connection is read.
MAX_WAITING: Final = 64 * 1024

#: The class of frames of the protocol.
F = TypeVar("F")


@implementer(IPushProducer)
def ignore_pressure(full: bool) -> None:
    """Do nothing."""


def ignore() -> None:
    """Do nothing."""


class Inlet(Protocol, Generic[F]):
    """
    A connection with a framed protocol.

    Frames are handled in their order. The loss of the connection is handled after all frames that arrived before it.

    @ivar on_pressure: Called with L{True} when the transport pauses writing, with L{False} when it resumes.
    @ivar on_gone: Called when the connection is lost and all frames were handled.
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

    # Implemented by protocols.

    def _feed(self, data: bytes) -> None:
        """Add received bytes to the buffer."""
        raise NotImplementedError

    def _next(self) -> F | None:
        """Return the next complete frame; L{None} without one."""
        raise NotImplementedError

    def _handle(self, frame: F) -> None:
        """Handle a frame."""
        raise NotImplementedError

    def _lost(self, reason: Failure) -> None:
        """Handle the loss of the connection, after all frames."""
        raise NotImplementedError

    # Reading.

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
        Pause the handling of frames until L{release} was called for each reason.

        @param why: The reason.
        @param watch: Whether the loss of the connection must be noticed meanwhile. Then up to L{MAX_WAITING} bytes are
            read, and the loss is handled before the waiting frames.
        """
        self._holds.add(why)
        if watch:
            self._watched.add(why)
        self._adjust()

    def release(self, why: object) -> None:
        """Remove a reason for pausing; resume if no other remains."""
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
        """Pause or resume reading of the transport."""
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
        """Return whether the connection can be written to."""
        return self._gone is None and not self._leaving and self.transport is not None

    @property
    def full(self) -> bool:
        """Return whether the transport has paused writing."""
        return self._full

    def pauseProducing(self) -> None:
        """As L{IPushProducer}: report backpressure."""
        if not self._full:
            self._full = True
            self.on_pressure(True)

    def resumeProducing(self) -> None:
        """As L{IPushProducer}: report the end of backpressure."""
        if self._full:
            self._full = False
            self.on_pressure(False)

    def stopProducing(self) -> None:
        """As L{IPushProducer}; L{connectionLost} handles the end of the connection."""

    # Its end.

    def _leave(self) -> None:
        """Close the connection after the written data; the transport limits the time."""
        # No reason for pausing remains.
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
