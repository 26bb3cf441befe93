"""Relays data between two connections with switched protocols."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionDone
from twisted.internet.protocol import Protocol
from twisted.python.failure import Failure

from ...http.request import KubeRequest

if TYPE_CHECKING:
    from ...client.streaming import StreamingResponse


class _End(Protocol):
    """One of the two connections; its loss closes the other one after the remaining data is written."""

    transport: Any = None
    peer: _End

    def __init__(self, done: Deferred[None]) -> None:
        self._done = done
        self._early: list[bytes] = []
        self._joined = False
        self._lost = False

    def join(self) -> None:
        """Start to relay, once the peer is connected, too."""
        self._joined = True
        early, self._early = self._early, []
        for piece in early:
            self.peer.transport.write(piece)
        if self._lost:
            self.peer.transport.loseConnection()
        elif not self.peer._lost:
            # Read only as fast as the peer writes.
            self.peer.transport.registerProducer(self.transport, True)

    def dataReceived(self, data: bytes) -> None:
        """Write the data to the peer."""
        if not self._joined:
            self._early.append(data)
        elif not self.peer._lost:
            self.peer.transport.write(data)

    def connectionLost(self, reason: Failure = Failure(ConnectionDone())) -> None:  # noqa: B008
        """Close the peer."""
        self._lost = True
        if not self._joined:
            return
        if self.peer._lost:
            self._done.callback(None)
        else:
            self.peer.transport.unregisterProducer()
            self.peer.transport.loseConnection()


def splice(request: KubeRequest, answer: StreamingResponse, fields: Sequence[tuple[bytes, bytes]]) -> Deferred[None]:
    """
    Relay between the client of a request and a backend that has switched protocols.

    @param answer: The backend's C{101}; it is taken over, or aborted if the client is gone.
    @param fields: The header of our C{101}.
    @return: Fires when both connections are closed. Its cancellation changes nothing.
    """
    done: Deferred[None] = Deferred()
    here, there = _End(done), _End(done)
    here.peer, there.peer = there, here
    if not request.switch_protocols(fields, here):
        answer.abort()
        done.callback(None)
        return done
    answer.hijack(there)
    here.join()
    there.join()
    if here._lost and there._lost:
        done.callback(None)
    return done
