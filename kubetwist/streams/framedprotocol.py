"""Base class of framed protocols: pauses reading for several reasons, and reports backpressure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from twisted.internet.interfaces import IDelayedCall, IPushProducer, IReactorTime
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure
from zope.interface import implementer

#: Maximum number of frames that are handled in one iteration of the reactor.
MAX_FRAMES_PER_TURN: Final = 100
#: Maximum bytes that wait while handling is paused but the connection is read.
MAX_BUFFERED_BYTES: Final = 64 * 1024

#: The class of frames of the protocol.
F = TypeVar("F")


@implementer(IPushProducer)
def ignore_backpressure(write_paused: bool) -> None:
    """Do nothing."""


def ignore_connection_lost() -> None:
    """Do nothing."""


class FramedProtocol(Protocol, Generic[F]):
    """
    A connection with a framed protocol.

    Frames are handled in order. The loss of the connection is handled after all frames that were received before it.

    @ivar on_backpressure: Called with L{True} when the transport pauses writing, with L{False} when it resumes.
    @ivar on_connection_lost: Called when the connection is lost and all frames were handled.
    """

    transport: Any

    def __init__(
        self,
        reactor: IReactorTime,
        on_backpressure: Callable[[bool], object] = ignore_backpressure,
        on_connection_lost: Callable[[], object] = ignore_connection_lost,
    ) -> None:
        self._reactor = reactor
        self._pause_reasons: set[object] = set()
        self._loss_reported_reasons: set[object] = set()
        self._buffered_bytes = 0
        self._handling = False
        self._next_turn: IDelayedCall | None = None
        self._reading_paused = False
        self._write_paused = False
        self._disconnecting = False
        self._loss_reason: Failure | None = None
        self._ended = False
        self.on_backpressure = on_backpressure
        self.on_connection_lost = on_connection_lost

    # Implemented by protocols.

    def _feed(self, data: bytes) -> None:
        """Add received bytes to the buffer."""
        raise NotImplementedError

    def _next_frame(self) -> F | None:
        """Return the next complete frame; L{None} without one."""
        raise NotImplementedError

    def _handle(self, frame: F) -> None:
        """Handle a frame."""
        raise NotImplementedError

    def _handle_connection_lost(self, reason: Failure) -> None:
        """Handle the loss of the connection, after all frames."""
        raise NotImplementedError

    # Reading.

    def connectionMade(self) -> None:
        """As L{IProtocol}."""
        self.transport.registerProducer(self, True)
        if self._pause_reasons:
            self._update_reading()

    def dataReceived(self, data: bytes) -> None:
        """As L{IProtocol}."""
        if not self._ended:
            self._buffered_bytes += len(data)
            self._feed(data)
            self._handle_frames()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """As L{IProtocol}."""
        self._loss_reason = reason
        if self._loss_reported_reasons & self._pause_reasons:
            self._end(reason)
        else:
            self._handle_frames()

    def pause_reading(self, reason: object, *, watch: bool = False) -> None:
        """
        Pause the handling of frames until L{resume_reading} was called for each reason.

        @param reason: The reason.
        @param watch: Whether to detect the loss of the connection while paused. Then up to L{MAX_BUFFERED_BYTES} bytes
            are read, and the loss is handled before the waiting frames.
        """
        self._pause_reasons.add(reason)
        if watch:
            self._loss_reported_reasons.add(reason)
        self._update_reading()

    def resume_reading(self, reason: object) -> None:
        """Remove a reason for pausing; resume if no other remains."""
        if reason in self._pause_reasons:
            self._pause_reasons.discard(reason)
            self._handle_frames()

    def _handle_frames(self) -> None:
        if self._handling or self._next_turn is not None:
            return
        self._handling = True
        try:
            for _ in range(MAX_FRAMES_PER_TURN):
                if self._pause_reasons or self._ended:
                    break
                frame = self._next_frame()
                if frame is None:
                    self._all_handled()
                    break
                self._handle(frame)
            else:
                self._next_turn = self._reactor.callLater(0, self._continue_handling)
        finally:
            self._handling = False
        self._update_reading()

    def _continue_handling(self) -> None:
        self._next_turn = None
        self._handle_frames()

    def _all_handled(self) -> None:
        self._buffered_bytes = 0
        if self._loss_reason is not None:
            self._end(self._loss_reason)

    def _end(self, reason: Failure) -> None:
        if not self._ended:
            self._ended = True
            self._handle_connection_lost(reason)
            self.on_connection_lost()

    def _update_reading(self) -> None:
        """Pause or resume reading of the transport."""
        paused = bool(self._pause_reasons - self._loss_reported_reasons) or self._next_turn is not None
        if self._pause_reasons and self._buffered_bytes > MAX_BUFFERED_BYTES:
            paused = True
        if paused == self._reading_paused or self._loss_reason is not None or self.transport is None:
            return
        self._reading_paused = paused
        if paused:
            self.transport.pauseProducing()
        else:
            self.transport.resumeProducing()

    # Writing.

    @property
    def writable(self) -> bool:
        """Return whether the connection can be written to."""
        return self._loss_reason is None and not self._disconnecting and self.transport is not None

    @property
    def write_paused(self) -> bool:
        """Return whether the transport has paused writing."""
        return self._write_paused

    def pauseProducing(self) -> None:
        """As L{IPushProducer}: report backpressure."""
        if not self._write_paused:
            self._write_paused = True
            self.on_backpressure(True)

    def resumeProducing(self) -> None:
        """As L{IPushProducer}: report the end of backpressure."""
        if self._write_paused:
            self._write_paused = False
            self.on_backpressure(False)

    def stopProducing(self) -> None:
        """As L{IPushProducer}; L{connectionLost} handles the end of the connection."""

    # Closing.

    def _close_after_flush(self) -> None:
        """Close the connection after the written data; the transport limits the time."""
        # No reason for pausing remains.
        self._pause_reasons.clear()
        if self.writable:
            self._disconnecting = True
            self.transport.unregisterProducer()
            self.resumeProducing()
            self._update_reading()
            self.transport.loseConnection()
        elif self._loss_reason is not None:
            self._handle_frames()

    def abort(self) -> None:
        """Close the connection immediately; written data may be lost."""
        self._pause_reasons.clear()
        if self._loss_reason is None and self.transport is not None:
            self.transport.abortConnection()
