"""
A log over a WebSocket, for browsers.

@see: kubernetes/streaming, C{pkg/httpstream/wsstream}: C{Reader}.
"""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any, Final

from twisted.internet.defer import CancelledError
from twisted.internet.interfaces import IConsumer, IReactorTime
from zope.interface import implementer

from ...http.request import KubeRequest
from ...streams.handshakes import HandshakeError, check_handshake
from ...streams.websocket import NORMAL_CLOSURE, WebSocketConnection

if TYPE_CHECKING:
    from ...client.streaming import StreamingResponse

_BASE64: Final = "base64.binary.k8s.io"
_PROTOCOLS: Final = ("", "binary.k8s.io", _BASE64)
_GOING_AWAY: Final = 1001
_BROKEN: Final = 1011


async def send_by_websocket(request: KubeRequest, answer: StreamingResponse) -> None:
    """
    Relay a log until its end.

    @param answer: The successful response of the kubelet.
    """
    try:
        handshake = check_handshake(request.method, request.fields)
    except HandshakeError as error:
        answer.abort()
        for name, value in error.fields:
            request.setHeader(name, value)
        request.respond_text(error.code, str(error))
        return
    protocol = next((one for one in handshake.protocols or ("",) if one in _PROTOCOLS), None)
    if protocol is None:
        answer.abort()
        request.respond(403, b"", b"")
        return
    reader = _Reader(request.site.reactor, answer, protocol == _BASE64)
    if not request.switch_protocols(handshake.fields(protocol), reader.socket, reader.stop):
        answer.abort()
        return
    try:
        await answer.deliver(reader)
    except CancelledError:
        raise
    except Exception:
        # The kubelet or the client was lost, or the server stops.
        reader.socket.close(_BROKEN)
    else:
        reader.socket.close(NORMAL_CLOSURE)


@implementer(IConsumer)
class _Reader:
    """Writes data to a WebSocket with backpressure; messages of the client are ignored."""

    def __init__(self, reactor: IReactorTime, answer: StreamingResponse, base64: bool) -> None:
        self._answer = answer
        self._base64 = base64
        self._producer: Any = None
        self.socket = WebSocketConnection(
            reactor, self, on_backpressure=self._pressure, on_connection_lost=answer.abort
        )

    def registerProducer(self, producer: Any, streaming: bool) -> None:
        self._producer = producer
        if self.socket.write_paused:
            producer.pauseProducing()

    def unregisterProducer(self) -> None:
        self._producer = None

    def write(self, data: bytes) -> None:
        if self._base64:
            self.socket.send_text(b64encode(data).decode())
        else:
            self.socket.send(data)

    def _pressure(self, full: bool) -> None:
        if self._producer is not None:
            if full:
                self._producer.pauseProducing()
            else:
                self._producer.resumeProducing()

    def message_received(self, data: bytes, finished: bool) -> None:
        """See L{kubetwist.streams.websocket.WebSocketListener}."""

    def closed(self, clean: bool) -> None:
        """See L{kubetwist.streams.websocket.WebSocketListener}."""
        self._answer.abort()

    def stop(self) -> None:
        """Stop with the server."""
        self.socket.close(_GOING_AWAY, wait=False)
        self._answer.abort()
