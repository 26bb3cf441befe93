"""
The streams of a connection that are not open: idle, skipped, ended or reset. No I/O.

@see: RFC 9113, section 5.1.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from .frames import PROTOCOL_ERROR, STREAM_CLOSED, Http2ConnectionError, Http2StreamError

#: Ranges of skipped stream ids that are remembered.
_MAX_SKIPPED: Final = 32


class ClosedStreams:
    """
    The states of streams that are not open.

    @ivar last_id: The highest id that the client has used.
    """

    __slots__ = ("_limit", "_reset", "_skipped", "last_id")

    def __init__(self, limit: int) -> None:
        """
        @param limit: Number of reset streams that are remembered; the oldest ones are forgotten. If it is the maximum
            number of open streams, data in flight are recognized after all of them were reset.
        """
        self._limit = limit
        self.last_id = 0
        #: Reset streams, and whether the client did it.
        self._reset: dict[int, bool] = {}
        self._skipped: deque[tuple[int, int]] = deque(maxlen=_MAX_SKIPPED)

    def opened(self, stream_id: int) -> None:
        """Handle that the client has opened a stream, which closes all idle ones before it."""
        if stream_id > self.last_id + 2:
            self._skipped.append((self.last_id, stream_id))
        self.last_id = stream_id

    def was_reset(self, stream_id: int, *, by_client: bool) -> None:
        """Handle that a stream was reset."""
        if stream_id in self._reset:
            return
        if len(self._reset) >= self._limit:
            del self._reset[next(iter(self._reset))]
        self._reset[stream_id] = by_client

    def is_idle(self, stream_id: int) -> bool:
        """Return whether a stream was not opened, or can never be."""
        return stream_id > self.last_id or not stream_id & 1

    def check(self, stream_id: int, kind: str) -> None:
        """
        Check HEADERS or DATA of a stream that is neither open nor idle.

        The frame is ignored if the server has reset the stream: the client may have sent it before it knew that.

        @param kind: The type of the frame.
        @raise Http2StreamError: The client has reset the stream.
        @raise Http2ConnectionError: The stream has ended, or was skipped.
        """
        by_client = self._reset.get(stream_id)
        if by_client is None:
            if any(low < stream_id < high for low, high in self._skipped):
                raise Http2ConnectionError(PROTOCOL_ERROR, "the ids of new streams must grow")
            raise Http2ConnectionError(STREAM_CLOSED, f"{kind} on a closed stream")
        if by_client:
            raise Http2StreamError(stream_id, STREAM_CLOSED, f"{kind} on a stream that the client has reset")
