"""Tests of L{kubetwist.client.http2.stream}."""

from __future__ import annotations

from twisted.internet.defer import CancelledError
from twisted.internet.error import ConnectionDone

from kubetwist.client.errors import Unreachable
from kubetwist.client.http2.stream import STREAM_WINDOW
from tests.client.http2.http2case import OK, Http2Case, Source
from tests.http.http2 import frames as h2
from tests.http.http2.frames import Frame

CANCELLED = h2.CANCEL.to_bytes(4, "big")


class ResponseTests(Http2Case):
    """Responses."""

    def test_whole(self) -> None:
        """A body that arrives with the head is complete when the response is passed on."""
        response = self.answered(
            h2.headers(1, [*OK, (b"a", b"b")], end_stream=False), h2.data(1, b"ok", end_stream=True)
        )
        self.assertEqual((response.code, response.field(b"a"), response.length), (200, b"b", -1))
        self.assertEqual(response.buffered_body(), b"ok")
        self.assertEqual(self.pool.events, ["made", "released"])

    def test_pieces(self) -> None:
        """A body is passed on as it arrives."""
        response = self.answered(h2.headers(1, [*OK, (b"content-length", b"4")], end_stream=False))
        self.assertEqual(response.length, 4)
        sink = self.read(response)
        for piece in (b"a", b"bc"):
            self.receive(h2.data(1, piece, padding=3))
        self.assertEqual(sink.data, b"abc")
        self.receive(h2.data(1, b"d", end_stream=True))
        self.assertEqual(sink.data, b"abcd")
        self.assertIsNone(self.successResultOf(sink.done))  # type: ignore[attr-defined]
        self.assertFalse(self.connection.streams)

    def test_small_pieces(self) -> None:
        """SECURITY: many small frames that arrive together are passed on together."""
        response = self.answered(h2.headers(1, OK, end_stream=False))
        sink, writes = self.read(response), []
        self.patch(sink, "write", writes.append)
        self.receive(h2.data(1, b"x") * 5000)
        self.receive(h2.data(1, b"y") * 2, h2.data(1, end_stream=True))
        self.assertEqual(writes, [b"x" * 5000, b"yy"])

    def test_discarded_in_a_piece(self) -> None:
        """A consumer may discard a response with its last piece."""
        response = self.answered(h2.headers(1, OK, end_stream=False))
        sink = self.read(response)
        self.patch(sink, "write", lambda data: sink.producer.stopProducing())
        self.receive(h2.data(1, b"x"), h2.data(1, b"y", end_stream=True))
        self.failureResultOf(sink.done, ConnectionDone)  # type: ignore[attr-defined]
        self.assertTrue(self.connection.is_open)
        self.assertFalse(self.connection.streams)

    def test_data_before_a_failure(self) -> None:
        """Data that arrive together with the failure of their stream are passed on."""
        response = self.answered(h2.headers(1, OK, end_stream=False))
        sink = self.read(response)
        self.receive(h2.data(1, b"x"), h2.reset(1))
        self.failureResultOf(sink.done, Unreachable)  # type: ignore[attr-defined]
        self.assertEqual(sink.data, b"x")

    def test_without_body(self) -> None:
        """Responses may end with their head, or with an empty frame; HEAD and 304 have a length without a body."""
        for stream, (method, fields) in enumerate(
            (
                (b"GET", OK),
                (b"HEAD", [*OK, (b"content-length", b"5")]),
                (b"GET", [(b":status", b"304"), (b"content-length", b"5")]),
                (b"GET", [(b":status", b"204")]),
            )
        ):
            response = self.answered(h2.headers(4 * stream + 1, fields), method=method)
            self.assertEqual((response.length, response.buffered_body()), (0, b""))
            response = self.answered(
                h2.headers(4 * stream + 3, fields, end_stream=False),
                h2.data(4 * stream + 3, end_stream=True),
                method=method,
            )
            self.assertEqual(response.buffered_body(), b"")

    def test_interim(self) -> None:
        """Interim responses are skipped, up to a limit."""
        interim = h2.headers(1, [(b":status", b"103"), (b"link", b"x")], end_stream=False)
        self.assertEqual(self.answered(interim * 5, h2.headers(1, OK)).code, 200)
        self.start(h2.settings())
        self.assertIn("too many 1xx informational responses", self.refused(interim * 6))

    def test_malformed(self) -> None:
        """A malformed response resets its stream, and the connection remains usable."""
        cases = (
            (h2.headers(1, [(b":status", b"101")], end_stream=False), "invalid 1xx informational response"),
            (h2.headers(1, [(b":status", b"100")]), "invalid 1xx informational response"),
            (h2.headers(1, []), "missing status pseudo header"),
            (h2.headers(1, [*OK, (b"content-length", b"x")]), "bad Content-Length"),
            (h2.headers(1, [*OK, (b"content-length", b"1"), (b"content-length", b"2")]), "bad Content-Length"),
            (h2.headers(1, [*OK, (b"connection", b"close")]), "belongs to HTTP/1.1"),
            (
                h2.data(1),
                "before a HEADERS frame",
            ),
        )
        for frames, text in cases:
            self.start(h2.settings())
            error = self.refused(frames)
            self.assertIn(text, error)
            self.assertTrue(error.startswith("stream error: stream ID 1; PROTOCOL_ERROR; "), error)
            (reset,) = self.sent()[1:]
            self.assertEqual((reset.type, reset.payload), (h2.RST_STREAM, h2.PROTOCOL_ERROR.to_bytes(4, "big")))
            self.assertTrue(self.connection.is_open)

    def test_length_contradicted(self) -> None:
        """SECURITY: a body that is shorter or longer than announced is an error; so is a body where none may be."""
        for method, length, frames in (
            (b"GET", b"3", [h2.data(1, b"ab", end_stream=True)]),
            (b"GET", b"3", [h2.headers(1, [(b"trailer", b"x")])]),
            (b"GET", b"3", [h2.data(1, b"abcd")]),
            (b"HEAD", b"3", [h2.data(1, b"abc", end_stream=True)]),
        ):
            self.start(h2.settings())
            response = self.answered(h2.headers(1, [*OK, (b"content-length", length)], end_stream=False), method=method)
            sink = self.read(response)
            self.receive(*frames)
            failure = self.failureResultOf(sink.done, Unreachable)  # type: ignore[attr-defined]
            self.assertIn("declared Content-Length", str(failure.value))

    def test_trailers(self) -> None:
        """Trailers end a response, and are not passed on; a further head is an error."""
        response = self.answered(
            h2.headers(1, OK, end_stream=False), h2.data(1, b"a"), h2.headers(1, [(b"trailer", b"x")])
        )
        self.assertEqual((response.buffered_body(), response.fields), (b"a", []))
        response = self.answered(h2.headers(3, OK, end_stream=False))
        sink = self.read(response)
        self.receive(h2.headers(3, OK, end_stream=False))
        self.failureResultOf(sink.done, Unreachable)  # type: ignore[attr-defined]

    def test_window(self) -> None:
        """An unread body is bounded by the window, and does not hold back other streams; reading continues it."""
        slow = self.answered(h2.headers(1, OK, end_stream=False))
        for _ in range(STREAM_WINDOW // 16384):
            self.receive(h2.data(1, b"x" * 16384))
        self.assertEqual([frame for frame in self.sent() if frame.type == h2.WINDOW_UPDATE and frame.stream], [])
        quick = self.answered(h2.headers(3, OK, end_stream=False), h2.data(3, b"ok", end_stream=True))
        self.assertEqual(quick.buffered_body(), b"ok")
        sink = self.read(slow)
        self.assertEqual(len(sink.data), STREAM_WINDOW)
        (update,) = [frame for frame in self.sent() if frame.type == h2.WINDOW_UPDATE]
        self.assertEqual((update.stream, int.from_bytes(update.payload, "big")), (1, STREAM_WINDOW))
        sink.producer.pauseProducing()
        for _ in range(STREAM_WINDOW // 16384):
            self.receive(h2.data(1, b"x" * 16384))
        self.assertEqual([frame for frame in self.sent() if frame.stream], [])
        sink.producer.resumeProducing()
        self.assertEqual([frame.stream for frame in self.sent()], [1])

    def test_window_ignored(self) -> None:
        """SECURITY: more data than the window, padding included, resets the stream."""
        response = self.answered(h2.headers(1, OK, end_stream=False))
        for _ in range(STREAM_WINDOW // 16384):
            self.receive(h2.data(1, b"x" * 16383, padding=0))
        self.sent()
        self.receive(h2.data(1, b"x"))
        (reset,) = self.sent()
        self.assertEqual((reset.type, reset.payload), (h2.RST_STREAM, h2.FLOW_CONTROL_ERROR.to_bytes(4, "big")))
        self.failureResultOf(self.read(response).done, Unreachable)  # type: ignore[attr-defined]

    def test_abort(self) -> None:
        """Discarding a response resets its stream; the connection remains, and late data are ignored."""
        for stream in (1, 3, 5):
            response = self.answered(h2.headers(stream, OK, end_stream=False), h2.data(stream, b"x"))
            self.sent()
            if stream == 1:
                response.abort()
            elif stream == 3:
                sink = self.read(response)
                sink.producer.stopProducing()
                self.failureResultOf(sink.done, ConnectionDone)  # type: ignore[attr-defined]
            else:
                sink = self.read(response)
                sink.done.cancel()  # type: ignore[attr-defined]
                self.failureResultOf(sink.done, ConnectionDone)  # type: ignore[attr-defined]
            self.assertEqual(self.sent(), [Frame(h2.RST_STREAM, 0, stream, CANCELLED)])
            self.receive(h2.data(stream, b"late"), h2.headers(stream, [(b"trailer", b"x")]))
            self.assertEqual(self.sent(), [])
            response.abort()
        self.assertEqual(self.sent(), [])
        self.assertTrue(self.connection.is_open)
        self.assertFalse(self.connection.streams)

    def test_cancel(self) -> None:
        """A cancelled request resets its stream."""
        pending = self.send()
        self.sent()
        pending.cancel()
        self.failureResultOf(pending, CancelledError)
        self.assertEqual(self.sent(), [Frame(h2.RST_STREAM, 0, 1, CANCELLED)])

    def test_timeout(self) -> None:
        """The head must arrive in time; then the time limit ends."""
        pending = self.send(timeout=5)
        self.clock.advance(5)
        failure = self.failureResultOf(pending, Unreachable)
        self.assertEqual(str(failure.value), "http2: timeout awaiting response headers")
        self.assertEqual(self.sent()[1], Frame(h2.RST_STREAM, 0, 1, CANCELLED))
        pending = self.send(timeout=5)
        self.receive(h2.headers(3, OK, end_stream=False))
        sink = self.read(self.successResultOf(pending))
        self.clock.advance(6)
        self.assertNoResult(sink.done)  # type: ignore[attr-defined]

    def test_never_switched(self) -> None:
        """A stream cannot be taken over."""
        response = self.answered(h2.headers(1, OK, end_stream=False))
        self.assertFalse(response.switched)
        self.assertRaises(RuntimeError, response.hijack, None)


class UploadTests(Http2Case):
    """Request bodies."""

    def test_bytes(self) -> None:
        """A body in memory is sent with its length, as far as the window allows."""
        body = b"x" * 100_000
        pending = self.send(b"POST", body)
        head, *rest = self.sent()
        self.assertEqual(self.head(head)["content-length"], "100000")
        self.assertFalse(head.has(h2.END_STREAM))
        self.assertEqual(sum(len(frame.payload) for frame in rest), h2.DEFAULT_WINDOW)
        self.receive(h2.window_update(0, 100_000), h2.window_update(1, 100_000))
        rest += self.sent()
        self.assertEqual(b"".join(frame.payload for frame in rest), body)
        self.assertTrue(rest[-1].has(h2.END_STREAM))
        self.receive(h2.headers(1, OK))
        self.assertEqual(self.successResultOf(pending).code, 200)

    def test_empty(self) -> None:
        """A request without a body ends with its head; one that usually has a body has its length."""
        for method, length in ((b"GET", None), (b"POST", "0"), (b"DELETE", None)):
            self.send(method, b"")
            (head,) = self.sent()
            self.assertTrue(head.has(h2.END_STREAM))
            self.assertEqual(self.head(head).get("content-length"), length)

    def test_streamed(self) -> None:
        """SECURITY: a streamed body waits for the server's window: its source is paused, and nothing piles up."""
        source = Source(None)
        self.send(b"POST", source.upload)
        (head,) = self.sent()
        self.assertNotIn("content-length", self.head(head))
        source.consumer.write(b"x" * 60_000)
        self.assertFalse(source.paused)
        source.consumer.write(b"y" * 10_000)
        self.assertTrue(source.paused)
        self.assertEqual(sum(len(frame.payload) for frame in self.sent()), h2.DEFAULT_WINDOW)
        self.receive(h2.window_update(0, 100_000), h2.window_update(1, 100_000))
        self.assertFalse(source.paused)
        self.assertEqual(sum(len(frame.payload) for frame in self.sent()), 70_000 - h2.DEFAULT_WINDOW)
        source.finish()
        (end,) = self.sent()
        self.assertEqual(end, Frame(h2.DATA, h2.END_STREAM, 1, b""))

    def test_transport_full(self) -> None:
        """A source is paused while the transport accepts no data."""
        source = Source(None)
        self.send(b"POST", source.upload)
        self.connection.pauseProducing()
        source.consumer.write(b"x")
        self.assertTrue(source.paused)
        self.connection.resumeProducing()
        self.assertFalse(source.paused)

    def test_known_length(self) -> None:
        """A streamed body has the announced length; surplus data are not sent, and missing ones fail the request."""
        source = Source(3)
        self.send(b"PUT", source.upload)
        self.assertEqual(self.head(self.sent()[0])["content-length"], "3")
        source.consumer.write(b"abcd")
        source.consumer.write(b"e")
        source.finish()
        self.assertEqual(b"".join(frame.payload for frame in self.sent()), b"abc")
        source = Source(3)
        pending = self.send(b"PUT", source.upload)
        source.finish()
        failure = self.failureResultOf(pending, Unreachable)
        self.assertEqual(str(failure.value), "http: ContentLength does not match the length of the body")
        self.assertEqual(self.sent()[-1].type, h2.RST_STREAM)

    def test_source_lost(self) -> None:
        """A body that breaks off resets the stream, and fails the request."""
        source = Source(None)
        pending = self.send(b"PUT", source.upload)
        source.done.errback(ConnectionDone())
        self.failureResultOf(pending, Unreachable)
        self.assertEqual(self.sent()[-1], Frame(h2.RST_STREAM, 0, 1, CANCELLED))

    def test_answered_early(self) -> None:
        """A server that answers before the end of the body gets no more of it."""
        source = Source(None)
        pending = self.send(b"PUT", source.upload)
        self.sent()
        self.receive(h2.headers(1, [(b":status", b"413")]))
        self.assertEqual(self.successResultOf(pending).code, 413)
        self.assertTrue(source.cancelled)
        self.assertEqual(self.sent(), [Frame(h2.RST_STREAM, 0, 1, CANCELLED)])
        source.consumer.write(b"more")
        self.assertEqual(self.sent(), [])
        self.assertTrue(self.connection.is_open)
