"""
A watch over a WebSocket, for browsers: one message for each event, text or protobuf.

@see: kubernetes/apiserver, C{pkg/endpoints/handlers/watch.go}: C{HandleWS}.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from ...http.responses import CBOR, PROTOBUF
from ...streams.handshakes import Handshake, HandshakeError, check_handshake
from ...streams.websocket import WebSocketConnection
from ..protobufencoding import FRAME_LENGTH_SIZE
from .watch import MAX_WRITE_SIZE, WatchStream

if TYPE_CHECKING:
    from ...storage.cache.window import EventBatch

#: Matches a valid C{Origin} header.
_ORIGIN: Final = re.compile(rb"[A-Za-z][A-Za-z0-9+.-]*:.+|/.*")


class WebSocketWatchStream(WatchStream):
    """One watch and its WebSocket; messages of the client are ignored."""

    _socket: WebSocketConnection | None = None
    _frame_begins = True

    @property
    def _binary(self) -> bool:
        return self._content_type.startswith((PROTOBUF, CBOR))

    def open(self) -> None:
        """Accept the handshake, or answer with the error."""
        request = self._request
        request.send_first(self._flusher.flush)
        try:
            handshake = _check(request.method, request.fields)
        except HandshakeError as error:
            self._stop()
            for name, value in error.fields:
                request.setHeader(name, value)
            request.respond_text(error.code, str(error))
            return
        self._socket = socket = WebSocketConnection(
            self._reactor, self, on_backpressure=self._on_backpressure, on_connection_lost=self.stopProducing
        )
        self._calls.append(self._reactor.callLater(self._timeout, self.end, None))
        if not request.switch_protocols(handshake.fields(*handshake.protocols), socket, self.end):
            self._stop()

    def send_batch(self, batch: EventBatch) -> bool:
        """Send each event as a message."""
        return False

    def _write(self) -> None:
        pending, sent = self._pending, 0
        while sent < len(pending) and (self._ended or not self._paused):
            if self._send_chunk(pending[sent]):
                sent += 1
        del pending[:sent]
        if not pending:
            self._shared.clear()

    def _chunk_end(self, event: bytes, start: int) -> int:
        end = start + MAX_WRITE_SIZE
        if not self._binary:
            # Do not split a character.
            while end < len(event) and event[end] & 0xC0 == 0x80:
                end -= 1
        return end

    def _send(self, data: bytes, whole: bool = True) -> None:
        socket = self._socket
        if socket is None:
            return
        if not self._binary:
            socket.send_text(str(data, "utf-8"), whole)
            return
        if self._frame_begins and self._content_type.startswith(PROTOBUF):
            # The message has a length already.
            data = data[FRAME_LENGTH_SIZE:]
        self._frame_begins = whole
        socket.send(data, whole)

    def _finish(self) -> None:
        if self._socket is not None:
            # Do not wait for the client's close frame: the server ignores its messages.
            self._socket.close(wait=False)

    def _abort(self) -> None:
        if self._socket is not None:
            self._socket.abort()

    def _on_backpressure(self, full: bool) -> None:
        if full:
            self.pauseProducing()
        else:
            self.resumeProducing()

    # The methods of the WebSocketListener.

    def message_received(self, data: bytes, finished: bool) -> None:
        """See L{kubetwist.streams.websocket.WebSocketListener}."""

    def closed(self, clean: bool) -> None:
        """See L{kubetwist.streams.websocket.WebSocketListener}."""
        self.stopProducing()


def _check(method: bytes, fields: Mapping[bytes, Sequence[bytes]]) -> Handshake:
    """
    Check a handshake.

    Any single subprotocol is accepted; several are an error.

    @raise HandshakeError: The request is not a valid handshake.
    """
    handshake = check_handshake(method, fields)
    if not _ORIGIN.fullmatch(fields.get(b"origin", (b"",))[0]):
        raise HandshakeError(403, "")
    if len(handshake.protocols) > 1:
        raise HandshakeError(400, "")
    return handshake
