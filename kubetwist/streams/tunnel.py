"""A connection of SPDY inside of a WebSocket: how clients forward ports. The backend's is one of SPDY alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IPushProducer, IReactorTime
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure
from zope.interface import implementer

from ..http.request import KubeRequest
from .handshakes import Fields, Handshake, subprotocols
from .upgrades import PROTOCOL_VERSION, is_spdy, spdy_upgrade_fields
from .websocket import WebSocketConnection

if TYPE_CHECKING:
    from ..client.streaming import StreamingResponse

#: In front of what is spoken inside of the tunnel.
PREFIX: Final = "SPDY/3.1+"
_SUFFIX: Final = ".k8s.io"

_BACKPRESSURE: Final = "the other side does not take more"
_GOING_AWAY: Final = 1001
#: What makes a request one for a WebSocket, and says what is spoken.
_WEBSOCKET_FIELDS: Final = (b"connection", b"upgrade", PROTOCOL_VERSION.lower())


def tunneled_protocols(fields: Fields) -> list[str]:
    """What a client would speak inside of a tunnel, its favourite first."""
    return [
        one.removeprefix(PREFIX) for one in subprotocols(fields) if one.startswith(PREFIX) and one.endswith(_SUFFIX)
    ]


class Tunnel:
    """
    A tunnel that is asked for.

    @ivar method: How the backend is asked.
    """

    method = b"POST"

    def __init__(self, request: KubeRequest, handshake: Handshake, count: Callable[[int], object]) -> None:
        """
        @param request: The request of the client.
        @param handshake: The checked handshake.
        @param count: Called with the status code of the response.
        """
        self._request = request
        self._handshake = handshake
        self._count = count
        self._counted = False

    def answered(self) -> None:
        """Count the response, once."""
        if not self._counted:
            self._counted = True
            self._count(self._request.code)

    def fields(self, fields: Sequence[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        """Return the header fields for the backend: those of the client, with a request for SPDY."""
        forwarded = [
            (name, value)
            for name, value in fields
            if name.lower() not in _WEBSOCKET_FIELDS and not name.lower().startswith(b"sec-websocket-")
        ]
        return [*forwarded, *spdy_upgrade_fields(tunneled_protocols(self._request.fields))]

    def upgraded(self, request: KubeRequest, response: StreamingResponse) -> Deferred[None]:
        """
        The backend's connection is there: have the client's, and connect them.

        @param response: A C{101}, not taken over yet.
        @return: Fires when both are gone.
        """
        if not is_spdy(response):
            response.abort()
            # As Go's http.Error.
            request.respond_text(500, "unable to upgrade: missing upgrade headers in response\n")
            self.answered()
            return _already_fired()
        chosen = PREFIX + (response.field(PROTOCOL_VERSION.lower()) or b"").decode("latin-1").strip()
        protocol = chosen if chosen in self._handshake.protocols else ""
        connections = _TunnelConnections(request.site.reactor)
        if not request.switch_protocols(self._handshake.fields(protocol), connections.websocket, connections.stop):
            response.abort()
            return _already_fired()
        self.answered()
        response.hijack(connections.backend)
        return connections.closed_both


def _already_fired() -> Deferred[None]:
    done: Deferred[None] = Deferred()
    done.callback(None)
    return done


class _TunnelConnections:
    """
    Both ends of a tunnel.

    @ivar websocket: The client's.
    @ivar backend: The backend's.
    @ivar closed_both: Fires when both are gone.
    """

    def __init__(self, reactor: IReactorTime) -> None:
        self.backend = _Backend(self)
        self.websocket = WebSocketConnection(
            reactor, self, on_backpressure=self.backend.set_paused, on_connection_lost=self._client_lost
        )
        self.closed_both: Deferred[None] = Deferred()
        self._client_closed = False

    def message_received(self, data: bytes, finished: bool) -> None:
        """See L{kubetwist.streams.websocket.WebSocketListener}."""
        self.backend.send(data)

    def closed(self, clean: bool) -> None:
        """See L{kubetwist.streams.websocket.WebSocketListener}."""
        self.backend.close_after_flush()

    def backend_backpressure(self, write_paused: bool) -> None:
        """The backend does not take what was sent to it, or does again."""
        if write_paused:
            self.websocket.pause_reading(_BACKPRESSURE)
        else:
            self.websocket.resume_reading(_BACKPRESSURE)

    def backend_lost(self) -> None:
        """The backend has ended its connection."""
        self.websocket.close()
        self._check()

    def _client_lost(self) -> None:
        self._client_closed = True
        self.backend.close_after_flush()
        self._check()

    def _check(self) -> None:
        if self._client_closed and self.backend.lost and not self.closed_both.called:
            self.closed_both.callback(None)

    def stop(self) -> None:
        """The server stops."""
        self.websocket.close(_GOING_AWAY, wait=False)
        self.backend.close_after_flush()


@implementer(IPushProducer)
class _Backend(Protocol):
    """The connection to the backend, forwarded byte by byte."""

    transport: Any

    def __init__(self, connections: _TunnelConnections) -> None:
        self._connections = connections
        self._closing = False
        self._reading_paused = False
        self.lost = False

    def connectionMade(self) -> None:
        self.transport.registerProducer(self, True)
        if self._reading_paused:
            self.transport.pauseProducing()
        if self._closing:
            self._closing = False
            self.close_after_flush()

    def dataReceived(self, data: bytes) -> None:
        self._connections.websocket.send(data)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self.lost = True
        self._connections.backend_backpressure(False)
        self._connections.backend_lost()

    def send(self, data: bytes) -> None:
        """Pass bytes on."""
        if not (self.lost or self._closing):
            self.transport.write(data)

    def set_paused(self, paused: bool) -> None:
        """Read, or do not."""
        self._reading_paused = paused
        if self.transport is None or self.lost or self._closing:
            return
        if paused:
            self.transport.pauseProducing()
        else:
            self.transport.resumeProducing()

    def close_after_flush(self) -> None:
        """Go when what was sent is taken."""
        if self.lost or self._closing:
            return
        self._closing = True
        if self.transport is not None:
            self.transport.unregisterProducer()
            self._connections.backend_backpressure(False)
            self.transport.resumeProducing()
            self.transport.loseConnection()

    def pauseProducing(self) -> None:
        self._connections.backend_backpressure(True)

    def resumeProducing(self) -> None:
        self._connections.backend_backpressure(False)

    def stopProducing(self) -> None:
        pass
