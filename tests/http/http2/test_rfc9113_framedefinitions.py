"""Conformance with RFC 9113, sections 6 and 7: the definitions of frames, and error codes."""

from __future__ import annotations

from . import frames as h2
from .client import LARGE, Http2Case, get

LARGE_GET = get(b"/large")
WAIT = get(b"/wait")


class DataTests(Http2Case):
    """Section 6.1: DATA."""

    def test_stream_zero(self) -> None:
        """6.1: DATA on stream 0 is a connection error."""
        client = self.connect()
        client.send(h2.data(0, b"x"))
        self.assert_connection_error(client, h2.PROTOCOL_ERROR)

    def test_padding(self) -> None:
        """6.1: Padding of any length is removed."""
        for padding in (0, 1, 255):
            client = self.connect()
            client.send(h2.headers(1, h2.POST, end_stream=False), h2.data(1, b"body", padding=padding))
            client.send(h2.data(1, b"", padding=padding, end_stream=True))
            self.assertEqual(bytes(client.stream(1).data), b"POST /a body")

    def test_too_much_padding(self) -> None:
        """6.1: Padding of the length of the payload or more is a connection error."""
        for payload in (b"\x05body", b"\x01", b"\xff" + bytes(254)):
            client = self.connect()
            client.send(h2.headers(1, h2.POST, end_stream=False), h2.frame(h2.DATA, h2.PADDED, 1, payload))
            self.assert_connection_error(client, h2.PROTOCOL_ERROR)
        self.assertEqual(self.served, [])

    def test_no_pad_length(self) -> None:
        """6.1: A padded frame without the length of the padding is a connection error."""
        client = self.connect()
        client.send(h2.headers(1, h2.POST, end_stream=False), h2.frame(h2.DATA, h2.PADDED, 1))
        self.assert_connection_error(client, h2.PROTOCOL_ERROR, h2.FRAME_SIZE_ERROR)


class HeadersTests(Http2Case):
    """Section 6.2: HEADERS."""

    def test_padding(self) -> None:
        """6.2: Padding of any length is removed."""
        for padding in (0, 1, 255):
            client = self.connect()
            payload = bytes((padding,)) + h2.block(h2.GET) + bytes(padding)
            client.send(h2.headers(1, payload, flags=h2.PADDED))
            self.assertEqual(bytes(client.stream(1).data), b"GET /a ")

    def test_too_much_padding(self) -> None:
        """6.2: Padding longer than the rest of the payload is a connection error."""
        for payload in (b"\x05", b"\x01", bytes((255,)) + h2.block(h2.GET)):
            client = self.connect()
            client.send(h2.headers(1, payload, flags=h2.PADDED))
            self.assert_connection_error(client, h2.PROTOCOL_ERROR)

    def test_too_short(self) -> None:
        """6.2: A payload without the parts that its flags announce is a connection error."""
        for flags, payload in (
            (h2.PADDED, b""),
            (h2.PRIORITIZED, b"\x00\x00\x00\x00"),
            (h2.PADDED | h2.PRIORITIZED, b"\x00\x00\x00\x00\x00"),
            (h2.PADDED | h2.PRIORITIZED, b"\x04\x00\x00\x00\x00\x00" + b"abc"),
        ):
            client = self.connect()
            client.send(h2.headers(1, payload, flags=flags))
            self.assert_connection_error(client, h2.PROTOCOL_ERROR, h2.FRAME_SIZE_ERROR)

    def test_padding_and_priority(self) -> None:
        """6.2: Padding and priority may be used together."""
        client = self.connect()
        payload = b"\x03" + b"\x00\x00\x00\x00\x10" + h2.block(h2.GET) + bytes(3)
        client.send(h2.headers(1, payload, flags=h2.PADDED | h2.PRIORITIZED))
        self.assertEqual(client.stream(1).status, 200)


class PriorityTests(Http2Case):
    """Section 6.3: PRIORITY."""

    def test_stream_zero(self) -> None:
        """6.3: PRIORITY on stream 0 is a connection error."""
        client = self.connect()
        client.send(h2.priority(0))
        self.assert_connection_error(client, h2.PROTOCOL_ERROR)

    def test_length(self) -> None:
        """6.3: PRIORITY with another length than 5 is an error."""
        for payload in (b"", bytes(4), bytes(6)):
            client = self.connect()
            client.send(h2.headers(1, WAIT), h2.frame(h2.PRIORITY, 0, 1, payload))
            self.assert_error(client, 1, h2.FRAME_SIZE_ERROR)


class ResetTests(Http2Case):
    """Section 6.4: RST_STREAM."""

    def test_stream_zero(self) -> None:
        """6.4: RST_STREAM on stream 0 is a connection error."""
        client = self.connect()
        client.send(h2.reset(0))
        self.assert_connection_error(client, h2.PROTOCOL_ERROR)

    def test_length(self) -> None:
        """6.4: RST_STREAM with another length than 4 is a connection error."""
        for payload in (b"", bytes(3), bytes(5)):
            client = self.connect()
            client.send(h2.headers(1, WAIT), h2.frame(h2.RST_STREAM, 0, 1, payload))
            self.assert_connection_error(client, h2.FRAME_SIZE_ERROR)

    def test_ends_request(self) -> None:
        """6.4: RST_STREAM ends the request; a late response is not sent."""
        client = self.connect()
        client.send(h2.headers(1, WAIT), h2.reset(1))
        self.assertTrue(self.waiting[0].disconnected)
        self.assertEqual(self.site.open_requests, set())
        self.answer(0, 200, b"late")
        self.assertEqual(client.stream(1).heads, [])
        self.assert_usable(client)

    def test_ends_response(self) -> None:
        """6.4: RST_STREAM in the middle of a response ends it."""
        client = self.connect()
        client.send(h2.headers(1, LARGE_GET))
        received = len(client.stream(1).data)
        self.assertEqual(received, h2.DEFAULT_WINDOW)
        client.send(h2.reset(1))
        client.send(h2.window_update(0, 1_000_000))
        self.assertEqual(len(client.stream(1).data), received)
        self.assertEqual(self.site.open_requests, set())
        self.assert_usable(client)


class SettingsTests(Http2Case):
    """Section 6.5: SETTINGS."""

    def test_acknowledged(self) -> None:
        """6.5: Each SETTINGS frame is acknowledged once, in order, and an acknowledgement is not."""
        client = self.connect()
        client.send(h2.settings(), h2.settings((h2.INITIAL_WINDOW_SIZE, 1)), h2.settings(flags=h2.ACK))
        self.assertEqual([one.flags for one in client.received(h2.SETTINGS)], [0, h2.ACK, h2.ACK, h2.ACK])

    def test_acknowledgement_with_payload(self) -> None:
        """6.5: An acknowledgement with a payload is a connection error."""
        client = self.connect()
        client.send(h2.settings((h2.ENABLE_PUSH, 0), flags=h2.ACK))
        self.assert_connection_error(client, h2.FRAME_SIZE_ERROR)

    def test_stream(self) -> None:
        """6.5: SETTINGS on a stream are a connection error."""
        for flags in (0, h2.ACK):
            client = self.connect()
            client.send(h2.headers(1, WAIT), h2.settings(flags=flags, stream=1))
            self.assert_connection_error(client, h2.PROTOCOL_ERROR)

    def test_length(self) -> None:
        """6.5: A payload that is not a multiple of 6 bytes is a connection error."""
        for length in (1, 5, 7):
            client = self.connect()
            client.send(h2.frame(h2.SETTINGS, 0, 0, bytes(length)))
            self.assert_connection_error(client, h2.FRAME_SIZE_ERROR)

    def test_values(self) -> None:
        """6.5.2: Values out of range are connection errors."""
        for name, value, code in (
            (h2.ENABLE_PUSH, 2, h2.PROTOCOL_ERROR),
            (h2.INITIAL_WINDOW_SIZE, 2**31, h2.FLOW_CONTROL_ERROR),
            (h2.INITIAL_WINDOW_SIZE, 2**32 - 1, h2.FLOW_CONTROL_ERROR),
            (h2.MAX_FRAME_SIZE, 2**14 - 1, h2.PROTOCOL_ERROR),
            (h2.MAX_FRAME_SIZE, 0, h2.PROTOCOL_ERROR),
            (h2.MAX_FRAME_SIZE, 2**24, h2.PROTOCOL_ERROR),
        ):
            client = self.connect()
            client.send(h2.settings((name, value)))
            self.assert_connection_error(client, code)

    def test_limits(self) -> None:
        """6.5.2: The least and greatest values are accepted."""
        client = self.connect()
        for name, value in (
            (h2.ENABLE_PUSH, 0),
            (h2.ENABLE_PUSH, 1),
            (h2.INITIAL_WINDOW_SIZE, 0),
            (h2.INITIAL_WINDOW_SIZE, 2**31 - 1),
            (h2.MAX_FRAME_SIZE, 2**14),
            (h2.MAX_FRAME_SIZE, 2**24 - 1),
            (h2.HEADER_TABLE_SIZE, 0),
            (h2.HEADER_TABLE_SIZE, 2**32 - 1),
            (h2.MAX_CONCURRENT_STREAMS, 0),
            (h2.MAX_HEADER_LIST_SIZE, 2**32 - 1),
        ):
            client.send(h2.settings((name, value)))
        self.assert_usable(client)

    def test_unknown(self) -> None:
        """6.5.2: Unknown settings are ignored."""
        client = self.connect()
        client.send(h2.settings((0xFF, 1), (0x0, 0), (0xFFFF, 2**32 - 1)))
        self.assert_usable(client)

    def test_repeated(self) -> None:
        """6.5.3: Values are applied in order, so that the last of several counts."""
        client = self.connect((h2.INITIAL_WINDOW_SIZE, 100), (h2.INITIAL_WINDOW_SIZE, 1))
        stream = client.request()
        self.assertEqual((stream.status, bytes(stream.data)), (200, b"G"))

    def test_max_frame_size(self) -> None:
        """6.5.2: Frames may be larger if the client allows it, and never are before."""
        client = self.connect((h2.MAX_FRAME_SIZE, 40_000), (h2.INITIAL_WINDOW_SIZE, LARGE))
        client.send(h2.window_update(0, LARGE), h2.headers(1, LARGE_GET))
        self.assertEqual(len(client.stream(1).data), LARGE)

    def test_header_table_size(self) -> None:
        """6.5.2: The server's dynamic table is not larger than the client allows, from the acknowledgement on."""
        client = self.connect()
        for size in (4096, 0, 200, 4096, 60, 1_000_000):
            client.send(h2.settings((h2.HEADER_TABLE_SIZE, size)))
            for _ in range(3):
                self.assertEqual(client.request().status, 200, size)

    def test_server_settings(self) -> None:
        """6.5.2: The server limits streams and the size of header lists, and its settings are in range."""
        settings = self.connect().server_settings
        self.assertIn(h2.MAX_CONCURRENT_STREAMS, settings)
        self.assertIn(h2.MAX_HEADER_LIST_SIZE, settings)
        self.assertEqual(settings.get(h2.ENABLE_PUSH, 0), 0)
        self.assertLessEqual(settings.get(h2.INITIAL_WINDOW_SIZE, h2.DEFAULT_WINDOW), h2.MAX_WINDOW)
        self.assertIn(settings.get(h2.MAX_FRAME_SIZE, 2**14), range(2**14, 2**24))


class PushTests(Http2Case):
    """Section 6.6: PUSH_PROMISE."""

    def test_from_client(self) -> None:
        """6.6: A client's PUSH_PROMISE is a connection error."""
        client = self.connect()
        client.send(h2.headers(1, WAIT), h2.frame(h2.PUSH_PROMISE, h2.END_HEADERS, 1, b"\x00\x00\x00\x02"))
        self.assert_connection_error(client, h2.PROTOCOL_ERROR)


class PingTests(Http2Case):
    """Section 6.7: PING."""

    def test_answered(self) -> None:
        """6.7: PING is answered with its payload."""
        client = self.connect()
        client.send(h2.ping(b"\x00\x01\x02\x03\xfc\xfd\xfe\xff"))
        self.assertEqual(client.received(h2.PING), [h2.Frame(h2.PING, h2.ACK, 0, b"\x00\x01\x02\x03\xfc\xfd\xfe\xff")])

    def test_acknowledgement(self) -> None:
        """6.7: An acknowledgement is not answered."""
        client = self.connect()
        client.send(h2.ping(b"answered", h2.ACK))
        self.assertEqual(client.received(h2.PING), [])
        self.assert_usable(client)

    def test_stream(self) -> None:
        """6.7: PING on a stream is a connection error."""
        client = self.connect()
        client.send(h2.frame(h2.PING, 0, 1, bytes(8)))
        self.assert_connection_error(client, h2.PROTOCOL_ERROR)

    def test_length(self) -> None:
        """6.7: PING with another length than 8 is a connection error."""
        for length in (0, 7, 9):
            client = self.connect()
            client.send(h2.frame(h2.PING, 0, 0, bytes(length)))
            self.assert_connection_error(client, h2.FRAME_SIZE_ERROR)


class GoawayTests(Http2Case):
    """Section 6.8: GOAWAY."""

    def test_stream(self) -> None:
        """6.8: GOAWAY on a stream is a connection error."""
        client = self.connect()
        client.send(h2.frame(h2.GOAWAY, 0, 1, bytes(8)))
        self.assert_connection_error(client, h2.PROTOCOL_ERROR)

    def test_length(self) -> None:
        """6.8: GOAWAY with less than 8 bytes is a connection error."""
        for length in (0, 4, 7):
            client = self.connect()
            client.send(h2.frame(h2.GOAWAY, 0, 0, bytes(length)))
            self.assert_connection_error(client, h2.FRAME_SIZE_ERROR)

    def test_open_streams(self) -> None:
        """6.8: Requests that are open when the client sends GOAWAY are answered; then the connection is closed."""
        client = self.connect()
        client.send(h2.headers(1, WAIT), h2.goaway(0, h2.NO_ERROR, b"bye"))
        self.assertFalse(client.transport.lost)
        self.answer(0)
        self.clock.advance(0)
        self.assertEqual((bytes(client.stream(1).data), client.stream(1).ended), (b"done", True))

    def test_server_stops(self) -> None:
        """6.8: After GOAWAY of the server, open streams finish, later ones are ignored; then the connection ends."""
        client = self.connect()
        client.send(h2.headers(1, WAIT), h2.headers(3, get(b"/wait", method=b"POST"), end_stream=False))
        self.site.connections.close_idle()
        self.clock.advance(0)
        self.assertEqual(client.goaway, (3, h2.NO_ERROR))
        added = h2.literal(b"x-added", b"value", 0x40)
        client.send(h2.headers(5, h2.block(h2.POST) + added, end_stream=False))
        client.send(h2.data(5, b"body"), h2.window_update(5, 10), h2.headers(5, [(b"x-trailer", b"v")]), h2.reset(5))
        client.send(h2.data(3, b"body", end_stream=True))
        self.assertEqual(self.served, [(b"GET", b"/wait"), (b"POST", b"/wait")])
        self.assertEqual(client.streams[5].heads if 5 in client.streams else [], [])
        self.assertTrue(client.alive)
        self.answer(0)
        self.assertFalse(client.closed)
        self.answer(1)
        self.assertEqual([client.stream(number).ended for number in (1, 3)], [True, True])
        self.assertTrue(client.closed)
        self.assertEqual(len(client.received(h2.GOAWAY)), 1)

    def test_unknown_code(self) -> None:
        """7: Unknown error codes have no special meaning."""
        client = self.connect()
        client.send(h2.headers(1, WAIT), h2.reset(1, 0xFF))
        self.assertTrue(self.waiting[0].disconnected)
        self.assert_usable(client)
        client.send(h2.headers(client.next_stream(), WAIT), h2.goaway(0, 0xFFFF_FFFF))
        self.answer(1)
        self.assertEqual(bytes(client.streams[max(client.streams)].data), b"done")


class ContinuationTests(Http2Case):
    """Section 6.10: CONTINUATION."""

    def test_several(self) -> None:
        """6.10: Several CONTINUATION frames may follow HEADERS."""
        client = self.connect()
        more = [h2.continuation(1, h2.literal(b"x-%d" % number, b"v"), end_headers=False) for number in range(3)]
        client.send(h2.headers(1, end_headers=False), *more, h2.continuation(1, h2.literal(b"x-last", b"v")))
        self.assertEqual(client.stream(1).status, 200)
        self.assertEqual([self.requests[0].header(name) for name in (b"x-0", b"x-2", b"x-last")], [b"v"] * 3)

    def test_end_of_stream(self) -> None:
        """6.10: END_STREAM of HEADERS holds for the whole block, and is undefined on CONTINUATION."""
        client = self.connect()
        client.send(h2.headers(1, h2.POST, end_stream=False, end_headers=False))
        client.send(h2.frame(h2.CONTINUATION, h2.END_HEADERS | h2.END_STREAM, 1))
        self.assertIsNone(client.stream(1).status)
        client.send(h2.data(1, b"body", end_stream=True))
        self.assertEqual(bytes(client.stream(1).data), b"POST /a body")

    def test_stream_zero(self) -> None:
        """6.10: CONTINUATION on stream 0 is a connection error."""
        client = self.connect()
        client.send(h2.headers(1, end_headers=False), h2.continuation(0, b""))
        self.assert_connection_error(client, h2.PROTOCOL_ERROR)

    def test_after_other_frames(self) -> None:
        """6.10: CONTINUATION after a complete block, or after DATA, is a connection error."""
        for before in (
            h2.headers(1, h2.POST, end_stream=False),
            h2.headers(1, h2.POST, end_stream=False, end_headers=False) + h2.continuation(1, b""),
            h2.headers(1, h2.POST, end_stream=False) + h2.data(1, b"x"),
        ):
            client = self.connect()
            client.send(before, h2.continuation(1, h2.literal(b"a", b"b")))
            self.assert_connection_error(client, h2.PROTOCOL_ERROR)
        self.assertEqual(self.served, [])
