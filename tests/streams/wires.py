"""Connections in memory, whose bytes are moved by the test."""

from __future__ import annotations

from typing import Any

from twisted.internet.error import ConnectionAborted, ConnectionDone
from twisted.python.failure import Failure

#: Written bytes above which the producer is paused.
FULL = 64 * 1024


class _End:
    """The transport of one side."""

    def __init__(self, protocol: Any) -> None:
        self.protocol = protocol
        self.other: Any = None
        self.waiting = bytearray()
        self.most_waiting = 0
        self.reading = True
        self.leaving = False
        self.disconnected = False
        self._producer: Any = None
        self._pausing = False

    def write(self, data: bytes) -> None:
        assert isinstance(data, bytes), type(data)
        if self.leaving or self.disconnected:
            return
        self.waiting += data
        self.most_waiting = max(self.most_waiting, len(self.waiting))
        if len(self.waiting) > FULL and self._producer is not None and not self._pausing:
            self._pausing = True
            self._producer.pauseProducing()

    def writeSequence(self, pieces: Any) -> None:
        self.write(b"".join(pieces))

    def registerProducer(self, producer: Any, streaming: bool) -> None:
        assert streaming and self._producer is None
        self._producer = producer

    def unregisterProducer(self) -> None:
        self._producer = None

    def pauseProducing(self) -> None:
        self.reading = False

    def resumeProducing(self) -> None:
        self.reading = True

    def loseConnection(self) -> None:
        self.leaving = True

    def abortConnection(self) -> None:
        self.waiting.clear()
        self._lose(ConnectionAborted())
        self.other._lose(ConnectionAborted())

    def _lose(self, reason: Exception) -> None:
        if not self.disconnected:
            self.disconnected = True
            self.protocol.connectionLost(Failure(reason))

    def move(self, size: int) -> bool:
        """Deliver up to C{size} written bytes; return whether anything happened."""
        other = self.other
        moved = False
        if self.waiting and other.reading and not other.disconnected:
            piece = bytes(self.waiting[:size])
            del self.waiting[:size]
            moved = True
            other.protocol.dataReceived(piece)
        if not self.waiting and self._pausing:
            self._pausing = False
            moved = True
            if self._producer is not None:
                self._producer.resumeProducing()
        if self.leaving and not self.waiting and not self.disconnected:
            moved = True
            self._lose(ConnectionDone())
            other._lose(ConnectionDone())
        return moved


class Wire:
    """
    A connection between two protocols.

    @ivar first: The transport of the first protocol.
    @ivar second: The transport of the second protocol.
    """

    def __init__(self, first: Any, second: Any) -> None:
        self.first, self.second = _End(first), _End(second)
        self.first.other, self.second.other = self.second, self.first
        first.makeConnection(self.first)
        second.makeConnection(self.second)

    def pump(self, size: int = 1 << 16) -> bool:
        """Deliver all written bytes in pieces of C{size}; return whether anything happened."""
        ever = False
        while any([self.first.move(size), self.second.move(size)]):
            ever = True
        return ever


def pump(clock: Any, *wires: Wire, size: int = 1 << 16) -> None:
    """Deliver all written bytes of several connections, and run the calls that are due."""
    moved = True
    while moved:
        moved = False
        for wire in wires:
            moved = wire.pump(size) or moved
        if any(call.getTime() <= clock.seconds() for call in clock.getDelayedCalls()):
            clock.advance(0)
            moved = True
