"""Pieces of responses that several requests send, such as the watches that receive the same event."""

from __future__ import annotations

from collections.abc import Callable


class SharedPiece:
    """
    A piece whose framing is computed once for all connections that send it.

    @ivar data: The bytes; not empty.
    @ivar chunk: The piece as a chunk of HTTP/1.1.
    """

    __slots__ = ("chunk", "data")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.chunk = b"%x\r\n%b\r\n" % (len(data), data)


class SharedWriter:
    """
    Sends pieces of one response.

    A watch uses no other object of its request and connection for an event, since their memory is in no cache of the
    processor if there are many watches.

    @ivar sent: The number of bytes that are not counted in the request yet.
    """

    __slots__ = ("_write", "sent")

    def __init__(self, write: Callable[[bytes], object]) -> None:
        """@param write: Sends bytes of the response, and counts them."""
        self._write = write
        self.sent = 0

    def send(self, piece: SharedPiece) -> None:
        """Send a piece."""
        self._write(piece.data)

    def close(self) -> None:
        """Drop further pieces: the response is complete, or its client has disconnected."""
        self._write = _drop


class ChunkWriter(SharedWriter):
    """Sends pieces as chunks of HTTP/1.1, and counts their bytes."""

    __slots__ = ()

    def send(self, piece: SharedPiece) -> None:
        """Send a piece."""
        self.sent += len(piece.data)
        self._write(piece.chunk)


def _drop(data: bytes) -> None:
    """Drop a piece."""
