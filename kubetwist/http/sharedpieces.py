"""Pieces of responses that several requests send, such as the watches that receive the same event."""

from __future__ import annotations


class SharedPiece:
    """
    A piece whose framing is computed once for all connections that send it.

    @ivar data: The bytes; not empty.
    """

    __slots__ = ("_chunk", "data")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._chunk = b""

    @property
    def chunk(self) -> bytes:
        """Return the piece as a chunk of HTTP/1.1."""
        if not self._chunk:
            self._chunk = b"%x\r\n%b\r\n" % (len(self.data), self.data)
        return self._chunk
