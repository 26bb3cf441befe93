"""A client of HTTP/2 over a transport in memory, which checks all frames of the server."""

from __future__ import annotations

from collections import Counter
from struct import unpack

from hpack import Decoder

from twisted.internet.interfaces import IHandshakeListener
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.errors import APIStatusError
from kubetwist.http.request import KubeRequest
from kubetwist.http.responses import Body, respond_body
from kubetwist.http.site import KubeSite

from ..harness import echo, make_site
from . import frames as h2
from .frames import Frame
from .measures import held_bytes
from .memorytransport import MemoryTransport

#: Bytes of C{/large}.
LARGE = 400_000
LARGE_PARTS = [bytes((97 + at % 26,)) * 4000 for at in range(LARGE // 4000)]


class Stream:
    """
    What the server has sent on a stream.

    @ivar heads: Lists of fields: 1xx responses, the response, trailers.
    @ivar window: What the server may send.
    @ivar ended: The server has ended the stream.
    @ivar code: The error code of the server's RST_STREAM; L{None} without one.
    """

    def __init__(self, window: int) -> None:
        self.heads: list[list[tuple[bytes, bytes]]] = []
        self.data = bytearray()
        self.window = window
        self.ended = False
        self.code: int | None = None

    @property
    def status(self) -> int | None:
        """Return the status of the response; L{None} before it."""
        statuses = [int(dict(fields)[b":status"]) for fields in self.heads if fields[0][0] == b":status"]
        return statuses[-1] if statuses else None

    def field(self, name: bytes) -> bytes | None:
        """Return a field of the response."""
        return dict(self.heads[-1]).get(name)


class Client:
    """
    A connection in memory to a site.

    @ivar frames: All frames of the server.
    @ivar streams: By number.
    @ivar reading: Whether the client reads what the server sends, as soon as it is sent.
    @ivar opens_windows: The least increment of the WINDOW_UPDATE frames that the client sends for the data that it
        reads; 0 for none.
    @ivar keeps_data: Whether DATA frames and their content are kept.
    """

    def __init__(
        self,
        site: KubeSite,
        *settings: tuple[int, int],
        start: bool = True,
        peer: str = "192.0.2.1",
        early: bytes = b"",
    ) -> None:
        """
        @param settings: The client's settings.
        @param start: Whether to send the preface and the settings.
        @param peer: The address of the client.
        @param early: Bytes that arrive together with the end of the handshake.
        """
        self.reactor: Clock = site.reactor  # type: ignore[assignment]
        self.transport = MemoryTransport(self.reactor, self._read, peer)
        self.frames: list[Frame] = []
        self.streams: dict[int, Stream] = {}
        self.server_settings: dict[int, int] = {}
        self.reading = True
        self.opens_windows = 0
        self.keeps_data = True
        self.window = h2.DEFAULT_WINDOW
        self._initial_window = h2.DEFAULT_WINDOW
        self._max_frame_size = h2.DEFAULT_FRAME_SIZE
        self._sent = b""
        #: WINDOW_UPDATE frames that wait for the end of a frame that is sent in pieces; L{None} otherwise.
        self._updates: list[bytes] | None = None
        self._began = False
        self._sent_settings: list[dict[int, int]] = []
        self._opened: set[int] = set()
        self._used: set[int] = set()
        self._uploaded: Counter[int] = Counter()
        self._granted: Counter[int] = Counter()
        self._decoder = Decoder()
        self._unparsed = b""
        self._block: list[Frame] = []
        self._next = 1
        protocol = self.transport.wrappedProtocol = site.buildProtocol(self.transport.getPeer())
        protocol.makeConnection(self.transport)
        if IHandshakeListener.providedBy(protocol):
            protocol.handshakeCompleted()
        if early:
            self.pass_on(early)
        self.reactor.advance(0)
        if start:
            self.send(h2.PREFACE + h2.settings(*settings) + h2.settings(flags=h2.ACK))

    # Sending.

    def send(self, *sent: bytes) -> None:
        """Send bytes, and run the pending calls of the reactor."""
        self.pass_on(b"".join(sent))
        self.reactor.advance(0)

    def pass_on(self, data: bytes) -> None:
        """Send bytes, and run no pending calls."""
        self._record(data)
        self.transport.send(data)

    def send_in_pieces(self, data: bytes, size: int) -> None:
        """Send bytes in segments."""
        self._updates = []
        for at in range(0, len(data), size):
            self.send(data[at : at + size])
        waiting, self._updates = self._updates, None
        self.send(*waiting)

    def request(self, fields: h2.Fields | bytes = h2.GET, body: bytes | None = None, end_stream: bool = True) -> Stream:
        """
        Send a request on a new stream, and return the stream.

        @param fields: Header fields, or an encoded block.
        @param body: L{None} for none.
        @param end_stream: Whether the request is complete.
        """
        number = self.next_stream()
        sent = h2.headers(number, fields, end_stream=end_stream and body is None)
        if body is not None:
            size = h2.DEFAULT_FRAME_SIZE
            pieces = [body[at : at + size] for at in range(0, len(body), size)] or [b""]
            sent += b"".join(h2.data(number, piece) for piece in pieces[:-1])
            sent += h2.data(number, pieces[-1], end_stream=end_stream)
        self.send(sent)
        return self.stream(number)

    def upload_window(self, number: int) -> int:
        """Return the bytes that the server accepts on a stream now."""
        initial = self.server_settings.get(h2.INITIAL_WINDOW_SIZE, h2.DEFAULT_WINDOW)
        return min(
            h2.DEFAULT_WINDOW + self._granted[0] - self._uploaded.total(),
            initial + self._granted[number] - self._uploaded[number],
        )

    def upload(self, number: int, body: bytes, *, end_stream: bool = True) -> int:
        """Send a body as far as the windows allow, and return the number of bytes that were sent."""
        sent = 0
        while sent < len(body):
            size = min(h2.DEFAULT_FRAME_SIZE, len(body) - sent, self.upload_window(number))
            if not size:
                return sent
            last = sent + size == len(body)
            self.send(h2.data(number, body[sent : sent + size], end_stream=end_stream and last))
            sent += size
        return sent

    def next_stream(self) -> int:
        """Return the number of a new stream."""
        number, self._next = self._next, self._next + 2
        return number

    def stream(self, number: int) -> Stream:
        """Return a stream."""
        if number not in self.streams:
            self.streams[number] = Stream(self._initial_window)
        return self.streams[number]

    def _record(self, sent: bytes) -> None:
        """Record what the server may do after the frames that are sent."""
        self._sent += sent
        if not self._began:
            if len(self._sent) < len(h2.PREFACE):
                return
            self._began, self._sent = True, self._sent[len(h2.PREFACE) :]
        found, self._sent = h2.parse_frames(self._sent)
        for each in found:
            number = each.stream & h2.MAX_WINDOW
            self._used.add(number)
            if each.type == h2.DATA:
                self._uploaded[number] += len(each.payload)
            elif each.type == h2.HEADERS:
                self._opened.add(number)
                self._next = max(self._next, number + 2 if number % 2 else number + 1)
            elif each.type == h2.SETTINGS and not each.has(h2.ACK):
                self._sent_settings.append(h2.parse_settings(each.payload))
            elif each.type == h2.WINDOW_UPDATE and len(each.payload) == 4:
                increment = int.from_bytes(each.payload, "big") & h2.MAX_WINDOW
                if number == 0:
                    self.window += increment
                else:
                    self.stream(number).window += increment

    # Receiving.

    def read(self, size: int | None = None) -> None:
        """Read what the server has sent, and run the pending calls of the reactor."""
        self._receive(self.transport.read(size))
        self.reactor.advance(0)

    def _read(self) -> None:
        if self.reading:
            self._receive(self.transport.read())

    def _receive(self, data: bytes) -> None:
        found, self._unparsed = h2.parse_frames(self._unparsed + data)
        for each in found:
            self._check(each)
            if each.type != h2.DATA or self.keeps_data:
                self.frames.append(each)

    def _check(self, each: Frame) -> None:
        """Check and interpret a frame of the server."""
        assert self.frames or (each.type == h2.SETTINGS and not each.has(h2.ACK)), f"the first frame is {each}"
        assert len(each.payload) <= self._max_frame_size, f"{len(each.payload)} bytes in a frame of type {each.type}"
        assert each.type != h2.PUSH_PROMISE, "a promise"
        if self._block:
            assert each.type == h2.CONTINUATION, f"{each} in a header block"
            assert each.stream == self._block[0].stream, f"{each} in the header block of another stream"
        if each.type in (h2.DATA, h2.HEADERS, h2.RST_STREAM, h2.CONTINUATION):
            opened = self._used if each.type == h2.RST_STREAM else self._opened
            assert each.stream in opened, f"{each} on a stream that the client has not opened"
        if each.type in (h2.DATA, h2.HEADERS):
            stream = self.stream(each.stream)
            assert not stream.ended and stream.code is None, f"{each} after the end of the stream"
        if each.type == h2.DATA:
            self._data(each)
        elif each.type in (h2.HEADERS, h2.CONTINUATION):
            self._headers(each)
        elif each.type == h2.WINDOW_UPDATE:
            self._granted[each.stream] += int.from_bytes(each.payload, "big")
        elif each.type == h2.RST_STREAM:
            self.stream(each.stream).code = int.from_bytes(each.payload, "big")
        elif each.type == h2.SETTINGS:
            self._settings(each)

    def _data(self, each: Frame) -> None:
        assert not each.has(h2.PADDED), "padding"
        stream = self.stream(each.stream)
        assert stream.status, "data before the head"
        self.window -= len(each.payload)
        stream.window -= len(each.payload)
        if each.payload:
            assert self.window >= 0, f"{-self.window} bytes beyond the connection's window"
            assert stream.window >= 0, f"{-stream.window} bytes beyond the stream's window"
        if self.keeps_data:
            stream.data += each.payload
        stream.ended = each.has(h2.END_STREAM)
        if self.opens_windows and each.payload:
            increment = max(self.opens_windows, len(each.payload))
            update = h2.window_update(0, increment) + h2.window_update(each.stream, increment)
            self.reactor.callLater(0, self._update, update)

    def _update(self, update: bytes) -> None:
        """Send WINDOW_UPDATE, but not within another frame."""
        if self._updates is None:
            self.pass_on(update)
        else:
            self._updates.append(update)

    def _headers(self, each: Frame) -> None:
        self._block.append(each)
        if not each.has(h2.END_HEADERS):
            return
        first = self._block[0]
        fields = self._decoder.decode(b"".join(each.payload for each in self._block), raw=True)
        self._block = []
        stream = self.stream(each.stream)
        for name, value in fields:
            assert name == name.lower() and name, f"the name {name!r}"
            assert not any(bad in name + value for bad in (b"\r", b"\n", b"\0")), f"the field {name!r}: {value!r}"
            assert name not in (b"connection", b"transfer-encoding", b"keep-alive", b"upgrade", b"proxy-connection")
        pseudo = [name for name, _ in fields if name.startswith(b":")]
        assert pseudo == [b":status"] and fields[0][0] == b":status", f"the pseudo fields {pseudo}"
        stream.heads.append([(bytes(name), bytes(value)) for name, value in fields])
        stream.ended = first.has(h2.END_STREAM)

    def _settings(self, each: Frame) -> None:
        assert each.stream == 0
        if not each.has(h2.ACK):
            assert len(each.payload) % 6 == 0
            self.server_settings.update(h2.parse_settings(each.payload))
            return
        assert each.payload == b""
        assert self._sent_settings, "an acknowledgement of settings that were not sent"
        accepted = self._sent_settings.pop(0)
        self._max_frame_size = accepted.get(h2.MAX_FRAME_SIZE, self._max_frame_size)
        if h2.HEADER_TABLE_SIZE in accepted:
            self._decoder.max_allowed_table_size = accepted[h2.HEADER_TABLE_SIZE]
        if h2.INITIAL_WINDOW_SIZE in accepted:
            change = accepted[h2.INITIAL_WINDOW_SIZE] - self._initial_window
            self._initial_window += change
            for stream in self.streams.values():
                stream.window += change

    # Results.

    def received(self, kind: int, stream: int | None = None) -> list[Frame]:
        """Return the frames of a type, and of a stream."""
        return [one for one in self.frames if one.type == kind and stream in (None, one.stream)]

    @property
    def goaway(self) -> tuple[int, int] | None:
        """Return the last stream and the code of the newest GOAWAY; L{None} without one."""
        found = self.received(h2.GOAWAY)
        if not found:
            return None
        last, code = unpack(">II", found[-1].payload[:8])
        return last, code

    @property
    def closed(self) -> bool:
        """Return whether the server has closed the connection."""
        return self.transport.disconnecting or self.transport.lost

    @property
    def alive(self) -> bool:
        """Return whether the server answers a PING."""
        before = len(self.received(h2.PING))
        self.send(h2.ping(b"is alive"))
        return [one.payload for one in self.received(h2.PING)[before:]] == [b"is alive"]


def reply(request: KubeRequest) -> None:
    """Answer with the method, the path and the body, or refuse a body that is too large."""
    try:
        echo(request)
    except APIStatusError as error:
        request.fail(error)


def get(path: bytes, *fields: tuple[bytes, bytes], method: bytes = b"GET") -> h2.Fields:
    """Return the fields of a request."""
    return ((b":method", method), *h2.GET[1:2], (b":path", path), *h2.GET[3:], *fields)


class Http2Case(SynchronousTestCase):
    """
    Base of tests of a site that serves HTTP/2.

    @ivar served: Method and path of all requests that were served.
    @ivar waiting: The requests for C{/wait} and C{/stream}, which the test answers.
    """

    def setUp(self) -> None:
        """Create a site."""
        self.clock = Clock()
        self.served: list[tuple[bytes, bytes]] = []
        self.requests: list[KubeRequest] = []
        self.waiting: list[KubeRequest] = []
        self.site = self.make_site()

    def make_site(self) -> KubeSite:
        """Return a site whose handler is L{handle}; bodies for C{/stream} are read as the handler reads them."""
        site = make_site(self.handle, self.clock)
        site.heads_first = True
        site.streams.append(lambda request: request.path == b"/stream")
        self.addCleanup(site.stopFactory)
        return site

    def handle(self, request: KubeRequest) -> None:
        """Answer by the path: echo, keep the request, or send many bytes."""
        self.served.append((request.method, request.path))
        self.requests.append(request)
        if request.path in (b"/wait", b"/stream"):
            self.waiting.append(request)
        elif request.path == b"/events":
            request.send_first(lambda: None)
            request.write(b"event")
        elif request.path == b"/large":
            respond_body(request, 200, Body(LARGE_PARTS), b"text/plain")
        elif request.path == b"/unique":
            number = len(self.requests)
            request.setHeader(b"x-unique-%d" % number, b"%d" % number * 50)
            request.setHeader(b"x-unique", b"%d" % number * 50)
            request.collect_body(reply)
        else:
            request.collect_body(reply)

    def connect(self, *settings: tuple[int, int], peer: str = "192.0.2.1") -> Client:
        """Return a connected client, whose settings are acknowledged."""
        client = Client(self.site, *settings, peer=peer)
        self.assertTrue(any(one.has(h2.ACK) for one in client.received(h2.SETTINGS)), client.frames)
        self.assertFalse(client.closed)
        return client

    def held(self, client: Client) -> int:
        """Return the bytes that the server holds for a connection, with its unread data."""
        site, transport = self.site, client.transport
        held = held_bytes(transport.wrappedProtocol, site, self.clock, transport, site.connections, self)
        return held + transport.buffered

    def answer(self, number: int, code: int = 200, body: bytes = b"done") -> None:
        """Answer a waiting request."""
        self.waiting[number].respond(code, body, b"text/plain")
        self.clock.advance(0)

    def advance(self, seconds: float) -> None:
        """Advance the clock in steps of a second."""
        self.clock.pump([1.0] * int(seconds))

    def assert_connection_error(self, client: Client, *codes: int) -> None:
        """Assert that the server has closed the connection with GOAWAY, with one of some codes."""
        self.assertIsNotNone(client.goaway, f"no GOAWAY: {client.frames}")
        assert client.goaway is not None
        self.assertIn(client.goaway[1], codes)
        self.assertTrue(client.closed)

    def assert_stream_error(self, client: Client, number: int, *codes: int) -> None:
        """Assert that the server has reset a stream with one of some codes, and that the connection continues."""
        stream = client.stream(number)
        self.assertIsNotNone(stream.code, f"no RST_STREAM: {client.frames}")
        self.assertIn(stream.code, codes)
        self.assert_usable(client)

    def assert_error(self, client: Client, number: int, *codes: int) -> None:
        """Assert that the server has reset a stream, or closed the connection, with one of some codes."""
        if client.goaway is not None:
            self.assert_connection_error(client, *codes)
        else:
            self.assert_stream_error(client, number, *codes)

    def assert_malformed(self, client: Client, number: int) -> None:
        """Assert that a request was not served, but refused as malformed, and that the connection continues."""
        stream = client.stream(number)
        if stream.status is None:
            self.assertEqual(stream.code, h2.PROTOCOL_ERROR, client.frames)
        else:
            self.assertEqual(stream.status, 400)
            self.assertTrue(stream.ended)
        self.assertEqual(self.served, [])
        self.assert_usable(client)

    def assert_usable(self, client: Client) -> None:
        """Assert that a connection is open, and that another request is served."""
        self.assertIsNone(client.goaway)
        self.assertFalse(client.closed)
        self.assertTrue(client.alive)
        served = list(self.served)
        stream = client.request(get(b"/next"))
        self.assertEqual((stream.status, bytes(stream.data), stream.ended), (200, b"GET /next ", True))
        self.served[:] = served
