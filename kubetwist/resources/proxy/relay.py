"""Relays data between two connections with switched protocols."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import Deferred
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure

from ...http.request import KubeRequest

if TYPE_CHECKING:
    from ...client.streaming import StreamingResponse


class _RelayProtocol(Protocol):
    """One of the two connections; its loss closes the peer's connection after the remaining data is written."""

    transport: Any = None
    peer: _RelayProtocol

    def __init__(self, done: Deferred[None]) -> None:
        self._done = done
        self._buffered: list[bytes] = []
        self._relaying = False
        self._lost = False

    def start_relay(self) -> None:
        """Start to relay when both sides are connected."""
        self._relaying = True
        buffered, self._buffered = self._buffered, []
        for piece in buffered:
            self.peer.transport.write(piece)
        if self._lost:
            self.peer.transport.loseConnection()
        elif not self.peer._lost:
            # Read only as fast as the peer writes.
            self.peer.transport.registerProducer(self.transport, True)

    def dataReceived(self, data: bytes) -> None:
        """Write the data to the peer."""
        if not self._relaying:
            self._buffered.append(data)
        elif not self.peer._lost:
            self.peer.transport.write(data)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Close the peer."""
        self._lost = True
        if not self._relaying:
            return
        if self.peer._lost:
            self._done.callback(None)
        else:
            self.peer.transport.unregisterProducer()
            self.peer.transport.loseConnection()


def splice(request: KubeRequest, response: StreamingResponse, fields: Sequence[tuple[bytes, bytes]]) -> Deferred[None]:
    """
    Relay between the client of a request and a backend that has switched protocols.

    @param request: The request of the client.
    @param response: The backend's C{101}; its connection is taken over, or aborted if the client has disconnected.
    @param fields: The header fields of the C{101} to the client.
    @return: Fires when both connections are closed. Cancelling it has no effect.
    """
    done: Deferred[None] = Deferred()
    client_side, backend_side = _RelayProtocol(done), _RelayProtocol(done)
    client_side.peer, backend_side.peer = backend_side, client_side
    if not request.switch_protocols(fields, client_side):
        response.abort()
        done.callback(None)
        return done
    response.hijack(backend_side)
    client_side.start_relay()
    backend_side.start_relay()
    if client_side._lost and backend_side._lost:
        done.callback(None)
    return done
