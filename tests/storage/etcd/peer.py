"""A server for the client of etcd, in memory, with the library h2, which verifies HTTP/2."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, PingReceived, RequestReceived, StreamEnded, StreamReset

from kubetwist.storage.etcd._frames import (
    MessageReader,
    prefixed,
)
from kubetwist.storage.etcd._http2 import PREFACE

ANSWER = [(b":status", b"200"), (b"content-type", b"application/grpc")]
ALL_WELL = [(b"grpc-status", b"0"), (b"grpc-message", b"")]


def cut(data: bytes, places: list[int]) -> list[bytes]:
    """Split data into pieces."""
    marks = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[begin:end] for begin, end in pairwise(marks)]


class Peer:
    """
    A server.

    @ivar requests: The headers of requests, by stream.
    @ivar bodies: The received data of requests, by stream.
    @ivar ended: The streams whose requests are complete.
    @ivar resets: The error codes of reset streams, by stream.
    @ivar pings: The number of received pings.
    """

    def __init__(self, settings: dict[Any, int] | None = None) -> None:
        self.h2 = H2Connection(H2Configuration(client_side=False, header_encoding=None))
        self.h2.initiate_connection()
        if settings:
            self.h2.update_settings(settings)
        self.requests: dict[int, dict[bytes, bytes]] = {}
        self.bodies: dict[int, bytes] = {}
        self.ended: list[int] = []
        self.resets: dict[int, int] = {}
        self.pings = 0
        #: Whether what was taken can be sent again; otherwise windows stay as they are.
        self.giving_back = True

    def receive(self, data: bytes) -> None:
        """Handle data of the client: whole frames, since h2 applies its settings only between calls."""
        begin = len(PREFACE) if data.startswith(PREFACE) else 0
        pieces = [data[:begin]] if begin else []
        while begin < len(data):
            end = begin + 9 + int.from_bytes(data[begin : begin + 3], "big")
            pieces.append(data[begin:end])
            begin = end
        for event in (event for piece in pieces for event in self.h2.receive_data(piece)):
            if isinstance(event, RequestReceived):
                assert event.headers is not None
                self.requests[event.stream_id] = dict(event.headers)
                self.bodies[event.stream_id] = b""
            elif isinstance(event, DataReceived):
                self.bodies[event.stream_id] += event.data
                if self.giving_back:
                    self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, StreamEnded):
                self.ended.append(event.stream_id)
            elif isinstance(event, StreamReset):
                self.resets[event.stream_id] = event.error_code
            elif isinstance(event, PingReceived):
                self.pings += 1

    def data_to_send(self) -> bytes:
        """Return the data to send."""
        return self.h2.data_to_send()

    def paths(self) -> list[bytes]:
        """Return the requested paths."""
        return [headers[b":path"] for headers in self.requests.values()]

    def messages(self, stream: int) -> list[bytes]:
        """Return the messages of a request."""
        return MessageReader(1 << 30).feed(self.bodies[stream])

    def begin(self, stream: int) -> None:
        """Send the headers of a response."""
        self.h2.send_headers(stream, ANSWER)

    def send(self, stream: int, message: bytes) -> None:
        """Send a message that fits into the window."""
        data = prefixed(message)
        while data:
            size = min(len(data), self.h2.max_outbound_frame_size, self.h2.local_flow_control_window(stream))
            assert size, "the client takes nothing more"
            self.h2.send_data(stream, data[:size])
            data = data[size:]

    def finish(self, stream: int, trailers: Any = ALL_WELL) -> None:
        """Send the trailers of a response."""
        self.h2.send_headers(stream, trailers, end_stream=True)

    def answer(self, stream: int, message: bytes) -> None:
        """Send a complete response."""
        self.begin(stream)
        self.send(stream, message)
        self.finish(stream)
