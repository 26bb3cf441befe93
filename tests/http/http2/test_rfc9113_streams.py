"""Conformance with RFC 9113, section 5: states of streams, their numbers, concurrency, and errors."""

from __future__ import annotations

from . import frames as h2
from .client import Client, Http2Case, get

WAIT = get(b"/wait")


class StateTests(Http2Case):
    """Section 5.1: states of streams."""

    def finish(self, client: Client, number: int) -> None:
        """Complete a request and its response."""
        client.send(h2.headers(number))
        self.assertTrue(client.stream(number).ended)

    def test_idle(self) -> None:
        """5.1: On an idle stream, frames except HEADERS and PRIORITY are connection errors."""
        for sent in (h2.data(1, b"x", end_stream=True), h2.reset(1), h2.window_update(1, 100), h2.continuation(1, b"")):
            client = self.connect()
            client.send(sent)
            self.assert_connection_error(client, h2.PROTOCOL_ERROR)

    def test_idle_priority(self) -> None:
        """5.1: PRIORITY is allowed on an idle stream, and does not open it."""
        client = self.connect()
        client.send(h2.priority(9, 1), h2.headers(1))
        self.assertEqual(client.stream(1).status, 200)
        self.assert_usable(client)

    def test_half_closed_data(self) -> None:
        """5.1, half-closed (remote): DATA after END_STREAM is a stream error."""
        client = self.connect()
        client.send(h2.headers(1, WAIT), h2.data(1, b"late", end_stream=True))
        self.assert_stream_error(client, 1, h2.STREAM_CLOSED)

    def test_half_closed_headers(self) -> None:
        """5.1, half-closed (remote): HEADERS after END_STREAM are an error, and no second request."""
        client = self.connect()
        client.send(h2.headers(1, WAIT), h2.headers(1, WAIT))
        self.assert_error(client, 1, h2.STREAM_CLOSED)
        self.assertEqual(len(self.served), 1)

    def test_half_closed_continuation(self) -> None:
        """5.1, half-closed (remote): CONTINUATION after END_HEADERS is a connection error."""
        client = self.connect()
        client.send(h2.headers(1, WAIT), h2.continuation(1, h2.block([(b"a", b"b")])))
        self.assert_connection_error(client, h2.PROTOCOL_ERROR, h2.STREAM_CLOSED)

    def test_half_closed_allowed(self) -> None:
        """5.1, half-closed (remote): WINDOW_UPDATE and PRIORITY are allowed, and RST_STREAM ends the request."""
        client = self.connect()
        client.send(h2.headers(1, WAIT), h2.window_update(1, 5), h2.priority(1, 3), h2.reset(1))
        self.assertTrue(self.waiting[0].disconnected)
        self.assert_usable(client)

    def test_reset_then_data(self) -> None:
        """5.1, closed: DATA after the client's RST_STREAM is an error."""
        client = self.connect()
        client.send(h2.headers(1, h2.POST, end_stream=False), h2.reset(1), h2.data(1, b"x", end_stream=True))
        self.assert_error(client, 1, h2.STREAM_CLOSED)
        self.assertEqual(self.served, [])

    def test_reset_then_headers(self) -> None:
        """5.1, closed: HEADERS after the client's RST_STREAM are an error."""
        client = self.connect()
        client.send(h2.headers(1, get(b"/wait", method=b"POST"), end_stream=False), h2.reset(1), h2.headers(1))
        self.assert_error(client, 1, h2.STREAM_CLOSED, h2.PROTOCOL_ERROR)
        self.assertEqual([one for one in self.served if one[0] == b"GET"], [])

    def test_reset_then_continuation(self) -> None:
        """5.1, closed: CONTINUATION after the client's RST_STREAM is a connection error."""
        client = self.connect()
        client.send(h2.headers(1, WAIT), h2.reset(1), h2.continuation(1, b""))
        self.assert_connection_error(client, h2.PROTOCOL_ERROR, h2.STREAM_CLOSED)

    def test_closed_data(self) -> None:
        """5.1, closed: DATA on a stream that both sides have ended is an error."""
        client = self.connect()
        self.finish(client, 1)
        client.send(h2.data(1, b"x", end_stream=True))
        self.assert_error(client, 1, h2.STREAM_CLOSED)

    def test_closed_headers(self) -> None:
        """5.1, closed: HEADERS on a stream that both sides have ended are an error, and no second request."""
        client = self.connect()
        self.finish(client, 1)
        client.send(h2.headers(1))
        self.assert_error(client, 1, h2.STREAM_CLOSED, h2.PROTOCOL_ERROR)
        self.assertEqual(len(self.served), 1)

    def test_closed_continuation(self) -> None:
        """5.1, closed: CONTINUATION on a closed stream is a connection error."""
        client = self.connect()
        self.finish(client, 1)
        client.send(h2.continuation(1, b""))
        self.assert_connection_error(client, h2.STREAM_CLOSED, h2.PROTOCOL_ERROR)

    def test_closed_allowed(self) -> None:
        """5.1, closed: PRIORITY, WINDOW_UPDATE and RST_STREAM on a closed stream are ignored."""
        client = self.connect()
        self.finish(client, 1)
        client.send(h2.priority(1), h2.window_update(1, 1), h2.reset(1))
        self.assert_usable(client)

    def test_frames_after_server_reset(self) -> None:
        """5.1, closed: Frames that the client has sent before it received RST_STREAM are ignored."""
        client = self.connect()
        bad = h2.headers(1, [*h2.POST, (b"Upper", b"x")], end_stream=False)
        client.send(bad + h2.data(1, b"body") + h2.window_update(1, 5) + h2.headers(1, [(b"trailer", b"x")]))
        self.assert_malformed(client, 1)


class NumberTests(Http2Case):
    """Section 5.1.1: stream identifiers."""

    def test_even(self) -> None:
        """5.1.1: A client's stream has an odd number."""
        client = self.connect()
        client.send(h2.headers(2))
        self.assert_connection_error(client, h2.PROTOCOL_ERROR)

    def test_smaller(self) -> None:
        """5.1.1: A new stream has a greater number than all streams before it."""
        client = self.connect()
        client.send(h2.headers(5), h2.headers(3))
        self.assert_connection_error(client, h2.PROTOCOL_ERROR, h2.STREAM_CLOSED)
        self.assertEqual(len(self.served), 1)

    def test_skipped(self) -> None:
        """5.1.1: A client may skip numbers; the skipped streams are closed."""
        client = self.connect()
        client.send(h2.headers(101))
        self.assertEqual(client.stream(101).status, 200)
        client.send(h2.data(7, b"x"))
        self.assert_error(client, 7, h2.STREAM_CLOSED, h2.PROTOCOL_ERROR)

    def test_zero(self) -> None:
        """5.1.1: Stream 0 carries no request."""
        client = self.connect()
        client.send(h2.headers(0))
        self.assert_connection_error(client, h2.PROTOCOL_ERROR)

    def test_last(self) -> None:
        """5.1.1: The greatest stream number is served."""
        client = self.connect()
        client.send(h2.headers(h2.MAX_WINDOW))
        self.assertEqual(client.stream(h2.MAX_WINDOW).status, 200)
        self.assertTrue(client.alive)


class ConcurrencyTests(Http2Case):
    """Section 5.1.2: concurrent streams."""

    def fill(self, client: Client) -> int:
        """Open as many streams as the server allows, and return their number."""
        limit = client.server_settings[h2.MAX_CONCURRENT_STREAMS]
        client.send(*(h2.headers(client.next_stream(), WAIT) for _ in range(limit)))
        self.assertEqual(len(self.waiting), limit)
        return limit

    def test_limit(self) -> None:
        """5.1.2: The server announces a limit of at least 100 streams, and refuses further ones."""
        client = self.connect()
        self.assertGreaterEqual(self.fill(client), 100)
        stream = client.request(WAIT)
        self.assertIn(stream.code, (h2.REFUSED_STREAM, h2.PROTOCOL_ERROR))
        self.assertFalse(client.closed)

    def test_room(self) -> None:
        """5.1.2: A stream that ends makes room for another one."""
        client = self.connect()
        limit = self.fill(client)
        client.request(WAIT)
        self.answer(0)
        client.request(WAIT)
        self.assertEqual(len(self.waiting), limit + 1)

    def test_refused_body(self) -> None:
        """5.1.2: The body of a refused stream is ignored, and its bytes return to the connection's window."""
        client = self.connect()
        self.fill(client)
        for _ in range(8):
            number = client.next_stream()
            client.send(h2.headers(number, h2.POST, end_stream=False), h2.data(number, bytes(16_384)))
        self.answer(0)
        self.assert_usable(client)


class DependencyTests(Http2Case):
    """Section 5.3: priorities, which RFC 9113 has deprecated."""

    def test_own_dependency(self) -> None:
        """5.3.1 of RFC 7540: A stream that depends on itself is ignored, or a protocol error of the stream."""
        client = self.connect()
        client.send(h2.headers(1, WAIT), h2.priority(1, 1))
        self.assertIn(client.stream(1).code, (None, h2.PROTOCOL_ERROR))
        self.assertTrue(client.alive)
        block = b"\x00\x00\x00\x03\x0f" + h2.block(h2.GET)
        client.send(h2.frame(h2.HEADERS, h2.END_STREAM | h2.END_HEADERS | h2.PRIORITIZED, 3, block))
        self.assertIn(client.stream(3).code, (None, h2.PROTOCOL_ERROR))
        self.assertTrue(client.alive)

    def test_priority_of_a_request(self) -> None:
        """5.3.2: HEADERS with a priority are served."""
        client = self.connect()
        block = b"\x80\x00\x00\x00\xff" + h2.block(h2.GET)
        client.send(h2.frame(h2.HEADERS, h2.END_STREAM | h2.END_HEADERS | h2.PRIORITIZED, 1, block))
        self.assertEqual(client.stream(1).status, 200)


class ErrorTests(Http2Case):
    """Section 5.4: errors."""

    def test_last_stream(self) -> None:
        """5.4.1: GOAWAY contains the greatest stream that was served, and the connection is closed after it."""
        client = self.connect()
        client.send(h2.headers(1), h2.headers(3), h2.frame(h2.PING, 0, 0, b"seven b"))
        self.assert_connection_error(client, h2.FRAME_SIZE_ERROR)
        self.assertEqual(client.goaway, (3, h2.FRAME_SIZE_ERROR))

    def test_ignored_after_error(self) -> None:
        """5.4.1: Frames after a connection error are ignored."""
        client = self.connect()
        client.send(h2.frame(h2.PING, 0, 0, b"short") + h2.headers(1) + h2.ping())
        client.send(h2.headers(3))
        self.assert_connection_error(client, h2.FRAME_SIZE_ERROR)
        self.assertEqual(self.served, [])
        self.assertEqual(client.received(h2.PING), [])

    def test_open_requests(self) -> None:
        """5.4.1: A connection error ends the open requests."""
        client = self.connect()
        client.send(h2.headers(1, WAIT), h2.headers(3, WAIT))
        client.send(h2.frame(h2.PING, 0, 0, b"short"))
        self.clock.advance(0)
        self.assertEqual([one.disconnected for one in self.waiting], [True, True])
        self.assertEqual(self.site.open_requests, set())
        for request in self.waiting:
            request.respond(200, b"late", b"text/plain")

    def test_other_streams(self) -> None:
        """5.4.2: A stream error does not affect other streams."""
        client = self.connect()
        client.send(h2.headers(1, WAIT), h2.headers(3, WAIT), h2.window_update(1, 0))
        self.assertEqual(client.stream(1).code, h2.PROTOCOL_ERROR)
        self.assertEqual([one.disconnected for one in self.waiting], [True, False])
        self.answer(1, 200, b"still")
        self.assertEqual(bytes(client.stream(3).data), b"still")

    def test_no_reset_of_reset(self) -> None:
        """5.4.2: RST_STREAM is not answered with RST_STREAM."""
        client = self.connect()
        client.send(h2.headers(1, WAIT), h2.reset(1), h2.reset(1))
        self.assertEqual(client.received(h2.RST_STREAM), [])
        self.assert_usable(client)

    def test_extension_in_a_block(self) -> None:
        """5.5: A frame of an unknown type in a header block is a connection error."""
        client = self.connect()
        client.send(h2.headers(1, end_headers=False), h2.frame(0x16, 0, 0, b"x"))
        self.assert_connection_error(client, h2.PROTOCOL_ERROR)
