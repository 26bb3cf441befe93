"""The server's side of a TLS connection, in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.address import IPv4Address
from twisted.internet.error import ConnectionAborted, ConnectionDone
from twisted.internet.interfaces import IConsumer, IPushProducer, ITransport
from twisted.internet.task import Clock
from twisted.python.failure import Failure
from zope.interface import implementer

#: Unread bytes at which the transport pauses the server's producer, as a socket does.
HIGH_WATER = 64 * 1024
#: Maximum size of a TLS record.
RECORD = 16 * 1024


@implementer(ITransport, IConsumer, IPushProducer)
class MemoryTransport:
    """
    The server's side of a TLS connection whose handshake has chosen C{h2}.

    Like L{kubetwist.http.connection.coalescingtls.CoalescingTLSTransport}, it sends what was written at the end of an
    iteration of the reactor, and first what L{write_first} has got.

    @ivar wrappedProtocol: The protocol of the connection.
    @ivar unread: Bytes that the server has sent and the client has not read.
    @ivar lost: The connection has ended.
    @ivar aborted: The server has closed it without sending what was written.
    """

    negotiatedProtocol = b"h2"
    urgent = False
    disconnecting = False
    aborted = False
    lost = False

    def __init__(self, reactor: Clock, on_sent: Callable[[], object], peer: str) -> None:
        self.unread = bytearray()
        self.wrappedProtocol: Any = None
        self._reactor = reactor
        self._on_sent = on_sent
        self._peer = peer
        self._unreceived = bytearray()
        self._paused = False
        self._delivering = False
        self._first = bytearray()
        self._pending = bytearray()
        self._flush_scheduled = False
        self._producer: Any = None
        self._producer_paused = False

    @property
    def buffered(self) -> int:
        """Return the number of bytes that the server has written and the client has not read."""
        return len(self.unread) + len(self._first) + len(self._pending)

    # The server's side.

    def write(self, data: bytes) -> None:
        """Send data at the end of the iteration."""
        self._write(self._pending, data)
        if len(self._pending) > HIGH_WATER:
            self.flush()

    def write_first(self, data: bytes) -> None:
        """Send data at the end of the iteration, before other data."""
        self._write(self._first, data)

    def _write(self, buffer: bytearray, data: bytes) -> None:
        assert isinstance(data, bytes), type(data)
        if self.disconnecting or self.lost:
            return
        buffer += data
        if not self._flush_scheduled:
            self._flush_scheduled = True
            self._reactor.callLater(0, self.flush)

    def writeSequence(self, data: Any) -> None:
        """Send data at the end of the iteration."""
        self.write(b"".join(data))

    def flush(self) -> None:
        """Send what was written."""
        self._flush_scheduled = False
        if not (self._first or self._pending):
            return
        self.unread += self._first + self._pending
        self._first.clear()
        self._pending.clear()
        self._on_sent()
        if len(self.unread) > HIGH_WATER and self._producer is not None and not self._producer_paused:
            self._producer_paused = True
            self._producer.pauseProducing()

    def loseConnection(self) -> None:
        """Close the connection when the client has read everything."""
        self.flush()
        self.disconnecting = True
        self._end_if_read()

    def abortConnection(self) -> None:
        """Close the connection now."""
        assert not self.lost, "the connection has ended"
        self.aborted = self.disconnecting = True
        for buffer in (self.unread, self._first, self._pending):
            buffer.clear()
        self._reactor.callLater(0, self._lose, ConnectionAborted())

    def _end_if_read(self) -> None:
        if self.disconnecting and not self.unread and self._producer is None:
            self._reactor.callLater(0, self._lose, ConnectionDone())

    def _lose(self, reason: Exception) -> None:
        if not self.lost:
            self.lost = self.disconnecting = True
            self.wrappedProtocol.connectionLost(Failure(reason))

    def getPeer(self) -> IPv4Address:
        """Return the address of the client."""
        return IPv4Address("TCP", self._peer, 50000)

    def getHost(self) -> IPv4Address:
        """Return the address of the server."""
        return IPv4Address("TCP", "192.0.2.2", 6443)

    def registerProducer(self, producer: Any, streaming: bool) -> None:
        """Register the server's producer."""
        assert self._producer is None, "another producer is registered"
        assert streaming, "only push producers are used"
        self._producer, self._producer_paused = producer, False

    def unregisterProducer(self) -> None:
        """Unregister the server's producer."""
        self._producer = None
        self._end_if_read()

    def pauseProducing(self) -> None:
        """Receive nothing from the client for now."""
        self._paused = True

    def resumeProducing(self) -> None:
        """Receive data of the client again."""
        self._paused = False
        self._reactor.callLater(0, self._deliver)

    def stopProducing(self) -> None:
        """Close the connection."""
        self.loseConnection()

    # The client's side.

    def send(self, data: bytes) -> None:
        """Send data of the client; they wait in the network while the server does not read."""
        self._unreceived += data
        self._deliver()

    def _deliver(self) -> None:
        if self._delivering:
            return
        self._delivering = True
        try:
            while self._unreceived and not self._paused and not self.lost and not self.aborted:
                received = bytes(self._unreceived[:HIGH_WATER])
                del self._unreceived[:HIGH_WATER]
                # What was read from the socket is decrypted completely, also after a pause.
                for at in range(0, len(received), RECORD):
                    if not self.aborted:
                        self.wrappedProtocol.dataReceived(received[at : at + RECORD])
        finally:
            self._delivering = False

    def read(self, size: int | None = None) -> bytes:
        """Read at most C{size} bytes."""
        size = len(self.unread) if size is None else size
        taken = bytes(self.unread[:size])
        del self.unread[:size]
        if self._producer_paused and len(self.unread) <= HIGH_WATER // 2 and self._producer is not None:
            self._producer_paused = False
            self._reactor.callLater(0, self._resume_producer)
        self._end_if_read()
        return taken

    def _resume_producer(self) -> None:
        if self._producer is not None and not self.lost:
            self._producer.resumeProducing()

    def hang_up(self) -> None:
        """Close the client's side."""
        self._lose(ConnectionDone())
