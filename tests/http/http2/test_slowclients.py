"""Hostile clients that are slow: in sending, in reading, or in opening their windows."""

from __future__ import annotations

from collections.abc import Callable

from kubetwist.http.request import KubeRequest

from . import frames as h2
from .client import Client, Http2Case, get
from .endless import Endless
from .measures import count_calls

WAIT = get(b"/wait")
#: Bytes that a connection may hold for its unread responses.
MAX_UNREAD = 2 * 1024 * 1024


class SlowSenderTests(Http2Case):
    """Slow senders, whose time is limited as over HTTP/1.1."""

    def start(self, *sent: bytes) -> Client:
        """Return a client that has sent some bytes only."""
        client = Client(self.site, start=False)
        client.send(*sent)
        return client

    def assert_times_out(self, client: Client, more: bytes = b"", seconds: int = 40) -> None:
        """Assert that the server closes a connection on which a byte arrives every second."""
        for number in range(seconds):
            if client.closed:
                break
            client.pass_on(more[number : number + 1])
            self.clock.advance(1)
        self.assertTrue(client.closed, f"{seconds} seconds have passed")
        self.advance(30)
        self.assertTrue(client.transport.lost)

    def test_nothing_sent(self) -> None:
        """A connection without a byte is closed."""
        self.assert_times_out(self.start())

    def test_slow_preface(self) -> None:
        """A preface that arrives byte by byte is not waited for longer than a head."""
        self.assert_times_out(self.start(), h2.PREFACE + h2.frame_head(60_000, h2.SETTINGS))

    def test_no_settings(self) -> None:
        """A client that sends no SETTINGS is disconnected."""
        self.assert_times_out(self.start(h2.PREFACE), seconds=100)

    def test_idle(self) -> None:
        """A connection without streams is closed after 90 seconds, with GOAWAY and without an error."""
        client = self.connect()
        client.request()
        self.advance(85)
        self.assertFalse(client.closed)
        client.request()
        self.advance(85)
        self.assertFalse(client.closed)
        self.advance(10)
        self.assertTrue(client.closed)
        self.assertEqual(client.goaway, (3, h2.NO_ERROR))

    def test_no_request(self) -> None:
        """A connection on which no request arrives is closed."""
        client = self.connect()
        self.advance(100)
        self.assertTrue(client.closed)

    def test_open_request(self) -> None:
        """There is no timeout while a request is answered."""
        client = self.connect()
        client.send(h2.headers(1, WAIT))
        self.advance(1000)
        self.assertFalse(client.closed)
        self.answer(0)
        self.assertEqual(bytes(client.stream(1).data), b"done")

    def test_slow_head(self) -> None:
        """A header block that arrives byte by byte, or frame by frame, ends the connection after some time."""
        client = self.connect()
        self.assert_times_out(client, h2.headers(1))
        client = self.connect()
        client.send(h2.headers(1, end_headers=False))
        for _ in range(40):
            if not client.closed:
                client.send(h2.continuation(1, b"", end_headers=False))
                self.clock.advance(1)
        self.assertTrue(client.closed)
        self.assertEqual(self.served, [])

    def test_slow_head_beside_a_request(self) -> None:
        """An open request does not allow a header block to take longer."""
        client = self.connect()
        client.send(h2.headers(1, WAIT), h2.headers(3, end_headers=False))
        self.advance(60)
        self.assertTrue(client.closed)

    def test_slow_frame(self) -> None:
        """A frame that arrives byte by byte ends the connection after some time."""
        client = self.connect()
        self.assert_times_out(client, h2.frame(0x77, 0, 0, bytes(500)), 120)

    def test_slow_body(self) -> None:
        """A body that arrives too slowly ends its request, and not the connection."""
        for length in (b"60000", b"100000"):
            client = self.connect()
            client.send(h2.headers(1, [*h2.POST, (b"content-length", length)], end_stream=False))
            client.send(h2.headers(3, WAIT))
            for _ in range(70):
                if client.stream(1).status is None and client.stream(1).code is None:
                    client.send(h2.data(1, b"x"))
                    self.clock.advance(1)
            stream = client.stream(1)
            self.assertTrue(stream.status == 408 or stream.code is not None, client.frames)
            self.assertNotEqual(stream.status, 200)
            self.assert_usable(client)

    def test_body_without_end(self) -> None:
        """A body whose end does not arrive ends its request."""
        client = self.connect()
        client.send(h2.headers(1, h2.POST, end_stream=False), h2.data(1, b"body"))
        self.advance(70)
        stream = client.stream(1)
        self.assertTrue(client.closed or stream.status == 408 or stream.code is not None)
        self.assertEqual(self.served, [])

    def test_slow_bodies_on_all_streams(self) -> None:
        """Slow bodies on all streams hold little, and end."""
        client = self.connect()
        limit = client.server_settings[h2.MAX_CONCURRENT_STREAMS]
        held = self.held(client)
        for _ in range(limit):
            number = client.next_stream()
            client.send(h2.headers(number, h2.POST, end_stream=False), h2.data(number, bytes(600)))
        self.assertLess(self.held(client), held + limit * 8192)
        self.advance(70)
        self.assertEqual(self.served, [])
        self.assertLess(self.held(client), held + 128 * 1024)


class SlowReaderTests(Http2Case):
    """Slow readers, for which little is kept."""

    def handle(self, request: KubeRequest) -> None:
        """Answer with an endless response, or as usual."""
        if request.path == b"/endless":
            self.endless.append(Endless(request))
        else:
            super().handle(request)

    def setUp(self) -> None:
        """Create a site."""
        super().setUp()
        self.endless: list[Endless] = []

    def test_unread_connection(self) -> None:
        """A producer is paused if the client reads nothing, although its windows are open."""
        client = self.connect((h2.INITIAL_WINDOW_SIZE, h2.MAX_WINDOW))
        client.send(h2.window_update(0, h2.MAX_WINDOW - h2.DEFAULT_WINDOW))
        client.reading = False
        for number in range(1, 41, 2):
            client.send(h2.headers(number, get(b"/endless")))
        self.assertLess(self.held(client), MAX_UNREAD)
        written = sum(one.written for one in self.endless)
        client.read()
        self.assertGreater(sum(one.written for one in self.endless), written)
        client.transport.hang_up()
        self.assertTrue(all(one.stopped for one in self.endless))

    def test_closed_windows(self) -> None:
        """With closed windows, a hundred long responses hold next to nothing."""
        client = self.connect((h2.INITIAL_WINDOW_SIZE, 0))
        held = self.held(client)
        for _ in range(100):
            client.send(h2.headers(client.next_stream(), get(b"/large")))
        self.assertEqual(len(self.served), 100)
        # The bodies themselves are shared.
        shared = 400_000
        self.assertLess(self.held(client), held + shared + MAX_UNREAD)
        self.assertTrue(all(not stream.data for stream in client.streams.values()))

    def test_endless_responses_with_closed_windows(self) -> None:
        """With closed windows, producers are paused at once."""
        client = self.connect((h2.INITIAL_WINDOW_SIZE, 0))
        for _ in range(100):
            client.send(h2.headers(client.next_stream(), get(b"/endless")))
        self.assertLess(sum(one.written for one in self.endless), MAX_UNREAD)
        client.send(*(h2.reset(number) for number in range(1, 200, 2)))
        self.assertTrue(all(one.stopped for one in self.endless))
        self.assertEqual(self.site.open_requests, set())

    def test_small_windows(self) -> None:
        """Windows that open byte by byte let the same bytes through, and no more is written ahead."""
        client = self.connect((h2.INITIAL_WINDOW_SIZE, 0))
        client.send(h2.headers(1, get(b"/endless")))
        for _ in range(200):
            client.send(h2.window_update(1, 1))
        self.assertEqual(len(client.stream(1).data), 200)
        self.assertLess(self.endless[0].written, 300_000)

    def test_window_is_followed(self) -> None:
        """A response continues at the pace of its window, and nothing is lost."""
        client = self.connect()
        client.opens_windows = 1
        client.send(h2.headers(1, get(b"/large")))
        self.assertEqual((len(client.stream(1).data), client.stream(1).ended), (400_000, True))

    def test_fair_streams(self) -> None:
        """Streams of a connection share its window by bytes."""
        client = self.connect((h2.INITIAL_WINDOW_SIZE, 10_000_000))
        for _ in range(4):
            client.send(h2.headers(client.next_stream(), get(b"/endless")))
        before = [len(client.stream(number).data) for number in (1, 3, 5, 7)]
        client.send(h2.window_update(0, 2_000_000))
        after = [len(client.stream(number).data) for number in (1, 3, 5, 7)]
        shares = [late - early for early, late in zip(before, after, strict=True)]
        self.assertEqual(sum(shares), 2_000_000)
        self.assertGreater(min(shares), 350_000, shares)
        client.send(*(h2.reset(number) for number in (1, 3, 5, 7)))

    def test_short_response_beside_long_ones(self) -> None:
        """A short response is not behind the long ones of its connection."""
        client = self.connect((h2.INITIAL_WINDOW_SIZE, 10_000_000))
        for _ in range(4):
            client.send(h2.headers(client.next_stream(), get(b"/endless")))
        stream = client.request()
        client.send(h2.window_update(0, 1_000_000))
        self.assertEqual((bytes(stream.data), stream.ended), (b"GET /a ", True))
        at = next(at for at, one in enumerate(client.frames) if one.type == h2.DATA and one.stream == 9)
        sent = sum(len(one.payload) for one in client.frames[:at] if one.type == h2.DATA)
        self.assertLess(sent, 65_535 + 10 * 16_384)
        client.send(*(h2.reset(number) for number in (1, 3, 5, 7)))

    def test_never_reads(self) -> None:
        """A client that reads nothing of its response is disconnected after some time."""
        client = self.connect()
        client.reading = False
        for _ in range(20):
            client.send(h2.headers(client.next_stream(), get(b"/large")))
        self.advance(700)
        self.assertTrue(client.closed)
        self.assertEqual(self.site.open_requests, set())

    def test_never_opens_window(self) -> None:
        """A client that reads, but does not open the window of its responses, loses them after some time."""
        client = self.connect((h2.INITIAL_WINDOW_SIZE, 0))
        held = self.held(client)
        for _ in range(20):
            client.send(h2.headers(client.next_stream(), get(b"/large")))
        for _ in range(700):
            if client.closed:
                break
            client.send(h2.ping())
            self.clock.advance(1)
        self.assertEqual(self.site.open_requests, set())
        self.assertLess(self.held(client), held + 65_536)

    def test_hang_up(self) -> None:
        """A lost connection ends all of its requests and holds nothing."""
        client = self.connect((h2.INITIAL_WINDOW_SIZE, 0))
        for path in (b"/wait", b"/large", b"/endless", b"/stream", b"/a"):
            client.send(h2.headers(client.next_stream(), get(path, method=b"POST"), end_stream=path != b"/stream"))
        paths = sorted(one.path for one in self.site.open_requests)
        self.assertEqual(paths, [b"/endless", b"/large", b"/stream", b"/wait"])
        client.transport.hang_up()
        self.assertEqual(self.site.open_requests, set())
        self.assertTrue(all(one.disconnected for one in self.waiting))
        self.assertEqual(self.site.connections.channels, set())
        for request in self.waiting:
            request.respond(200, b"late", b"text/plain")


class TurnTests(Http2Case):
    """A hostile client beside another one."""

    def test_requests_alternate(self) -> None:
        """A connection with thousands of waiting requests does not keep another one waiting."""
        worked = 0.0

        def work(request: KubeRequest) -> None:
            nonlocal worked
            worked += 0.001
            self.handle(request)

        self.site.handler = work
        self.site.connections.now = lambda: self.clock.seconds() + worked
        greedy, other = self.connect(), self.connect(peer="192.0.2.9")
        # GET / of the static table, and an authority: 16 bytes a request.
        block = b"\x82\x84\x87\x41\x01x"
        greedy.pass_on(b"".join(h2.headers(number, block) for number in range(1, 1000, 2)))
        other.pass_on(h2.headers(1, get(b"/other")))
        before = [path for _, path in self.served].index(b"/other")
        self.assertLessEqual(before, 10)
        self.clock.advance(0)
        self.assertEqual(other.stream(1).status, 200)
        self.assertEqual(len(self.served), 501)

    def test_work_of_a_segment(self) -> None:
        """Frames are read for some milliseconds only; the rest is read after the data of other connections."""
        floods: dict[str, tuple[bytes, Callable[[int], bytes]]] = {
            "requests": (b"", lambda number: h2.headers(number, b"\x82\x84\x87\x41\x01x")),
            "malformed requests": (b"", lambda number: h2.headers(number, b"\x82\x84\x87")),
            "long lists": (b"", lambda number: h2.headers(number, h2.block(h2.GET) + b"\x90" * 3900)),
            "data": (h2.headers(1, h2.POST, end_stream=False), lambda number: h2.data(1, b"x")),
            "control frames": (b"", lambda number: h2.ping()),
        }
        for name, (before, make) in floods.items():
            time = 0.0

            def now() -> float:
                nonlocal time
                time += 0.001
                return time

            self.site.connections.now = now
            client = self.connect()
            client.send(before)
            segment, number = b"", 3
            while len(segment) < 60_000:
                segment += make(number)
                number += 2
            calls = count_calls(lambda client=client, segment=segment: client.pass_on(segment))
            self.assertLess(calls, 10_000, name)
            self.clock.advance(0)
            self.assertTrue(client.closed or client.alive, name)

    def test_flood_beside_a_request(self) -> None:
        """A client that floods its connection until it is closed does not disturb another connection."""
        hostile, other = self.connect(), self.connect(peer="192.0.2.9")
        other.send(h2.headers(1, WAIT))
        for number in range(2000):
            if hostile.closed:
                break
            hostile.send(h2.ping() * 100)
            if number % 10 == 0:
                self.assertTrue(other.request(get(b"/next")).ended)
        self.assertTrue(hostile.closed)
        self.answer(0)
        self.assertEqual(bytes(other.stream(1).data), b"done")
        self.assert_usable(other)

    def test_long_responses_alternate(self) -> None:
        """Long responses on many streams let a request of another connection be served in the same turn."""
        greedy, other = self.connect((h2.INITIAL_WINDOW_SIZE, 10_000_000)), self.connect(peer="192.0.2.9")
        greedy.send(h2.window_update(0, 1_000_000_000))
        for _ in range(50):
            greedy.send(h2.headers(greedy.next_stream(), get(b"/large")))
        self.assertEqual(bytes(other.request().data), b"GET /a ")
        self.assertTrue(all(stream.ended for stream in greedy.streams.values()))
