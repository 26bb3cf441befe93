"""WebSocket connections, over C{wsproto}, after the handshake."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, Protocol

from wsproto.connection import Connection, ConnectionState, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Event, Message, Ping, Pong, TextMessage
from wsproto.frame_protocol import CloseReason

from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.python.failure import Failure

from .framedprotocol import FramedProtocol, ignore_backpressure, ignore_connection_lost

#: Status code of a normal closure.
NORMAL_CLOSURE: Final = 1000
#: Seconds to wait for the peer's close frame after the written data was sent.
CLOSE_TIMEOUT: Final = 120.0


class WebSocketListener(Protocol):
    """Receives the events of a connection."""

    def message_received(self, data: bytes, finished: bool) -> None:
        """
        Handle a message, or a piece of one.

        @param data: The piece.
        @param finished: Whether it is the last piece of the message.
        """

    def closed(self, clean: bool) -> None:
        """
        Handle the end of the connection; called at most once, as the last call.

        @param clean: Whether the peer has sent a close frame with a normal status code.
        """


class WebSocketConnection(FramedProtocol[Event]):
    """One connection."""

    def __init__(
        self,
        reactor: IReactorTime,
        listener: WebSocketListener,
        *,
        client: bool = False,
        on_backpressure: Callable[[bool], object] = ignore_backpressure,
        on_connection_lost: Callable[[], object] = ignore_connection_lost,
    ) -> None:
        """
        @param reactor: The reactor, for timeouts.
        @param listener: Receives messages.
        @param client: Whether this is the client's side.
        @param on_backpressure: See L{FramedProtocol}.
        @param on_connection_lost: See L{FramedProtocol}.
        """
        super().__init__(reactor, on_backpressure, on_connection_lost)
        self._listener = listener
        self._frames = Connection(ConnectionType.CLIENT if client else ConnectionType.SERVER)
        self._events: Iterator[Event] | None = None
        self._close_reported = False
        self._failed = False
        self._closing = False
        self._close_timer: IDelayedCall | None = None
        self._pending_pong: bytes | None = None

    # Writing.

    def send(self, data: bytes, finished: bool = True) -> None:
        """
        Send a message, or a fragment of one.

        @param finished: Whether it is the last fragment.
        """
        self._write(BytesMessage(data=data, message_finished=finished))

    def send_text(self, text: str, finished: bool = True) -> None:
        """Send a text message, or a fragment of one; see L{send}."""
        self._write(TextMessage(data=text, message_finished=finished))

    def ping(self) -> None:
        """Send a ping, unless writing is paused."""
        if not self.write_paused:
            self._write(Ping())

    def _write(self, event: Event) -> None:
        if self.writable and self._frames.state is ConnectionState.OPEN:
            self.transport.write(bytes(self._frames.send(event)))

    def resumeProducing(self) -> None:
        """As L{IPushProducer}."""
        super().resumeProducing()
        if self._closing and self.writable:
            self._wait_for_close_frame()
        if self._pending_pong is not None:
            self._write(Pong(payload=self._pending_pong))
            self._pending_pong = None

    def close(self, code: int = NORMAL_CLOSURE, reason: str = "", *, wait: bool = True) -> None:
        """
        Send a close frame, and close the connection after the peer's one, without calling the listener.

        Data that arrives until then is discarded, so that the peer can read the last data.

        @param code: Status code.
        @param reason: Text of the close frame.
        @param wait: Whether to wait for the peer's close frame.
        """
        self._close_reported = True
        if not self._closing:
            self._write(CloseConnection(code=code, reason=reason or None))
            self._closing = True
        if not (wait and self.writable):
            self._close_after_flush()
            return
        if not self.write_paused:
            self._wait_for_close_frame()
        self._pause_reasons.clear()
        self._handle_frames()

    def _wait_for_close_frame(self) -> None:
        if self._close_timer is None:
            self._close_timer = self._reactor.callLater(CLOSE_TIMEOUT, self._close_after_flush)

    # Received frames.

    def _feed(self, data: bytes) -> None:
        if self._failed or self._frames.state not in (ConnectionState.OPEN, ConnectionState.LOCAL_CLOSING):
            return
        self._frames.receive_data(data)

    def _next_frame(self) -> Event | None:
        if self._failed:
            return None
        if self._events is None:
            self._events = self._frames.events()
        event: Event | None = next(self._events, None)
        if event is None:
            self._events = None
        return event

    def _handle(self, event: Event) -> None:
        if isinstance(event, Message):
            if not self._close_reported:
                data = event.data
                if isinstance(data, str):
                    data = data.encode()
                self._listener.message_received(bytes(data), event.message_finished)
        elif isinstance(event, Ping):
            if self.write_paused:
                # The newest ping is answered when writing resumes.
                self._pending_pong = bytes(event.payload)
            else:
                self._write(event.response())
        elif isinstance(event, CloseConnection):
            self._close_frame_received(event)

    def _close_frame_received(self, event: CloseConnection) -> None:
        if self._frames.state is ConnectionState.OPEN:
            # Not a close frame of the peer: the received data is invalid.
            self._failed = True
            self._write(CloseConnection(code=event.code, reason="the frames are not those of a WebSocket"))
            self._report_closed(False)
        elif self._frames.state is ConnectionState.REMOTE_CLOSING:
            if self.writable:
                self.transport.write(bytes(self._frames.send(event.response())))
            self._report_closed(event.code in (CloseReason.NORMAL_CLOSURE, CloseReason.NO_STATUS_RCVD))
        self._close_after_flush()

    def _report_closed(self, clean: bool) -> None:
        if not self._close_reported:
            self._close_reported = True
            self._listener.closed(clean)

    def _close_after_flush(self) -> None:
        self._cancel_close_timer()
        super()._close_after_flush()

    def _cancel_close_timer(self) -> None:
        if self._close_timer is not None and self._close_timer.active():
            self._close_timer.cancel()

    def _handle_connection_lost(self, reason: Failure) -> None:
        self._cancel_close_timer()
        self._report_closed(False)
