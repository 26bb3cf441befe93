"""Port forwarding with SPDY inside a WebSocket; the connection to the backend is plain SPDY (Go: TunnelingHandler)."""

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

#: The prefix of the subprotocols of tunnels.
PREFIX: Final = "SPDY/3.1+"
_SUFFIX: Final = ".k8s.io"

_BACKPRESSURE: Final = "the other side does not take more"
_GOING_AWAY: Final = 1001
#: Header fields of the WebSocket upgrade, which are not forwarded.
_WEBSOCKET_FIELDS: Final = (b"connection", b"upgrade", PROTOCOL_VERSION.lower())


def tunneled_protocols(fields: Fields) -> list[str]:
    """Return the protocols that a client requests inside a tunnel, the preferred one first."""
    return [
        one.removeprefix(PREFIX) for one in subprotocols(fields) if one.startswith(PREFIX) and one.endswith(_SUFFIX)
    ]


class Tunnel:
    """
    A requested tunnel.

    @ivar method: The HTTP method of the request to the backend.
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
        """Return the header fields for the backend: the client's fields, with an upgrade to SPDY."""
        forwarded = [
            (name, value)
            for name, value in fields
            if name.lower() not in _WEBSOCKET_FIELDS and not name.lower().startswith(b"sec-websocket-")
        ]
        return [*forwarded, *spdy_upgrade_fields(tunneled_protocols(self._request.fields))]

    def upgraded(self, request: KubeRequest, response: StreamingResponse) -> Deferred[None]:
        """
        Upgrade the client's connection and connect it to the backend's.

        @param request: The request of the client.
        @param response: The backend's response, whose connection is not hijacked yet.
        @return: Fires when both connections are closed.
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
    The connections of a tunnel.

    @ivar websocket: The client's connection.
    @ivar backend: The backend's connection.
    @ivar closed_both: Fires when both connections are closed.
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
        """Pause or resume reading from the client."""
        if write_paused:
            self.websocket.pause_reading(_BACKPRESSURE)
        else:
            self.websocket.resume_reading(_BACKPRESSURE)

    def backend_lost(self) -> None:
        """Handle the end of the backend's connection."""
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
        """Close both connections because the server stops."""
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
        """Send bytes to the backend."""
        if not (self.lost or self._closing):
            self.transport.write(data)

    def set_paused(self, paused: bool) -> None:
        """Pause or resume reading from the backend."""
        self._reading_paused = paused
        if self.transport is None or self.lost or self._closing:
            return
        if paused:
            self.transport.pauseProducing()
        else:
            self.transport.resumeProducing()

    def close_after_flush(self) -> None:
        """Close the connection after the written data is sent."""
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
