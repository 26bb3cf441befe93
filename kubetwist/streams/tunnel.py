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
from .upgrades import PROTOCOL_VERSION, is_spdy, spdy_fields
from .websocket import WebSocketConnection

if TYPE_CHECKING:
    from ..client.streaming import StreamingResponse

#: In front of what is spoken inside of the tunnel.
PREFIX: Final = "SPDY/3.1+"
_SUFFIX: Final = ".k8s.io"

_PRESSURE: Final = "the other side does not take more"
_GOING_AWAY: Final = 1001
#: What makes a request one for a WebSocket, and says what is spoken.
_OF_WEBSOCKETS: Final = (b"connection", b"upgrade", PROTOCOL_VERSION.lower())


def tunnelled(fields: Fields) -> list[str]:
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
        kept = [
            (name, value)
            for name, value in fields
            if name.lower() not in _OF_WEBSOCKETS and not name.lower().startswith(b"sec-websocket-")
        ]
        return [*kept, *spdy_fields(tunnelled(self._request.fields))]

    def upgraded(self, request: KubeRequest, answer: StreamingResponse) -> Deferred[None]:
        """
        The backend's connection is there: have the client's, and connect them.

        @param answer: A C{101}, not taken over yet.
        @return: Fires when both are gone.
        """
        if not is_spdy(answer):
            answer.abort()
            # As Go's http.Error.
            request.respond_text(500, "unable to upgrade: missing upgrade headers in response\n")
            self.answered()
            return _fired()
        chosen = PREFIX + (answer.field(PROTOCOL_VERSION.lower()) or b"").decode("latin-1").strip()
        protocol = chosen if chosen in self._handshake.protocols else ""
        ends = _Ends(request.site.reactor)
        if not request.switch_protocols(self._handshake.fields(protocol), ends.websocket, ends.stop):
            answer.abort()
            return _fired()
        self.answered()
        answer.hijack(ends.backend)
        return ends.over


def _fired() -> Deferred[None]:
    done: Deferred[None] = Deferred()
    done.callback(None)
    return done


class _Ends:
    """
    Both ends of a tunnel.

    @ivar websocket: The client's.
    @ivar backend: The backend's.
    @ivar over: Fires when both are gone.
    """

    def __init__(self, reactor: IReactorTime) -> None:
        self.backend = _Backend(self)
        self.websocket = WebSocketConnection(reactor, self, on_pressure=self.backend.hold, on_gone=self._client_lost)
        self.over: Deferred[None] = Deferred()
        self._client_gone = False

    def message_received(self, data: bytes, finished: bool) -> None:
        """See L{kubetwist.streams.websocket.WebSocketListener}."""
        self.backend.send(data)

    def closed(self, clean: bool) -> None:
        """See L{kubetwist.streams.websocket.WebSocketListener}."""
        self.backend.leave()

    def backend_pressure(self, full: bool) -> None:
        """The backend does not take what was sent to it, or does again."""
        if full:
            self.websocket.hold(_PRESSURE)
        else:
            self.websocket.release(_PRESSURE)

    def backend_lost(self) -> None:
        """The backend has ended its connection."""
        self.websocket.close()
        self._check()

    def _client_lost(self) -> None:
        self._client_gone = True
        self.backend.leave()
        self._check()

    def _check(self) -> None:
        if self._client_gone and self.backend.gone and not self.over.called:
            self.over.callback(None)

    def stop(self) -> None:
        """The server stops."""
        self.websocket.close(_GOING_AWAY, wait=False)
        self.backend.leave()


@implementer(IPushProducer)
class _Backend(Protocol):
    """The connection to the backend, forwarded byte by byte."""

    transport: Any

    def __init__(self, ends: _Ends) -> None:
        self._ends = ends
        self._leaving = False
        self._held = False
        self.gone = False

    def connectionMade(self) -> None:
        self.transport.registerProducer(self, True)
        if self._held:
            self.transport.pauseProducing()
        if self._leaving:
            self._leaving = False
            self.leave()

    def dataReceived(self, data: bytes) -> None:
        self._ends.websocket.send(data)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self.gone = True
        self._ends.backend_pressure(False)
        self._ends.backend_lost()

    def send(self, data: bytes) -> None:
        """Pass bytes on."""
        if not (self.gone or self._leaving):
            self.transport.write(data)

    def hold(self, held: bool) -> None:
        """Read, or do not."""
        self._held = held
        if self.transport is None or self.gone or self._leaving:
            return
        if held:
            self.transport.pauseProducing()
        else:
            self.transport.resumeProducing()

    def leave(self) -> None:
        """Go when what was sent is taken."""
        if self.gone or self._leaving:
            return
        self._leaving = True
        if self.transport is not None:
            self.transport.unregisterProducer()
            self._ends.backend_pressure(False)
            self.transport.resumeProducing()
            self.transport.loseConnection()

    def pauseProducing(self) -> None:
        self._ends.backend_pressure(True)

    def resumeProducing(self) -> None:
        self._ends.backend_pressure(False)

    def stopProducing(self) -> None:
        pass
