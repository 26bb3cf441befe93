"""Tests of L{kubetwist.client.http2.connection}."""

from __future__ import annotations

from twisted.internet.error import ConnectionLost

from kubetwist.client.connection import StaleConnection, UnprocessedRequest
from kubetwist.client.errors import Unreachable
from kubetwist.client.http2.connection import (
    CONNECTION_WINDOW,
    LINGER_TIMEOUT,
    MAX_RESETS,
    MAX_STREAMS,
    PING_TIMEOUT,
    READ_IDLE_TIMEOUT,
)
from kubetwist.client.http2.stream import STREAM_WINDOW
from kubetwist.http.http2.budgets import MAX_CONTROL_FRAMES
from tests.client.http2.http2case import OK, Http2Case
from tests.http.http2 import frames as h2
from tests.http.http2.frames import Frame


class SettingsTests(Http2Case):
    """The start of a connection, and its settings."""

    def test_preface(self) -> None:
        """The client disables pushes, and announces its limits."""
        self.assertTrue(self.preface.startswith(h2.PREFACE))
        (settings, update), _ = h2.parse_frames(self.preface[len(h2.PREFACE) :])
        self.assertEqual(
            h2.parse_settings(settings.payload),
            {h2.ENABLE_PUSH: 0, h2.INITIAL_WINDOW_SIZE: STREAM_WINDOW, h2.MAX_HEADER_LIST_SIZE: 128 * 1024},
        )
        self.assertEqual(int.from_bytes(update.payload, "big"), CONNECTION_WINDOW - h2.DEFAULT_WINDOW)

    def test_acknowledged(self) -> None:
        """Settings are acknowledged; before the first ones no request can be sent."""
        self.start()
        self.assertFalse(self.connection.is_open)
        self.failureResultOf(self.send(), UnprocessedRequest)
        self.receive(h2.settings())
        self.assertEqual(self.sent(), [Frame(h2.SETTINGS, h2.ACK, 0, b"")])
        self.assertTrue(self.connection.is_open)
        self.receive(h2.settings(flags=h2.ACK))
        self.assertEqual(self.sent(), [])

    def test_max_streams(self) -> None:
        """No more streams are open than the server permits, and than the client wants."""
        self.start(h2.settings((h2.MAX_CONCURRENT_STREAMS, 2)))
        self.send()
        self.assertTrue(self.connection.is_open)
        self.send()
        self.assertFalse(self.connection.is_open)
        self.receive(h2.headers(1, OK))
        self.assertTrue(self.connection.is_open)
        self.receive(h2.settings((h2.MAX_CONCURRENT_STREAMS, 0)))
        self.assertFalse(self.connection.is_open)
        self.start(h2.settings((h2.MAX_CONCURRENT_STREAMS, 100_000)))
        for _ in range(MAX_STREAMS):
            self.send()
        self.assertFalse(self.connection.is_open)

    def test_initial_window(self) -> None:
        """A changed initial window applies to open streams."""
        self.start(h2.settings((h2.INITIAL_WINDOW_SIZE, 10)))
        self.send(b"POST", b"x" * 15)
        self.assertEqual([len(frame.payload) for frame in self.sent() if frame.type == h2.DATA], [10])
        self.receive(h2.settings((h2.INITIAL_WINDOW_SIZE, 12)))
        acknowledgement, data = self.sent()
        self.assertEqual((acknowledgement.flags, len(data.payload)), (h2.ACK, 2))
        self.receive(h2.window_update(1, 3))
        (data,) = self.sent()
        self.assertTrue(data.has(h2.END_STREAM))

    def test_no_table(self) -> None:
        """The first block announces that no table is used."""
        self.send()
        self.send()
        first, second = self.sent()
        self.assertEqual((first.payload[:1], second.payload[:1]), (h2.table_size(0), b"\x01"))

    def test_invalid_request(self) -> None:
        """A request that cannot be sent leaves the connection usable."""
        pending = self.send(a="b\nc")
        self.assertEqual(str(self.failureResultOf(pending, Unreachable).value), "net/http: invalid header field value")
        self.assertEqual((self.sent(), self.pool.events), ([], ["made", "released"]))
        self.assertEqual(self.answered(h2.headers(1, OK)).code, 200)


class EndTests(Http2Case):
    """Ends of streams and connections."""

    def test_reset(self) -> None:
        """A reset by the server fails the request with Go's text."""
        self.assertEqual(
            self.refused(h2.reset(1, h2.INTERNAL_ERROR)),
            "stream error: stream ID 1; INTERNAL_ERROR; received from peer",
        )
        self.assertEqual(
            self.refused(h2.reset(3, 99)), "stream error: stream ID 3; unknown error code 0x63; received from peer"
        )
        response = self.answered(h2.headers(5, OK, end_stream=False))
        sink = self.read(response)
        self.receive(h2.reset(5, h2.NO_ERROR))
        self.failureResultOf(sink.done, Unreachable)  # type: ignore[attr-defined]
        self.receive(h2.reset(5))
        self.assertTrue(self.connection.is_open)

    def test_refused(self) -> None:
        """A refused stream was not processed; the connection gets no further ones."""
        first, second = self.send(), self.send()
        self.receive(h2.reset(3, h2.REFUSED_STREAM))
        self.failureResultOf(second, UnprocessedRequest)
        self.assertFalse(self.connection.is_open)
        self.assertFalse(self.transport.disconnecting)
        self.receive(h2.headers(1, OK))
        self.assertEqual(self.successResultOf(first).code, 200)
        self.assertTrue(self.transport.disconnecting)

    def test_goaway(self) -> None:
        """After GOAWAY, streams that the server processes finish, and later ones are unprocessed."""
        first, second = self.send(), self.send()
        self.receive(h2.goaway(1))
        self.failureResultOf(second, UnprocessedRequest)
        self.assertFalse(self.connection.is_open)
        self.receive(h2.goaway(1, h2.NO_ERROR), h2.headers(1, OK))
        self.assertEqual(self.successResultOf(first).code, 200)
        self.assertTrue(self.transport.disconnecting)
        self.assertEqual(self.pool.events, ["made"])

    def test_goaway_when_idle(self) -> None:
        """GOAWAY without open streams closes the connection; if the server does not read, it is aborted."""
        self.receive(h2.goaway(0))
        self.assertTrue(self.transport.disconnecting)
        self.assertFalse(self.transport.aborted)
        self.clock.advance(LINGER_TIMEOUT)
        self.assertTrue(self.transport.aborted)

    def test_goaway_and_closed(self) -> None:
        """A connection that is closed after GOAWAY fails its streams with Go's text."""
        pending = self.send()
        self.receive(h2.goaway(1, h2.ENHANCE_YOUR_CALM, b'no "more"'))
        self.lose()
        self.assertEqual(
            str(self.failureResultOf(pending, Unreachable).value),
            "http2: server sent GOAWAY and closed the connection; LastStreamID=1, ErrCode=ENHANCE_YOUR_CALM,"
            ' debug="no \\"more\\""',
        )

    def test_lost(self) -> None:
        """A lost connection fails all requests and responses."""
        first = self.answered(h2.headers(1, OK, end_stream=False))
        sink, second = self.read(first), self.send()
        self.receive(h2.ping())
        self.lose()
        self.assertEqual(str(self.failureResultOf(second, Unreachable).value), "unexpected EOF")
        self.failureResultOf(sink.done, Unreachable)  # type: ignore[attr-defined]
        self.assertEqual(self.pool.events, ["made", "lost"])
        self.assertFalse(self.connection.is_open)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_stale(self) -> None:
        """A request is stale if nothing has arrived since it was sent on a connection that was used before."""
        self.answered(h2.headers(1, OK))
        pending = self.send()
        self.lose(ConnectionLost())
        error = self.failureResultOf(pending, StaleConnection).value
        self.assertIn("connection reset by peer", str(error))
        self.assertTrue(error.retriable)
        self.start(h2.settings())
        pending = self.send()
        self.lose()
        self.assertNotIsInstance(self.failureResultOf(pending, Unreachable).value, StaleConnection)

    def test_lost_before_settings(self) -> None:
        """A connection that is lost before the settings fails its opening."""
        self.start()
        self.lose()
        self.assertTrue(self.ready.called)
        self.assertFalse(self.connection.is_open)

    def test_many_resets(self) -> None:
        """
        SECURITY: a connection with many resets opens no further streams, so that a client that cancels requests cannot
        make the server close a shared connection.
        """
        kept = self.send()
        for _ in range(MAX_RESETS):
            self.assertTrue(self.connection.is_open)
            pending = self.send()
            pending.addErrback(lambda _: None)
            pending.cancel()
        self.assertFalse(self.connection.is_open)
        self.receive(h2.headers(1, OK))
        self.assertEqual(self.successResultOf(kept).code, 200)
        self.assertTrue(self.transport.disconnecting)


class HealthTests(Http2Case):
    """Probes of silent servers."""

    def test_answered(self) -> None:
        """A silent server is probed; its answer keeps the connection."""
        self.send()
        self.sent()
        for _ in range(3):
            self.clock.advance(READ_IDLE_TIMEOUT)
            (probe,) = self.sent()
            self.assertEqual((probe.type, probe.flags), (h2.PING, 0))
            self.receive(h2.ping(probe.payload, h2.ACK))
            self.clock.advance(PING_TIMEOUT)
            self.clock.advance(READ_IDLE_TIMEOUT - PING_TIMEOUT - 1)
            self.assertEqual(self.sent(), [])
            self.assertFalse(self.transport.aborted)
            self.receive(h2.ping(flags=h2.ACK))

    def test_dead(self) -> None:
        """A server that does not answer is given up, with Go's text."""
        pending = self.send()
        self.clock.advance(READ_IDLE_TIMEOUT)
        self.clock.advance(PING_TIMEOUT)
        self.assertTrue(self.transport.aborted)
        self.lose()
        self.assertEqual(str(self.failureResultOf(pending, Unreachable).value), "http2: client connection lost")

    def test_ping(self) -> None:
        """Probes of the server are answered."""
        self.receive(h2.ping(b"12345678"))
        self.assertEqual(self.sent(), [Frame(h2.PING, h2.ACK, 0, b"12345678")])


class HostileTests(Http2Case):
    """SECURITY: servers that break rules, or send what costs much."""

    def fails(self, code: int, *frames: bytes) -> None:
        """Check that frames end the connection, and fail its request."""
        self.start(h2.settings())
        pending = self.send()
        self.sent()
        self.receive(*frames)
        self.assertEqual(self.goaway_code(), code)
        failure = self.failureResultOf(pending, Unreachable)
        self.assertTrue(str(failure.value).startswith("connection error: "), failure.value)
        self.assertFalse(self.connection.is_open)
        self.receive(h2.headers(1, OK))
        self.lose()
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_rules(self) -> None:
        """Violations that concern the connection end it."""
        long = h2.headers(1, [*OK, (b"a", b"x" * 16000)], end_headers=False)
        for code, frames in (
            (h2.PROTOCOL_ERROR, h2.frame(h2.PUSH_PROMISE, h2.END_HEADERS, 1, b"\0\0\0\2\x88")),
            (h2.PROTOCOL_ERROR, h2.settings((h2.ENABLE_PUSH, 1))),
            (h2.PROTOCOL_ERROR, h2.headers(2, OK)),
            (h2.PROTOCOL_ERROR, h2.headers(3, OK)),
            (h2.PROTOCOL_ERROR, h2.data(3, b"x")),
            (h2.PROTOCOL_ERROR, h2.reset(3)),
            (h2.PROTOCOL_ERROR, h2.window_update(5, 1)),
            (h2.PROTOCOL_ERROR, h2.window_update(0, 0)),
            (h2.PROTOCOL_ERROR, h2.headers(1, OK, end_headers=False) + h2.ping()),
            (h2.PROTOCOL_ERROR, h2.continuation(1, b"\x88")),
            (h2.PROTOCOL_ERROR, h2.goaway(1) + h2.goaway(3)),
            (h2.FLOW_CONTROL_ERROR, h2.window_update(0, h2.MAX_WINDOW)),
            (h2.FLOW_CONTROL_ERROR, h2.settings((h2.INITIAL_WINDOW_SIZE, 2**31))),
            (h2.FRAME_SIZE_ERROR, h2.frame_head(16385, h2.DATA, 0, 1)),
            (h2.FRAME_SIZE_ERROR, h2.frame(h2.SETTINGS, 0, 0, b"12345")),
            (h2.COMPRESSION_ERROR, h2.headers(1, b"\x00\x7f")),
            (h2.ENHANCE_YOUR_CALM, long + h2.continuation(1, b"", end_headers=False) * 40),
        ):
            self.fails(code, frames)

    def test_stream_window_overflow(self) -> None:
        """A window of a stream that is too large, or that grows by nothing, resets the stream."""
        for update in (h2.window_update(1, h2.MAX_WINDOW), h2.window_update(1, 0)):
            self.start(h2.settings())
            self.assertIn("stream error: stream ID 1; ", self.refused(update))
            self.assertTrue(self.connection.is_open)

    def test_first_frame(self) -> None:
        """The first frame is SETTINGS."""
        for frames in (h2.ping(), h2.settings(flags=h2.ACK), h2.headers(1, OK), b"HTTP/1.1 400 Bad Request\r\n\r\n"):
            self.start(frames)
            self.assertFalse(self.connection.is_open)
            self.assertTrue(self.transport.disconnecting)

    def test_floods(self) -> None:
        """Floods of frames that cost the client more than the server end the connection."""
        count = MAX_CONTROL_FRAMES + 10
        for frames in (
            h2.ping(),
            h2.settings(),
            h2.settings((h2.INITIAL_WINDOW_SIZE, 1)) + h2.settings((h2.INITIAL_WINDOW_SIZE, 2)),
            h2.window_update(0, 1),
            h2.window_update(1, 1),
            h2.priority(1),
            h2.frame(99),
            h2.goaway(1),
        ):
            self.fails(h2.ENHANCE_YOUR_CALM, frames * count)

    def test_empty_data(self) -> None:
        """A flood of empty DATA ends the connection, on open streams and on closed ones."""
        for end in (False, True):
            self.start(h2.settings())
            self.answered(h2.headers(1, OK, end_stream=end))
            self.sent()
            self.receive(h2.data(1) * (MAX_CONTROL_FRAMES + 10))
            self.assertEqual(self.goaway_code(), h2.ENHANCE_YOUR_CALM)

    def test_heads_on_closed_streams(self) -> None:
        """A flood of heads on closed streams ends the connection."""
        self.answered(h2.headers(1, OK))
        self.sent()
        self.receive(h2.headers(1, OK) * (MAX_CONTROL_FRAMES + 10))
        self.assertEqual(self.goaway_code(), h2.ENHANCE_YOUR_CALM)

    def test_data_on_closed_streams(self) -> None:
        """Data on a stream that has ended end the connection; so do more than the window on a reset one."""
        self.answered(h2.headers(1, OK))
        self.sent()
        self.receive(h2.data(1, b"x"))
        self.assertEqual(self.goaway_code(), h2.STREAM_CLOSED)
        self.start(h2.settings())
        self.answered(h2.headers(1, OK, end_stream=False), h2.data(1, b"x" * 100)).abort()
        self.sent()
        piece = h2.data(1, b"x" * 16384)
        self.receive(piece * (STREAM_WINDOW // 16384 - 1), h2.data(1, b"x" * (16384 - 100)))
        self.assertEqual([frame.type for frame in self.sent()], [])
        self.receive(h2.data(1, b"x"))
        self.assertEqual(self.goaway_code(), h2.STREAM_CLOSED)

    def test_hpack_bomb(self) -> None:
        """A block that grows beyond the limit when it is decoded ends the connection."""
        bomb = h2.literal(b"a", b"x" * 4000, 0x40) + h2.indexed(62) * 100
        self.fails(h2.ENHANCE_YOUR_CALM, h2.headers(1, h2.indexed(8) + bomb))

    def test_large_head(self) -> None:
        """A header list over the limit resets its stream."""
        half = h2.literal(b"a", b"x" * 4000, 0x40) + h2.indexed(62) * 40
        self.assertIn("response header list larger than advertised limit", self.refused(h2.headers(1, b"\x88" + half)))
        self.assertTrue(self.connection.is_open)

    def test_connection_window(self) -> None:
        """The window of the connection is returned as data arrive, read or not."""
        for stream in range(1, 41, 2):
            self.answered(h2.headers(stream, OK, end_stream=False))
        self.sent()
        piece = b"x" * 16384
        for _ in range(STREAM_WINDOW // 16384):
            for stream in range(1, 41, 2):
                self.receive(h2.data(stream, piece))
        updates = [frame for frame in self.sent() if frame.type == h2.WINDOW_UPDATE]
        self.assertEqual({frame.stream for frame in updates}, {0})
        returned = sum(int.from_bytes(frame.payload, "big") for frame in updates)
        self.assertLess(20 * STREAM_WINDOW - returned, CONNECTION_WINDOW // 2 + 1)

    def test_data_are_no_flood(self) -> None:
        """A server that sends a probe with each piece of data is served."""
        response = self.answered(h2.headers(1, OK, end_stream=False))
        sink = self.read(response)
        for _ in range(MAX_CONTROL_FRAMES + 1000):
            self.receive(h2.data(1, b"x"), h2.ping())
        self.assertEqual(len(sink.data), MAX_CONTROL_FRAMES + 1000)
        self.assertTrue(self.connection.is_open)
