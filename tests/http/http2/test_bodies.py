"""Bodies of requests over HTTP/2: collected, streamed, too large, or without room."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twisted.internet.interfaces import IConsumer, IPushProducer
from zope.interface import implementer

from kubetwist.http.connection.bodyshares import MAX_BODY, SMALL_BODY, BodyShares

from . import frames as h2
from .client import Client, Http2Case, get

STREAM = get(b"/stream", method=b"POST")


@implementer(IConsumer)
class Reader:
    """Reads a streamed body, and pauses at a limit."""

    def __init__(self, limit: int) -> None:
        """
        @param limit: The bytes after which it pauses the producer.
        """
        self.received = b""
        self.producer: IPushProducer | None = None
        self._limit = limit

    def registerProducer(self, producer: IPushProducer, streaming: bool) -> None:
        """Keep the producer."""
        self.producer = producer

    def unregisterProducer(self) -> None:
        """Drop the producer."""
        self.producer = None

    def write(self, data: bytes) -> None:
        """Receive data."""
        self.received += data
        if len(self.received) >= self._limit and self.producer is not None:
            self.producer.pauseProducing()

    def read_more(self, size: int) -> None:
        """Read as many further bytes."""
        self._limit = len(self.received) + size
        assert self.producer is not None, "the body has ended"
        self.producer.resumeProducing()


class CollectedTests(Http2Case):
    """Bodies that are read as a whole."""

    def setUp(self) -> None:
        """Connect a client whose windows are large."""
        super().setUp()
        self.client = self.connect((h2.INITIAL_WINDOW_SIZE, 4_000_000))
        self.client.send(h2.window_update(0, 1_000_000_000))

    def post(self, body: bytes, *fields: tuple[bytes, bytes]) -> tuple[int | None, int]:
        """Send a request with a body, and return the status and the number of bytes that the server accepted."""
        number = self.client.next_stream()
        self.client.send(h2.headers(number, [*h2.POST, *fields], end_stream=False))
        sent = self.client.upload(number, body)
        return self.client.stream(number).status, sent

    def test_sizes(self) -> None:
        """Bodies up to the limit are read, with or without C{content-length}."""
        for size in (1, SMALL_BODY - 1, SMALL_BODY, SMALL_BODY + 1, 500_000, MAX_BODY):
            for fields in ((), ((b"content-length", b"%d" % size),)):
                body = bytes(97 + at % 26 for at in range(100)) * (size // 100 + 1)
                self.assertEqual(self.post(body[:size], *fields), (200, size))
                self.assertEqual(bytes(self.client.streams[max(self.client.streams)].data), b"POST /a " + body[:size])
        self.assertEqual(self.site.connections.bodies.used, 0)

    def test_small_bodies(self) -> None:
        """A small body is the same in one frame, with padding, after an empty frame, and in two; it opens no window."""
        for number, *pieces in (
            (1, h2.data(1, b"abcd", end_stream=True)),
            (3, h2.data(3, b"abcd", end_stream=True, padding=100)),
            (5, h2.data(5, b"", padding=200), h2.data(5, b"abcd", end_stream=True)),
            (7, h2.data(7, b"ab"), h2.data(7, b"cd", end_stream=True)),
            (9, h2.data(9, b"abcd"), h2.data(9, b"", end_stream=True)),
        ):
            fields = [*h2.POST, (b"content-length", b"4")]
            self.client.send(h2.headers(number, fields, end_stream=False), *pieces)
            self.assertEqual([], [one for one in self.client.frames if one.type == h2.WINDOW_UPDATE and one.stream])
            self.assertEqual(bytes(self.client.stream(number).data), b"POST /a abcd")
        self.assertEqual(self.site.open_requests, set())

    def test_too_large(self) -> None:
        """A body above the limit is answered 413 when it exceeds the limit, and its bytes are not kept."""
        held = self.held(self.client)
        status, sent = self.post(bytes(MAX_BODY + 200_000))
        self.assertEqual(status, 413)
        self.assertLess(sent, MAX_BODY + 200_000)
        self.assertLess(self.held(self.client), held + 100_000)
        self.assertEqual(self.site.connections.bodies.used, 0)
        self.assert_usable(self.client)

    def test_no_room(self) -> None:
        """A large body is answered 429 if there is no room for it; small ones are read."""
        self.site.connections.bodies = BodyShares(300_000)
        for fields in ((), ((b"content-length", b"200000"),)):
            status, sent = self.post(bytes(200_000), *fields)
            self.assertEqual(status, 429)
            self.assertLess(sent, 200_000)
        self.assertEqual(self.post(bytes(SMALL_BODY))[0], 200)
        self.assertEqual(self.site.connections.bodies.used, 0)

    def test_handler_answers_early(self) -> None:
        """A large body that no handler wants is not read."""
        number = self.client.next_stream()
        fields = get(b"/wait", (b"content-length", b"1000000"), method=b"POST")
        self.client.send(h2.headers(number, fields, end_stream=False))
        self.assertLessEqual(self.client.upload(number, bytes(1_000_000)), SMALL_BODY)
        self.answer(0, 403)
        self.assertEqual(self.client.stream(number).status, 403)
        self.assert_usable(self.client)

    def test_reset(self) -> None:
        """A client that resets its stream releases the room of the body."""
        number = self.client.next_stream()
        self.client.send(h2.headers(number, [*h2.POST, (b"content-length", b"1000000")], end_stream=False))
        self.client.upload(number, bytes(500_000), end_stream=False)
        self.assertEqual(self.site.connections.bodies.used, 1_000_000)
        self.client.send(h2.reset(number))
        self.assertEqual(self.site.connections.bodies.used, 0)
        self.assertEqual(self.site.open_requests, set())


class StreamedTests(Http2Case):
    """Bodies that a handler reads as they arrive."""

    def start(self, client: Client, limit: int) -> Reader:
        """Send the head of a request, and return the reader of its body."""
        client.send(h2.headers(1, STREAM, end_stream=False))
        reader = Reader(limit)
        self.delivered = self.waiting[0].deliver_body(reader)
        return reader

    def test_pace(self) -> None:
        """The client may send as much as the reader has read, and a window."""
        client = self.connect()
        reader = self.start(client, 10_000)
        body = bytes(range(256)) * 2000
        sent = client.upload(1, body)
        self.assertLess(sent, 200_000)
        while sent < len(body):
            self.assertLessEqual(sent - len(reader.received), 2 * SMALL_BODY)
            reader.read_more(100_000)
            self.clock.advance(0)
            self.assertGreater(client.upload_window(1), 0)
            sent += client.upload(1, body[sent:])
        self.successResultOf(self.delivered)
        self.assertEqual(reader.received, body)

    def test_late_reader(self) -> None:
        """What has arrived before the handler reads is kept, at most a window."""
        client = self.connect()
        client.send(h2.headers(1, STREAM, end_stream=False))
        held = self.held(client)
        sent = client.upload(1, bytes(1_000_000))
        self.assertLessEqual(sent, SMALL_BODY)
        self.assertLess(self.held(client), held + 2 * SMALL_BODY)
        reader = Reader(10_000_000)
        delivered = self.waiting[0].deliver_body(reader)
        self.clock.advance(0)
        client.upload(1, bytes(1_000_000 - sent))
        self.successResultOf(delivered)
        self.assertEqual(len(reader.received), 1_000_000)

    def test_reset(self) -> None:
        """A reset ends the delivery with a failure."""
        client = self.connect()
        reader = self.start(client, 10_000_000)
        client.send(h2.data(1, b"some"), h2.reset(1))
        self.failureResultOf(self.delivered)
        self.assertEqual(reader.received, b"some")

    def test_reader_stops(self) -> None:
        """A reader that stops gets no more, and the rest does not hold up the connection."""
        client = self.connect()
        reader = self.start(client, 10_000_000)
        client.send(h2.data(1, b"some"))
        assert reader.producer is not None
        reader.producer.stopProducing()
        self.failureResultOf(self.delivered)
        client.upload(1, bytes(1_000_000))
        self.assertEqual(reader.received, b"some")
        self.answer(0)
        self.assertEqual(client.stream(1).status, 200)
        self.assert_usable(client)

    @given(
        pieces=st.lists(st.integers(0, 30_000), max_size=12),
        steps=st.lists(st.integers(1, 50_000), min_size=1, max_size=6),
        trailers=st.booleans(),
    )
    def test_any_pieces(self, pieces: list[int], steps: list[int], trailers: bool) -> None:
        """Any pieces arrive complete at a reader of any pace."""
        self.waiting.clear()
        client = Client(self.site)
        reader = self.start(client, steps[0])
        body = b"".join(bytes((at % 256,)) * size for at, size in enumerate(pieces))
        sent, turn = 0, 0
        for size in pieces:
            end = sent + size
            while sent < end:
                sent += client.upload(1, body[sent:end], end_stream=False)
                if sent < end:
                    turn += 1
                    reader.read_more(steps[turn % len(steps)])
                    self.clock.advance(0)
        client.send(h2.headers(1, [(b"x", b"y")]) if trailers else h2.data(1, end_stream=True))
        while reader.producer is not None:
            reader.read_more(100_000)
            self.clock.advance(0)
        self.successResultOf(self.delivered)
        self.assertEqual(reader.received, body)
