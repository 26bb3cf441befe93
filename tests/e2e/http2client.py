"""A blocking client of HTTP/2 on the library h2, for tests that need to see the frames of one connection."""

from __future__ import annotations

import json
import socket
import ssl
import time
from collections.abc import Callable
from struct import unpack
from typing import Any

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    DataReceived,
    RemoteSettingsChanged,
    ResponseReceived,
    StreamEnded,
    StreamReset,
)

from kubetwist.testing import SubprocessServer
from tests.http.http2.frames import GOAWAY, frame, parse_frames


def connect_tls(server: SubprocessServer, *protocols: str) -> ssl.SSLSocket:
    """Return a TLS connection to a server that offers some protocols."""
    context = server.connection.ssl_context()
    if protocols:
        context.set_alpn_protocols(list(protocols))
    plain = socket.create_connection(("127.0.0.1", server.connection.port), timeout=20)
    return context.wrap_socket(plain, server_hostname="127.0.0.1")


class Http2Client:
    """
    One connection.

    @ivar data: The body of each stream so far.
    @ivar statuses: The status of each stream.
    @ivar ended: The streams that the server has ended.
    @ivar resets: The error codes of the streams that the server has reset.
    @ivar goaway: The error code of GOAWAY; L{None} before.
    @ivar last_stream: The last stream that the server has processed, with GOAWAY.
    @ivar closed: The server has closed the connection.
    """

    def __init__(self, server: SubprocessServer, token: str = "") -> None:
        """
        @param token: The token of the requests, by default the server's.
        """
        self._socket = connect_tls(server, "h2", "http/1.1")
        assert self._socket.selected_alpn_protocol() == "h2"
        self._token = token or server.token
        self.h2 = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
        self.data: dict[int, bytearray] = {}
        self.statuses: dict[int, int] = {}
        self.ended: set[int] = set()
        self.resets: dict[int, int] = {}
        self.goaway: int | None = None
        self.last_stream = 0
        self.settings: dict[int, int] = {}
        self.closed = False
        self._unparsed = b""
        self.h2.initiate_connection()
        self.h2.increment_flow_control_window(2**24)
        self._flush()

    def start(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> int:
        """Send a request, and return the number of its stream."""
        number = self.h2.get_next_available_stream_id()
        fields = [
            (":method", method),
            (":scheme", "https"),
            (":authority", "127.0.0.1"),
            (":path", path),
            ("authorization", f"Bearer {self._token}"),
            ("accept", "application/json"),
            ("content-type", content_type),
        ]
        self.data[number] = bytearray()
        self.h2.send_headers(number, fields, end_stream=body is None)
        if body is not None:
            self.h2.send_data(number, json.dumps(body).encode(), end_stream=True)
        self._flush()
        return number

    def request(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Any:
        """Return status and decoded body of a response."""
        number = self.start(method, path, body, content_type)
        self.wait(lambda: number in self.ended)
        return self.statuses[number], json.loads(bytes(self.data[number]) or b"null")

    def events(self, number: int) -> list[Any]:
        """Return the watch events that have arrived on a stream."""
        return [json.loads(line) for line in bytes(self.data[number]).splitlines(keepends=True) if line.endswith(b"\n")]

    def wait(self, condition: Callable[[], object], seconds: float = 20) -> None:
        """Receive until a condition is met."""
        until = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < until, "the condition is not met in time"
            assert not self.closed, "the server has closed the connection"
            self.receive()

    def wait_closed(self, seconds: float = 20) -> None:
        """Receive until the server has closed the connection."""
        until = time.monotonic() + seconds
        while not self.closed:
            assert time.monotonic() < until, "the server does not close the connection"
            self.receive()

    def receive(self, seconds: float = 0.5) -> None:
        """Receive what arrives within some seconds."""
        self._socket.settimeout(seconds)
        try:
            received = self._socket.recv(65536)
        except TimeoutError:
            return
        except (ConnectionError, ssl.SSLError):
            received = b""
        if not received:
            self.closed = True
            return
        found, self._unparsed = parse_frames(self._unparsed + received)
        for each in found:
            if each.type == GOAWAY:
                # The library would refuse all frames after it, although open streams continue.
                self.last_stream, self.goaway = unpack(">LL", each.payload[:8])
                continue
            for event in self.h2.receive_data(frame(*each)):
                self._handle(event)
        self._flush()

    def _handle(self, event: object) -> None:
        if isinstance(event, ResponseReceived):
            self.statuses[event.stream_id] = int(dict(event.headers)[":status"])
        elif isinstance(event, DataReceived):
            self.data[event.stream_id] += event.data
            if event.stream_id not in self.ended:
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, StreamEnded):
            self.ended.add(event.stream_id)
        elif isinstance(event, StreamReset):
            self.resets[event.stream_id] = int(event.error_code)
        elif isinstance(event, RemoteSettingsChanged):
            self.settings |= {int(code): one.new_value for code, one in event.changed_settings.items()}

    def _flush(self) -> None:
        data = self.h2.data_to_send()
        if data and not self.closed:
            self._socket.sendall(data)

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()
