"""Request bodies that are streamed to their handler."""

from __future__ import annotations

from typing import Protocol

from twisted.python.failure import Failure

from .connection.flow import BodyStream, Source


class BodySource(Source, Protocol):
    """The connection that a body is read from."""

    def send_continue(self) -> None:
        """Send 100 Continue, which the client waits for."""


class StreamedBody(BodyStream):
    """
    A streamed body.

    @ivar length: The length in the head, in bytes; L{None} for a body in chunks.
    """

    def __init__(self, channel: BodySource, length: int | None, expects_continue: bool) -> None:
        """
        @param expects_continue: Whether the client waits for 100 Continue.
        """
        super().__init__(channel)
        self._channel = channel
        self.length = length
        self._expects_continue = expects_continue

    def _begin(self) -> None:
        if self._expects_continue:
            self._channel.send_continue()

    def lost(self, reason: Failure) -> None:
        """Handle a client that has disconnected, or a request that was answered."""
        if not self.finished:
            self._waiting = []
        super().lost(reason)


def collected_body(body: bytes) -> BodyStream:
    """Return a collected body in the form of a streamed one."""
    flow = BodyStream(None)
    flow.received(body)
    flow.finish()
    return flow
