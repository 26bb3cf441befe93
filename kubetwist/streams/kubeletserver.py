"""The kubelet's side of commands and forwarded ports, over SPDY and WebSocket: for simulated kubelets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..http.request import KubeRequest
from . import channels
from .channels import BadMessage, ChannelClosed, ChannelReader, ready_channel, select_protocol
from .commands import SUCCESS, Command, TerminalSizeDecoder, encode_status, exit_status
from .handshakes import HandshakeError, check_handshake, is_websocket
from .spdy import SPDYConnection, SPDYStream, StreamEnded
from .tunnel import PREFIX
from .upgrades import PROTOCOL_VERSION, SPDY
from .websocket import WebSocketConnection

WEBSOCKET_PROTOCOLS = (
    channels.V5,
    channels.V4,
    channels.BASE64_V4,
    channels.V1,
    channels.BASE64_V1,
    "",
)
SPDY_PROTOCOLS = (channels.V4, channels.V3, channels.V2, channels.V1)


Start = Callable[["Session"], None]


class Session:
    """
    A running command, independent of its transport.

    @ivar command: The streams of the command.
    @ivar version: The stream protocol.
    @ivar on_stdin: Called with input; with L{None} at its end.
    @ivar on_resize: Called with sizes of the terminal.
    @ivar on_connection_lost: Called when the connection is lost.
    @ivar on_backpressure: Called with whether writing is paused.
    """

    def __init__(self, command: Command, version: str, send: Callable[[str, bytes], None], end: Callable[[], None]):
        self.command = command
        self.version = version
        self._send = send
        self._end = end
        self._sizes = TerminalSizeDecoder()
        self._ended = False
        self._early: list[tuple[str, bytes | None]] | None = []
        self.disconnected = False
        self.on_stdin: Callable[[bytes | None], None] = lambda data: None
        self.on_resize: Callable[[int, int], None] = lambda width, height: None
        self.on_connection_lost: Callable[[], None] = lambda: None
        self.on_backpressure: Callable[[bool], None] = lambda write_paused: None

    def write(self, data: bytes, kind: str = "stdout") -> None:
        """Write to C{stdout} or C{stderr}."""
        if getattr(self.command, kind) and not self._ended:
            self._send(kind, data)

    def exit(self, code: int = 0) -> None:
        """End the command."""
        if code:
            self.fail(exit_status(code), f"command terminated with exit code {code}".encode())
        else:
            self.fail(SUCCESS, b"")

    def fail(self, status: bytes, text: bytes) -> None:
        """End the command with a Status, or with a text for stream protocols without Status."""
        if self._ended:
            return
        self._ended = True
        versioned = self.version in (channels.V5, channels.V4, channels.BASE64_V4)
        status_or_text = status if versioned else text
        if status_or_text:
            self._send("error", status_or_text)
        self._end()

    def end_without_status(self) -> None:
        """End the command without a status."""
        self._ended = True
        self._end()

    @property
    def ended(self) -> bool:
        """Return whether the command has ended, or its client has disconnected."""
        return self._ended or self.disconnected

    # Received data.

    def begin(self, start: Start) -> None:
        """Run the command, and pass it the data that was received before."""
        start(self)
        early, self._early = self._early or [], None
        for kind, data in early:
            self.received(kind, data)

    def received(self, kind: str, data: bytes | None) -> None:
        """Handle data for the command; L{None} at its end."""
        if self._early is not None:
            self._early.append((kind, data))
        elif kind == "stdin":
            self.on_stdin(data)
        elif kind == "resize" and data is not None:
            for width, height in self._sizes.feed(data):
                self.on_resize(width, height)

    def lost(self) -> None:
        """Handle the loss of the connection."""
        if not self.disconnected:
            self.disconnected = True
            self.on_connection_lost()


def serve_command(request: KubeRequest, start: Start, *, reactor: Any, websocket: bool = True) -> Any:
    """
    Answer a kubelet's C{/exec/...} or C{/attach/...} request.

    @param start: Runs the command.
    @param websocket: Whether this kubelet supports WebSockets.
    @return: The protocol of the connection; L{None} after an error response.
    """
    query = {name: values[0] for name, values in request.query.items()}
    command = Command(*(query.get(name) in ("1", "true") for name in ("input", "output", "error", "tty")))
    if is_websocket(request.fields) and websocket:
        return _serve_websocket(request, command, start, reactor)
    return _serve_spdy(request, command, start, reactor)


def negotiate(request: KubeRequest, offered: Sequence[str]) -> str | None:
    """Return the selected stream protocol; L{None} after an error response."""
    upgrade = (request.header(b"upgrade") or b"").lower()
    if b"upgrade" not in (request.header(b"connection") or b"").lower() or upgrade != SPDY.lower():
        request.respond_text(400, "unable to upgrade: missing upgrade headers in request")
        return None
    values = request.fields.get(PROTOCOL_VERSION.lower(), [])
    asked = [one.strip() for value in values for one in value.decode().split(",")]
    version = select_protocol(asked, offered) if asked else None
    if version is None:
        request.respond_text(403, f"unable to upgrade: unable to negotiate protocol: client supports {asked}")
    return version


def spdy_head(version: str) -> list[tuple[bytes, bytes]]:
    """Return the header fields of the response with status 101."""
    return [(b"Connection", b"Upgrade"), (b"Upgrade", SPDY), (PROTOCOL_VERSION, version.encode())]


def _serve_spdy(request: KubeRequest, command: Command, start: Start, reactor: Any) -> Any:
    version = negotiate(request, SPDY_PROTOCOLS)
    if version is None:
        return None
    connection = spdy_session(command, version, start, reactor)
    request.switch_protocols(spdy_head(version), connection)
    return connection


def spdy_session(command: Command, version: str, start: Start, reactor: Any) -> SPDYConnection:
    """
    Return the kubelet's side of a connection for a command, which begins when all its streams are open.

    @param command: The streams of the command.
    @param version: The stream protocol.
    @param start: Runs the command.
    @param reactor: The reactor, for timeouts.
    """
    streams: dict[str, SPDYStream] = {}
    missing = set(command.stream_types(version))

    def accept(stream: SPDYStream) -> bool:
        kind = stream.header("streamtype")
        if kind not in missing:
            return False
        missing.discard(kind)
        streams[kind] = stream
        stream.listener = _Stream(session, kind)
        if not missing:
            # After the stream is accepted.
            reactor.callLater(0, session.begin, start)
        return True

    connection = SPDYConnection(reactor, server=True, accept=accept)
    session = Session(command, version, lambda kind, data: streams[kind].write(data), connection.close)
    connection.on_connection_lost = session.lost
    connection.on_backpressure = lambda write_paused: session.on_backpressure(write_paused)
    return connection


class _Stream:
    def __init__(self, session: Session, kind: str) -> None:
        self._session = session
        self._kind = kind

    def data_received(self, data: bytes) -> None:
        self._session.received(self._kind, data)

    def remote_finished(self) -> None:
        self._session.received(self._kind, None)

    def lost(self, reason: StreamEnded) -> None:
        pass


_KINDS = {channels.STDIN: "stdin", channels.RESIZE: "resize"}
_NUMBERS = {"stdout": channels.STDOUT, "stderr": channels.STDERR, "error": channels.ERROR}


class _Channels:
    """Receives the messages of a WebSocket with channels."""

    def __init__(self, reader: ChannelReader) -> None:
        self._reader = reader
        self.session: Any = None
        self.connection: Any = None

    def message_received(self, data: bytes, finished: bool) -> None:
        try:
            message = self._reader.feed(data, finished)
        except BadMessage:
            self.session.lost()
            self.connection.close()
            return
        if isinstance(message, ChannelClosed):
            if message.channel == channels.STDIN:
                self.session.received("stdin", None)
        elif message is not None and message.channel in _KINDS:
            self.session.received(_KINDS[message.channel], message.data)

    def closed(self, clean: bool) -> None:
        self.session.lost()


def _serve_websocket(request: KubeRequest, command: Command, start: Start, reactor: Any) -> Any:
    try:
        handshake = check_handshake(request.method, request.fields)
    except HandshakeError as error:
        request.respond_text(error.code, str(error))
        return None
    version = select_protocol(handshake.protocols, WEBSOCKET_PROTOCOLS)
    if version is None:
        request.respond_text(403, "")
        return None
    protocol = channels.PROTOCOLS[version]
    listener = _Channels(ChannelReader(protocol))
    connection = listener.connection = WebSocketConnection(reactor, listener)
    listener.session = session = Session(
        command,
        version,
        lambda kind, data: connection.send(protocol.message(_NUMBERS[kind], data)),
        connection.close,
    )
    connection.on_connection_lost = session.lost
    connection.on_backpressure = lambda write_paused: session.on_backpressure(write_paused)
    request.switch_protocols(handshake.fields(version), connection)
    connection.send(protocol.message(ready_channel(command.stdout, command.stderr), b""))
    reactor.callLater(0, session.begin, start)
    return connection


class PortForward:
    """
    The kubelet's side of forwarded ports over SPDY: pairs of streams, one for data and one for errors.

    @param dial: Called with a port, C{write(bytes)} and C{end()}. Returns a function that receives data (L{None} at its
        end), or raises an error.
    """

    def __init__(self, reactor: Any, dial: Callable[[int, Callable[[bytes], None], Callable[[], None]], Any]) -> None:
        self._reactor = reactor
        self._dial = dial
        self._errors: dict[str, SPDYStream] = {}
        self.connection = SPDYConnection(reactor, server=True, accept=self._accept)

    def _accept(self, stream: SPDYStream) -> bool:
        number = stream.header("requestid")
        if stream.header("streamtype") == "error":
            self._errors[number] = stream
            stream.listener = _IgnoringListener()
            return True
        if stream.header("streamtype") != "data":
            return False
        errors = self._errors.pop(number, None)
        if errors is None:
            return False

        def end() -> None:
            stream.finish()
            errors.finish()

        stream.listener = listener = _Port()
        try:
            listener.receiver = self._dial(int(stream.header("port")), stream.write, end)
        except Exception as error:
            text = str(error).encode()

            def fail() -> None:
                errors.write(text)
                end()

            # After the stream is accepted.
            self._reactor.callLater(0, fail)
        return True


class _IgnoringListener:
    def data_received(self, data: bytes) -> None:
        pass

    def remote_finished(self) -> None:
        pass

    def lost(self, reason: StreamEnded) -> None:
        pass


class _Port:
    receiver: Any = None

    def data_received(self, data: bytes) -> None:
        if self.receiver is not None:
            self.receiver(data)

    def remote_finished(self) -> None:
        if self.receiver is not None:
            self.receiver(None)

    def lost(self, reason: StreamEnded) -> None:
        if self.receiver is not None:
            self.receiver(None)


def serve_port_forward(request: KubeRequest, dial: Any, *, reactor: Any) -> PortForward | None:
    """Answer a kubelet's C{/portForward/...} request, over SPDY or SPDY inside a WebSocket."""
    if is_websocket(request.fields):
        return _serve_tunnel(request, dial, reactor)
    version = negotiate(request, ("portforward.k8s.io",))
    if version is None:
        return None
    forward = PortForward(reactor, dial)
    request.switch_protocols(spdy_head(version), forward.connection)
    return forward


def _serve_tunnel(request: KubeRequest, dial: Any, reactor: Any) -> PortForward | None:
    protocol = f"{PREFIX}portforward.k8s.io"
    try:
        handshake = check_handshake(request.method, request.fields)
    except HandshakeError as error:
        request.respond_text(error.code, str(error))
        return None
    if protocol not in handshake.protocols:
        request.respond_text(400, "unable to upgrade: no tunneling spdy protocols provided")
        return None
    forward = PortForward(reactor, dial)
    socket = WebSocketConnection(reactor, _TunnelListener(forward.connection))
    request.switch_protocols(handshake.fields(protocol), socket)
    transport: Any = TunnelTransport(socket)
    forward.connection.makeConnection(transport)  # type: ignore[no-untyped-call] # Twisted has no annotations here
    return forward


class _TunnelListener:
    """Passes the messages of a WebSocket to a SPDY connection."""

    def __init__(self, connection: SPDYConnection) -> None:
        self._connection = connection

    def message_received(self, data: bytes, finished: bool) -> None:
        self._connection.dataReceived(data)

    def closed(self, clean: bool) -> None:
        self._connection.connectionLost()


class TunnelTransport:
    """The transport of SPDY inside a WebSocket."""

    def __init__(self, socket: WebSocketConnection) -> None:
        self._socket = socket

    def write(self, data: bytes) -> None:
        """Send bytes."""
        self._socket.send(data)

    def writeSequence(self, pieces: Any) -> None:
        """Send bytes."""
        self._socket.send(b"".join(pieces))

    def registerProducer(self, producer: Any, streaming: bool) -> None:
        """Report backpressure of the WebSocket to the producer."""
        self._socket.on_backpressure = lambda write_paused: (
            producer.pauseProducing() if write_paused else producer.resumeProducing()
        )

    def unregisterProducer(self) -> None:
        """Report no more backpressure."""
        self._socket.on_backpressure = lambda write_paused: None

    def pauseProducing(self) -> None:
        """Pause reading."""
        self._socket.pause_reading(self)

    def resumeProducing(self) -> None:
        """Resume reading."""
        self._socket.resume_reading(self)

    def loseConnection(self) -> None:
        """Close the WebSocket."""
        self._socket.close()


__all__ = ["Session", "encode_status", "serve_command", "serve_port_forward"]
