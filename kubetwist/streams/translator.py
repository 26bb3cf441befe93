"""
Translation of a command's streams between WebSocket (client) and SPDY (kubelet).

Data is forwarded in both directions without buffering; backpressure of one side pauses reading from the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from . import channels
from .channels import BadMessage, ChannelClosed, ChannelReader, ready_channel
from .commands import (
    MAX_STATUS_BYTES,
    STREAM_TYPE,
    SUCCESS,
    VERSIONS,
    Command,
    TerminalSizeDecoder,
    encode_size,
    final_status,
    internal_error_status,
    status_code,
)
from .spdy import SPDYConnection, SPDYStream, StreamConnectionLost, StreamEnded, StreamListener
from .upgrades import PROTOCOL_VERSION, UpgradeFailure, connect
from .websocket import WebSocketConnection

if TYPE_CHECKING:
    from ..client.streaming import StreamingClient

#: Seconds between pings to the kubelet.
PING_INTERVAL: Final = 5.0
#: Seconds without data after which the connections are closed.
IDLE_TIMEOUT: Final = 4 * 3600.0

_GOING_AWAY: Final = 1001
_OPENING_STREAMS: Final = "the streams are not open"
_BACKPRESSURE: Final = "the other side does not take more"


class StreamTranslator:
    """
    Translates the streams of one command between a WebSocket client and a SPDY kubelet.

    @ivar websocket: The client's connection.
    """

    _log = Logger()

    def __init__(self, reactor: IReactorTime, command: Command) -> None:
        self._reactor = reactor
        self._command = command
        self._messages = ChannelReader(channels.PROTOCOLS[channels.V5])
        self._sizes = TerminalSizeDecoder()
        self._streams: dict[str, SPDYStream] = {}
        self._running: Deferred[bytes] | None = None
        self._finished = False
        self._client_closed = False
        self._releasing = False
        self._spdy = SPDYConnection(reactor, on_backpressure=self._kubelet_backpressure)
        self._connected = False
        self._last_activity = reactor.seconds()
        self._idle_timer: IDelayedCall = reactor.callLater(IDLE_TIMEOUT, self._check_idle)
        self.websocket = WebSocketConnection(reactor, self, on_backpressure=self._client_backpressure)
        # Data of the client is handled when the kubelet's streams are open.
        self.websocket.pause_reading(_OPENING_STREAMS, watch=True)

    async def run(self, client: StreamingClient, target: bytes, fields: Sequence[tuple[bytes, bytes]]) -> int:
        """
        Run the command, after the client's connection is established.

        @param client: Client of the kubelet.
        @param target: Path and query of the command.
        @param fields: Further header fields for the kubelet.
        @return: The HTTP status code of the result, for metrics.
        """
        if self._client_closed:
            self._finish(None)
            return 200
        self._send(ready_channel(self._command.stdout, self._command.stderr), b"")
        running = self._running = Deferred.fromCoroutine(self._run(client, target, fields))
        try:
            status = await running
        except CancelledError:
            # The client has disconnected.
            self._finish(None)
            return 200
        except Exception:
            self._log.failure("a command could not be run")
            self._finish(internal_error_status("the command could not be run"))
            raise
        self._finish(status)
        return status_code(status)

    async def _run(self, client: StreamingClient, target: bytes, fields: Sequence[tuple[bytes, bytes]]) -> bytes:
        try:
            response = await connect(client, target, fields, VERSIONS)
        except UpgradeFailure as error:
            return error.status
        version = (response.field(PROTOCOL_VERSION.lower()) or channels.V1.encode()).decode("latin-1")
        completion = _CommandCompletion(version, self._command)
        spdy = self._spdy
        response.hijack(spdy)
        self._connected = True
        spdy.ping_every(PING_INTERVAL)
        for kind in self._command.stream_types(version):
            try:
                self._streams[kind] = await spdy.create_stream({STREAM_TYPE: kind}, self._listener(kind, completion))
            except StreamEnded as error:
                return internal_error_status(str(error))
        # This handles the data that the client has sent before, and possibly its disconnection.
        self._releasing = True
        self.websocket.resume_reading(_OPENING_STREAMS)
        self._releasing = False
        if self._client_closed:
            raise CancelledError
        return await completion.status

    def _listener(self, kind: str, completion: _CommandCompletion) -> StreamListener:
        if kind == "error":
            return _Errors(completion)
        if kind in ("stdout", "stderr"):
            channel = channels.STDOUT if kind == "stdout" else channels.STDERR
            return _Output(self, channel, completion)
        return _Input(self, kind)

    def stop(self) -> None:
        """Close the connections because the server stops."""
        self.websocket.close(_GOING_AWAY, wait=False)
        self.closed(False)
        if self._running is None:
            self._finish(None)

    # Events of the client.

    def message_received(self, data: bytes, finished: bool) -> None:
        """See L{kubetwist.streams.websocket.WebSocketListener}."""
        self._last_activity = self._reactor.seconds()
        try:
            message = self._messages.feed(data, finished)
        except BadMessage:
            # The reference also handles this like a disconnection of the client.
            self.websocket.close()
            self.closed(False)
            return
        if message is None:
            return
        if isinstance(message, ChannelClosed):
            if message.channel == channels.STDIN:
                self._finish_stream("stdin")
        elif message.channel == channels.STDIN:
            stdin = self._streams.get("stdin")
            if stdin is not None:
                stdin.write(message.data)
        elif message.channel == channels.RESIZE:
            resize = self._streams.get("resize")
            if resize is not None:
                for width, height in self._sizes.feed(message.data):
                    resize.write(encode_size(width, height))

    def closed(self, clean: bool) -> None:
        """See L{kubetwist.streams.websocket.WebSocketListener}: received data is still forwarded to the kubelet."""
        self._client_closed = True
        if self._running is not None and not (self._finished or self._releasing):
            self._running.cancel()

    def _finish_stream(self, kind: str) -> None:
        stream = self._streams.get(kind)
        if stream is not None:
            stream.finish()

    # Events of the kubelet.

    def output(self, channel: int, data: bytes) -> None:
        """Forward output of the command to the client."""
        self._last_activity = self._reactor.seconds()
        self._send(channel, data)

    def input_closed(self, kind: str) -> None:
        """Finish a stream that the kubelet has closed."""
        self._finish_stream(kind)

    def _send(self, channel: int, data: bytes) -> None:
        self.websocket.send(bytes((channel,)) + data)

    # Backpressure and end.

    def _client_backpressure(self, write_paused: bool) -> None:
        if write_paused and not self._finished:
            self._spdy.pause_reading(_BACKPRESSURE)
        else:
            self._spdy.resume_reading(_BACKPRESSURE)

    def _kubelet_backpressure(self, write_paused: bool) -> None:
        if write_paused and not self._finished:
            self.websocket.pause_reading(_BACKPRESSURE)
        else:
            self.websocket.resume_reading(_BACKPRESSURE)

    def _check_idle(self) -> None:
        remaining = self._last_activity + IDLE_TIMEOUT - self._reactor.seconds()
        if remaining > 0:
            self._idle_timer = self._reactor.callLater(remaining, self._check_idle)
            return
        self.websocket.close(wait=False)
        self.closed(False)

    def _finish(self, status: bytes | None) -> None:
        if self._idle_timer.active():
            self._idle_timer.cancel()
        if self._finished:
            return
        self._finished = True
        if status is not None:
            self._send(channels.ERROR, status)
        self.websocket.close()
        self._end_kubelet()

    def _end_kubelet(self) -> None:
        if self._connected:
            self._finish_stream("stdin")
            self._spdy.close()


class _CommandCompletion:
    """
    Waits for the end of a command: the end of its outputs and the status from its error stream.

    @ivar status: Fires with a Status for the client.
    """

    def __init__(self, version: str, command: Command) -> None:
        self._version = version
        self._open = {kind for kind in command.stream_types(version) if kind in ("stdout", "stderr")}
        self._outputs = bool(self._open)
        self._message: bytes | None = None
        self._incomplete = False
        self.status: Deferred[bytes] = Deferred()

    def output_ended(self, channel: int) -> None:
        """Handle the end of an output."""
        self._open.discard("stdout" if channel == channels.STDOUT else "stderr")
        self._check()

    def errors_ended(self, message: bytes, complete: bool) -> None:
        """
        Handle the end of the error stream.

        @param message: Content of the stream.
        @param complete: Whether the kubelet has ended it.
        """
        self._message = message
        self._incomplete = not (complete or message)
        self._check()

    def _check(self) -> None:
        if self.status.called:
            return
        if self._version not in VERSIONS or self._version == channels.V1:
            # These versions do not wait for the error stream, nor for output after an error.
            if self._message:
                self.status.callback(final_status(self._message, self._version))
            elif not self._open and (self._outputs or self._message is not None):
                self.status.callback(SUCCESS)
        elif not self._open and self._message is not None:
            if self._incomplete:
                # The reference reports success here, but the outcome of the command is unknown.
                self.status.callback(internal_error_status("error reading from error stream: unexpected EOF"))
            else:
                self.status.callback(final_status(self._message, self._version))


class _Output:
    """Receives an output stream of the command."""

    def __init__(self, translator: StreamTranslator, channel: int, completion: _CommandCompletion) -> None:
        self._translator = translator
        self._channel = channel
        self._completion = completion

    def data_received(self, data: bytes) -> None:
        self._translator.output(self._channel, data)

    def remote_finished(self) -> None:
        self._completion.output_ended(self._channel)

    def lost(self, reason: StreamEnded) -> None:
        self._completion.output_ended(self._channel)


class _Errors:
    """Receives the error stream and buffers its content."""

    def __init__(self, completion: _CommandCompletion) -> None:
        self._completion = completion
        self._message = bytearray()
        self._ended = False

    def data_received(self, data: bytes) -> None:
        if len(self._message) <= MAX_STATUS_BYTES:
            self._message += data[: MAX_STATUS_BYTES + 1 - len(self._message)]

    def remote_finished(self) -> None:
        self._end(True)

    def lost(self, reason: StreamEnded) -> None:
        self._end(not isinstance(reason, StreamConnectionLost))

    def _end(self, complete: bool) -> None:
        if not self._ended:
            self._ended = True
            self._completion.errors_ended(bytes(self._message), complete)


class _Input:
    """Receives the events of an input stream of the command; received data is ignored."""

    def __init__(self, translator: StreamTranslator, kind: str) -> None:
        self._translator = translator
        self._kind = kind

    def data_received(self, data: bytes) -> None:
        pass

    def remote_finished(self) -> None:
        self._translator.input_closed(self._kind)

    def lost(self, reason: StreamEnded) -> None:
        pass
