"""A client of HTTP/2 in memory, with the library h2, which verifies the protocol."""

from __future__ import annotations

from attrs import Factory, define
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, InformationalResponseReceived, ResponseReceived, StreamEnded, StreamReset
from h2.settings import SettingCodes

from twisted.internet.address import IPv4Address
from twisted.internet.testing import StringTransport

from kubetwist.http.http2.connection import Http2Connection
from kubetwist.http.http2.frames import GOAWAY, parse_uint32
from kubetwist.http.site import KubeSite


@define
class Response:
    """What has arrived of a response."""

    headers: dict[str, str] = Factory(dict)
    body: bytes = b""
    ended: bool = False
    reset: int | None = None

    @property
    def code(self) -> int:
        """Return the status code; 0 before the head."""
        return int(self.headers.get(":status", "0"))


class Transport(StringTransport):
    """A transport that records an abort."""

    aborted = False

    def __init__(self) -> None:
        super().__init__(peerAddress=IPv4Address("TCP", "192.0.2.1", 50000))

    def abortConnection(self) -> None:
        """Record the abort."""
        self.aborted = True


class Peer:
    """
    A client, and the connection of the server.

    @ivar responses: The responses by stream.
    @ivar goaway: The codes of GOAWAY.
    @ivar informed: The streams that got 100 Continue.
    """

    def __init__(self, site: KubeSite, transport: Transport | None = None, window: int = 65535) -> None:
        """
        @param window: The initial window of streams.
        """
        self.site = site
        self.transport = transport or Transport()
        self.server = Http2Connection(site)
        self.server.makeConnection(self.transport)
        self.client = H2Connection(H2Configuration(header_encoding="latin-1"))
        self.client.initiate_connection()
        self.client.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: window})
        self.responses: dict[int, Response] = {}
        self.goaway: list[int] = []
        self.informed: list[int] = []
        self.exchange()

    def exchange(self) -> None:
        """Exchange all data."""
        for _ in range(100):
            sent = self.client.data_to_send()
            if sent:
                self.server.dataReceived(sent)
            self.site.reactor.advance(0)
            received = self.transport.value()
            self.transport.clear()
            if received:
                self._received(received)
            if not sent and not received:
                return

    def _received(self, data: bytes) -> None:
        for event in self.client.receive_data(self._without_goaway(data)):
            stream_id = getattr(event, "stream_id", None)
            if not stream_id:
                continue
            response = self.responses.setdefault(stream_id, Response())
            if isinstance(event, InformationalResponseReceived):
                self.informed.append(stream_id)
            elif isinstance(event, ResponseReceived):
                response.headers.update(event.headers)
            elif isinstance(event, DataReceived):
                response.body += event.data
            elif isinstance(event, StreamEnded):
                response.ended = True
            elif isinstance(event, StreamReset):
                response.reset = int(event.error_code)

    def _without_goaway(self, data: bytes) -> bytes:
        """Record GOAWAY, after which the library accepts no response to an open request."""
        frames = b""
        while data:
            end = 9 + int.from_bytes(data[:3], "big")
            if data[3] == GOAWAY:
                self.goaway.append(parse_uint32(data[13:17]))
            else:
                frames += data[:end]
            data = data[end:]
        return frames

    def begin(self, method: str = "GET", path: str = "/a", end: bool = True, **headers: str) -> int:
        """Send the head of a request and return its stream; underscores in names stand for dashes."""
        stream_id: int = self.client.get_next_available_stream_id()
        fields = [(":method", method), (":scheme", "https"), (":path", path), (":authority", "x")]
        fields += [(name.replace("_", "-"), value) for name, value in headers.items()]
        self.client.send_headers(stream_id, fields, end_stream=end)
        self.exchange()
        return stream_id

    def send(self, stream_id: int, data: bytes, end: bool = False) -> None:
        """Send a part of a body, as far as the windows allow."""
        view = memoryview(data)
        while view and (stream_id not in self.responses or self.responses[stream_id].reset is None):
            size = min(self.client.local_flow_control_window(stream_id), 16384, len(view))
            if size <= 0:
                raise AssertionError("the window is closed")
            self.client.send_data(stream_id, bytes(view[:size]), end_stream=end and size == len(view))
            view = view[size:]
            self.exchange()

    def request(self, method: str = "GET", path: str = "/a", body: bytes = b"", **headers: str) -> Response:
        """Send a request, and return its response."""
        stream_id = self.begin(method, path, not body, **headers)
        if body:
            self.send(stream_id, body, True)
        return self.responses.get(stream_id, Response())

    def accept(self, stream_id: int, size: int) -> None:
        """Open the windows by some bytes."""
        self.client.increment_flow_control_window(size)
        if stream_id:
            self.client.increment_flow_control_window(size, stream_id)
        self.exchange()

    def raw(self, data: bytes) -> None:
        """Send bytes that the library would not send."""
        self.server.dataReceived(data)
        self.exchange()
