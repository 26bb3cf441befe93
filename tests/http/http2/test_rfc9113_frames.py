"""Conformance with RFC 9113, sections 3 and 4: the start of a connection, frames, and compressed fields."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from . import frames as h2
from .client import Client, Http2Case, get


class PrefaceTests(Http2Case):
    """Section 3.4: the preface."""

    def test_server_settings(self) -> None:
        """3.4: The server's first frame is SETTINGS, sent without waiting for the client."""
        client = Client(self.site, start=False)
        self.assertEqual([one.type for one in client.frames][:1], [h2.SETTINGS])
        self.assertFalse(client.frames[0].has(h2.ACK))

    def test_urgent_response(self) -> None:
        """3.4: SETTINGS precede the events of a watch, which precede other data of the iteration."""
        early = h2.PREFACE + h2.settings() + h2.headers(1, get(b"/events")) + h2.headers(3, get(b"/other"))
        client = Client(self.site, start=False, early=early)
        self.assertEqual([(one.type, one.stream) for one in client.frames][:1], [(h2.SETTINGS, 0)])
        self.assertEqual(bytes(client.stream(1).data), b"event")
        heads = [one.stream for one in client.received(h2.HEADERS)]
        self.assertEqual(heads, [1, 3])

    def test_settings_acknowledged(self) -> None:
        """3.4: The settings in the client's preface are acknowledged, also if they are empty."""
        client = Client(self.site)
        self.assertEqual([one.flags for one in client.received(h2.SETTINGS)], [0, h2.ACK])

    def test_wrong_preface(self) -> None:
        """3.4: Another preface closes the connection."""
        client = Client(self.site, start=False)
        client.send(b"INVALID CONNECTION PREFACE\r\n\r\n")
        self.assertTrue(client.closed)
        self.assertIn(client.goaway, (None, (0, h2.PROTOCOL_ERROR)))

    def test_http1_request(self) -> None:
        """3.4: A request of HTTP/1.1 is not served on a connection that has chosen HTTP/2."""
        client = Client(self.site, start=False)
        client.send(b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n")
        self.assertTrue(client.closed)
        self.assertEqual(self.served, [])

    def test_changed_preface(self) -> None:
        """3.4: A preface with one other byte closes the connection."""
        for at in range(len(h2.PREFACE)):
            client = Client(self.site, start=False)
            wrong = bytearray(h2.PREFACE)
            wrong[at] ^= 0x20
            client.send(bytes(wrong) + h2.settings() + h2.headers(1))
            self.assertTrue(client.closed, at)
        self.assertEqual(self.served, [])

    def test_no_settings(self) -> None:
        """3.4: The client's first frame must be SETTINGS."""
        for first in (h2.ping(), h2.headers(1), h2.window_update(0, 1), h2.settings(flags=h2.ACK), h2.frame(0xFA)):
            client = Client(self.site, start=False)
            client.send(h2.PREFACE + first)
            self.assert_connection_error(client, h2.PROTOCOL_ERROR)
        self.assertEqual(self.served, [])

    @given(size=st.integers(1, 40))
    def test_in_pieces(self, size: int) -> None:
        """3.4: The preface and frames may arrive in any segments."""
        client = Client(self.site, start=False)
        data = h2.headers(1, h2.POST, end_stream=False) + h2.data(1, b"some data") + h2.data(1, end_stream=True)
        client.send_in_pieces(h2.PREFACE + h2.settings() + data + h2.headers(3), size)
        self.assertEqual(bytes(client.stream(1).data), b"POST /a some data")
        self.assertEqual(bytes(client.stream(3).data), b"GET /a ")


class FrameTests(Http2Case):
    """Sections 4.1 and 4.2: the format and size of frames."""

    def test_unknown_type(self) -> None:
        """4.1: Frames of unknown types are ignored, on each stream."""
        client = self.connect()
        client.send(h2.frame(0x16, 0xFF, 0, b"unknown"), h2.frame(0xFF, 0, 1, b""), h2.frame(0x10, 0, 99, b"x" * 500))
        self.assert_usable(client)

    def test_undefined_flags(self) -> None:
        """4.1: Undefined flags are ignored."""
        client = self.connect()
        client.send(h2.ping(b"theflags", 0x16))
        self.assertEqual([one.payload for one in client.received(h2.PING)], [b"theflags"])
        client.send(h2.headers(1, h2.POST, end_stream=False, flags=0x92), h2.frame(h2.DATA, 0x67 & ~h2.PADDED, 1, b"x"))
        self.assertEqual(bytes(client.stream(1).data), b"POST /a x")
        self.assert_usable(client)

    def test_reserved_bit(self) -> None:
        """4.1: The reserved bit of the stream identifier is ignored."""
        client = self.connect()
        client.send(h2.frame(h2.PING, 0, 1 << 31, b"reserved"), h2.headers(1 | 1 << 31))
        self.assertEqual([one.payload for one in client.received(h2.PING)], [b"reserved"])
        self.assertEqual(client.stream(1).status, 200)

    def test_frames_of_the_initial_size(self) -> None:
        """4.2: Frames with 16,384 bytes are accepted."""
        client = self.connect()
        stream = client.request(h2.POST, b"x" * h2.DEFAULT_FRAME_SIZE)
        self.assertEqual(len(stream.data), len(b"POST /a ") + h2.DEFAULT_FRAME_SIZE)
        padded = h2.block([*h2.GET, (b"long", b"")])
        value = b"v" * (h2.DEFAULT_FRAME_SIZE - len(padded) - 2)
        block = h2.block([*h2.GET, (b"long", value)])
        self.assertEqual(len(block), h2.DEFAULT_FRAME_SIZE)
        self.assertEqual(client.request(block).status, 200)

    def test_large_data(self) -> None:
        """4.2: A DATA frame above the maximum is a frame size error."""
        client = self.connect()
        size = client.server_settings.get(h2.MAX_FRAME_SIZE, h2.DEFAULT_FRAME_SIZE)
        client.send(h2.headers(1, h2.POST, end_stream=False), h2.data(1, b"x" * (size + 1)))
        self.assert_error(client, 1, h2.FRAME_SIZE_ERROR)
        self.assertEqual(self.served, [])

    def test_large_headers(self) -> None:
        """4.2: A HEADERS or CONTINUATION frame above the maximum is a connection error."""
        for first in (b"", h2.headers(1, end_headers=False)):
            client = self.connect()
            size = client.server_settings.get(h2.MAX_FRAME_SIZE, h2.DEFAULT_FRAME_SIZE)
            kind = h2.CONTINUATION if first else h2.HEADERS
            block = h2.literal(b"a", b"x" * size)
            client.send(first + h2.frame(kind, h2.END_HEADERS, 1, block))
            self.assert_connection_error(client, h2.FRAME_SIZE_ERROR)

    def test_large_control_frames(self) -> None:
        """4.2: Frames of a known type above the maximum are connection errors, whether or not they have arrived."""
        for kind in (h2.SETTINGS, h2.PING, h2.GOAWAY, h2.PRIORITY, h2.RST_STREAM, h2.WINDOW_UPDATE, h2.HEADERS):
            client = self.connect()
            client.send(h2.frame_head(2**24 - 1, kind, h2.END_HEADERS, 1 if kind == h2.HEADERS else 0))
            self.assert_connection_error(client, h2.FRAME_SIZE_ERROR, h2.PROTOCOL_ERROR)

    def test_large_unknown_frame(self) -> None:
        """4.2: A frame of an unknown type above the maximum is a connection error."""
        client = self.connect()
        client.send(h2.frame_head(2**24 - 1, 0xEE))
        self.assert_connection_error(client, h2.FRAME_SIZE_ERROR)


class CompressionTests(Http2Case):
    """Section 4.3: field blocks."""

    def test_invalid_block(self) -> None:
        """4.3: A block that cannot be decoded is a connection error."""
        client = self.connect()
        client.send(h2.headers(1, b"\x40\x85trunc"))
        self.assert_connection_error(client, h2.COMPRESSION_ERROR)
        self.assertEqual(self.served, [])

    def test_interleaved_frames(self) -> None:
        """4.3: Between the frames of a block no other frame may arrive, also of an unknown type."""
        rest = h2.continuation(1, b"")
        for other in (
            h2.priority(1),
            h2.ping(),
            h2.settings(),
            h2.window_update(0, 1),
            h2.data(1, b"x"),
            h2.reset(1),
            h2.frame(0x42, 0, 0, b"unknown"),
            h2.headers(3),
            h2.continuation(3, b""),
        ):
            client = self.connect()
            client.send(h2.headers(1, end_headers=False) + other + rest)
            self.assert_connection_error(client, h2.PROTOCOL_ERROR)
        self.assertEqual(self.served, [])

    def test_table_of_refused_request(self) -> None:
        """4.3: The block of a refused request changes the dynamic table as any other does."""
        client = self.connect()
        added = h2.literal(b"x-added", b"value", 0x40)
        client.send(h2.headers(1, h2.block(h2.GET) + h2.literal(b"UPPER", b"x") + added))
        self.assertEqual(self.served, [])
        stream = client.request(h2.block(h2.GET) + h2.indexed(62))
        self.assertEqual(stream.status, 200)
        self.assertEqual(self.requests[0].header(b"x-added"), b"value")

    def test_table_of_trailers(self) -> None:
        """4.3: The block of trailers changes the dynamic table."""
        client = self.connect()
        client.send(h2.headers(1, h2.POST, end_stream=False), h2.headers(1, h2.literal(b"x-added", b"value", 0x40)))
        self.assertEqual(client.stream(1).status, 200)
        self.assertEqual(client.request(h2.block(h2.GET) + h2.indexed(62)).status, 200)
        self.assertEqual(self.requests[-1].header(b"x-added"), b"value")

    def test_split_block(self) -> None:
        """4.3: A block may be split between frames at any byte."""
        client = self.connect()
        block = h2.block([*h2.GET, (b"x-name", b"some value")])
        for at in range(len(block) + 1):
            number = client.next_stream()
            client.send(h2.headers(number, block[:at], end_headers=False) + h2.continuation(number, block[at:]))
            self.assertEqual(client.stream(number).status, 200, at)
            self.assertEqual(self.requests[-1].header(b"x-name"), b"some value")
