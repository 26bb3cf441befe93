"""Connections in memory: two protocols of one process, connected with the backpressure and the ends of a socket."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any, Final

from twisted.internet.address import IPv4Address
from twisted.internet.error import ConnectionAborted, ConnectionDone, ConnectionLost
from twisted.internet.interfaces import IDelayedCall, IProtocol, IReactorTime, ITransport
from twisted.python.failure import Failure
from zope.interface import implementer

#: Number of undelivered bytes at which a producer is paused.
_HIGH: Final = 256 * 1024
#: Maximum number of bytes that are delivered in one iteration of the reactor.
_MAX_DELIVERED: Final = 128 * 1024


@implementer(ITransport)
class MemoryTransport:
    """
    One end of a connection in memory. Data arrive in a later iteration of the reactor.

    @ivar peer: The other end.
    @ivar disconnecting: The connection is closed after the written data.
    """

    peer: MemoryTransport

    def __init__(self, reactor: IReactorTime, protocol: IProtocol, address: IPv4Address) -> None:
        self._reactor = reactor
        self._protocol = protocol
        self._address = address
        self._unsent: deque[bytes] = deque()
        self._size = 0
        self._call: IDelayedCall | None = None
        self._reading_paused = False
        self._producer: Any = None
        self._producer_paused = False
        self._streaming = True
        self.disconnecting = False
        self.connected = True

    def getHost(self) -> IPv4Address:
        """Return the address of this end."""
        return self._address

    def getPeer(self) -> IPv4Address:
        """Return the address of the other end."""
        return self.peer._address

    # Writing.

    def write(self, data: bytes) -> None:
        """Send data."""
        if self.connected and not self.disconnecting and data:
            self._unsent.append(bytes(data))
            self._size += len(data)
            if self._size > _HIGH and self._producer is not None and not self._producer_paused:
                self._producer_paused = True
                if self._streaming:
                    self._producer.pauseProducing()
            self._schedule()

    def writeSequence(self, data: Iterable[bytes]) -> None:
        """Send pieces of data."""
        self.write(b"".join(data))

    def registerProducer(self, producer: Any, streaming: bool) -> None:
        """As L{IConsumer.registerProducer<twisted.internet.interfaces.IConsumer.registerProducer>}."""
        if self._producer is not None:
            raise RuntimeError("a producer is registered already")
        if not self.connected:
            producer.stopProducing()
            return
        self._producer, self._streaming = producer, streaming
        self._producer_paused = False
        if not streaming:
            producer.resumeProducing()

    def unregisterProducer(self) -> None:
        """As L{IConsumer.unregisterProducer<twisted.internet.interfaces.IConsumer.unregisterProducer>}."""
        self._producer = None
        if self.disconnecting:
            self._schedule()

    def _schedule(self) -> None:
        if self._call is None and self.connected:
            self._call = self._reactor.callLater(0, self._deliver)

    def _deliver(self) -> None:
        """Pass written data to the protocol of the other end."""
        self._call = None
        peer = self.peer
        delivered = bytearray()
        while self._unsent and not peer._reading_paused and len(delivered) < _MAX_DELIVERED:
            delivered += self._unsent.popleft()
        self._size -= len(delivered)
        if delivered:
            peer._protocol.dataReceived(bytes(delivered))
        if not self.connected:
            return
        if self._producer is not None and self._size <= _HIGH // 2:
            if not self._streaming:
                if not self._unsent:
                    self._producer.resumeProducing()
            elif self._producer_paused:
                self._producer_paused = False
                self._producer.resumeProducing()
        if self._unsent:
            if not peer._reading_paused:
                self._schedule()
        elif self.disconnecting and self._producer is None:
            self._end(ConnectionDone(), ConnectionDone())

    # Reading.

    def pauseProducing(self) -> None:
        """Pause reading."""
        self._reading_paused = True

    def resumeProducing(self) -> None:
        """Resume reading."""
        self._reading_paused = False
        if self.connected and (self.peer._unsent or self.peer.disconnecting):
            self.peer._schedule()

    def stopProducing(self) -> None:
        """Close the connection."""
        self.loseConnection()

    # Closing.

    def loseConnection(self) -> None:
        """Close the connection after the written data were read."""
        if self.connected and not self.disconnecting:
            self.disconnecting = True
            self._schedule()

    def abortConnection(self) -> None:
        """Close the connection now; unread data are lost."""
        if self.connected:
            self.disconnecting = True
            self._unsent.clear()
            if self._call is not None:
                self._call.cancel()
            self._call = self._reactor.callLater(0, self._abort)

    def _abort(self) -> None:
        self._call = None
        self._end(ConnectionAborted(), ConnectionLost())

    def _end(self, reason: Exception, peer_reason: Exception) -> None:
        for end, why in ((self, reason), (self.peer, peer_reason)):
            if end.connected:
                end.connected = False
                end._unsent.clear()
                if end._call is not None:
                    end._call.cancel()
                    end._call = None
                producer, end._producer = end._producer, None
                if producer is not None:
                    producer.stopProducing()
                end._protocol.connectionLost(Failure(why))


def connect_in_memory(
    reactor: IReactorTime, client: IProtocol, server: IProtocol, address: tuple[str, int] = ("127.0.0.1", 0)
) -> None:
    """
    Connect two protocols.

    @param client: The protocol that connects.
    @param server: The protocol that accepts; it is connected first.
    @param address: The host and port of C{server}.
    """
    near = MemoryTransport(reactor, client, IPv4Address("TCP", "127.0.0.1", 0))
    far = MemoryTransport(reactor, server, IPv4Address("TCP", *address))
    near.peer, far.peer = far, near
    server.makeConnection(far)
    client.makeConnection(near)
