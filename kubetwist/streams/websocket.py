"""WebSocket connections, over C{wsproto}, after the handshake."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, Protocol

from wsproto.connection import Connection, ConnectionState, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Event, Message, Ping, Pong, TextMessage
from wsproto.frame_protocol import CloseReason

from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.python.failure import Failure

from .framedprotocol import Inlet, ignore, ignore_pressure

#: Status code of a normal closure.
NORMAL: Final = 1000
#: Seconds to wait for the peer's close frame after the written data was sent.
GOODBYE: Final = 120.0


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

        @param clean: Whether the other side has sent a close frame with a normal status.
        """


class WebSocketConnection(Inlet[Event]):
    """One connection."""

    def __init__(
        self,
        reactor: IReactorTime,
        listener: WebSocketListener,
        *,
        client: bool = False,
        on_pressure: Callable[[bool], object] = ignore_pressure,
        on_gone: Callable[[], object] = ignore,
    ) -> None:
        """
        @param listener: Receives messages.
        @param client: Whether this is the client's side.
        @param on_pressure: See L{Inlet}.
        @param on_gone: See L{Inlet}.
        """
        super().__init__(reactor, on_pressure, on_gone)
        self._listener = listener
        self._frames = Connection(ConnectionType.CLIENT if client else ConnectionType.SERVER)
        self._events: Iterator[Event] | None = None
        self._told = False
        self._broken = False
        self._closing = False
        self._goodbye: IDelayedCall | None = None
        self._owed: bytes | None = None

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
        """Ask the other side for a sign of life."""
        if not self.full:
            self._write(Ping())

    def _write(self, event: Event) -> None:
        if self.usable and self._frames.state is ConnectionState.OPEN:
            self.transport.write(bytes(self._frames.send(event)))

    def resumeProducing(self) -> None:
        """As L{IPushProducer}."""
        super().resumeProducing()
        if self._closing and self.usable:
            self._wait_for_goodbye()
        if self._owed is not None:
            self._write(Pong(payload=self._owed))
            self._owed = None

    def close(self, code: int = NORMAL, reason: str = "", *, wait: bool = True) -> None:
        """
        Send a close frame, and close the connection after the peer's one, without calling the listener.

        Data that arrives until then is discarded, so that the peer can read the last data.

        @param code: Status code.
        @param reason: Text of the close frame.
        @param wait: Whether to wait for the peer's close frame.
        """
        self._told = True
        if not self._closing:
            self._write(CloseConnection(code=code, reason=reason or None))
            self._closing = True
        if not (wait and self.usable):
            self._leave()
            return
        if not self.full:
            self._wait_for_goodbye()
        self._holds.clear()
        self._work()

    def _wait_for_goodbye(self) -> None:
        if self._goodbye is None:
            self._goodbye = self._reactor.callLater(GOODBYE, self._leave)

    # What arrives.

    def _feed(self, data: bytes) -> None:
        if self._broken or self._frames.state not in (ConnectionState.OPEN, ConnectionState.LOCAL_CLOSING):
            return
        self._frames.receive_data(data)

    def _next(self) -> Event | None:
        if self._broken:
            return None
        if self._events is None:
            self._events = self._frames.events()
        event: Event | None = next(self._events, None)
        if event is None:
            self._events = None
        return event

    def _handle(self, event: Event) -> None:
        if isinstance(event, Message):
            if not self._told:
                data = event.data
                if isinstance(data, str):
                    data = data.encode()
                self._listener.message_received(bytes(data), event.message_finished)
        elif isinstance(event, Ping):
            if self.full:
                # The newest is answered when there is room.
                self._owed = bytes(event.payload)
            else:
                self._write(event.response())
        elif isinstance(event, CloseConnection):
            self._goodbye_received(event)

    def _goodbye_received(self, event: CloseConnection) -> None:
        if self._frames.state is ConnectionState.OPEN:
            # No goodbye: what arrived is no WebSocket.
            self._broken = True
            self._write(CloseConnection(code=event.code, reason="the frames are not those of a WebSocket"))
            self._tell(False)
        elif self._frames.state is ConnectionState.REMOTE_CLOSING:
            if self.usable:
                self.transport.write(bytes(self._frames.send(event.response())))
            self._tell(event.code in (CloseReason.NORMAL_CLOSURE, CloseReason.NO_STATUS_RCVD))
        self._leave()

    def _tell(self, clean: bool) -> None:
        if not self._told:
            self._told = True
            self._listener.closed(clean)

    def _leave(self) -> None:
        self._cancel_goodbye()
        super()._leave()

    def _cancel_goodbye(self) -> None:
        if self._goodbye is not None and self._goodbye.active():
            self._goodbye.cancel()

    def _lost(self, reason: Failure) -> None:
        self._cancel_goodbye()
        self._tell(False)
