"""Conformance with RFC 9113, sections 5.2 and 6.9: flow control and WINDOW_UPDATE."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from . import frames as h2
from .client import LARGE, Client, Http2Case, get

LARGE_GET = get(b"/large")
WAIT = get(b"/wait")


class WindowUpdateTests(Http2Case):
    """Section 6.9: WINDOW_UPDATE."""

    def test_zero_of_connection(self) -> None:
        """6.9: An increment of 0 of the connection's window is a connection error."""
        client = self.connect()
        client.send(h2.window_update(0, 0))
        self.assert_connection_error(client, h2.PROTOCOL_ERROR)

    def test_zero_of_stream(self) -> None:
        """6.9: An increment of 0 of a stream's window is a stream error."""
        client = self.connect()
        client.send(h2.headers(1, WAIT), h2.window_update(1, 0))
        self.assert_stream_error(client, 1, h2.PROTOCOL_ERROR)

    def test_length(self) -> None:
        """6.9: WINDOW_UPDATE with another length than 4 is a connection error."""
        for payload in (b"", bytes(3), bytes(5)):
            client = self.connect()
            client.send(h2.frame(h2.WINDOW_UPDATE, 0, 0, payload))
            self.assert_connection_error(client, h2.FRAME_SIZE_ERROR)

    def test_reserved_bit(self) -> None:
        """6.9: The reserved bit of the increment is ignored."""
        client = self.connect()
        client.send(h2.window_update(0, 1 | 1 << 31))
        self.assert_usable(client)


class WindowTests(Http2Case):
    """Sections 6.9.1 and 6.9.2: windows of the server's responses."""

    def test_never_exceeded(self) -> None:
        """6.9.1: A response stops at the end of the window, and continues when the client opens it."""
        client = self.connect()
        client.send(h2.headers(1, LARGE_GET))
        stream = client.stream(1)
        self.assertEqual(len(stream.data), h2.DEFAULT_WINDOW)
        client.send(h2.window_update(1, 100_000))
        self.assertEqual(len(stream.data), h2.DEFAULT_WINDOW)
        client.send(h2.window_update(0, 60_000))
        self.assertEqual(len(stream.data), h2.DEFAULT_WINDOW + 60_000)
        client.send(h2.window_update(0, LARGE), h2.window_update(1, LARGE))
        self.assertEqual((len(stream.data), stream.ended), (LARGE, True))

    def test_single_bytes(self) -> None:
        """6.9.1: A window of 1 byte lets 1 byte through."""
        client = self.connect((h2.INITIAL_WINDOW_SIZE, 1))
        stream = client.request()
        for length in range(1, 7):
            self.assertEqual(bytes(stream.data), b"GET /a "[:length])
            self.assertFalse(stream.ended)
            client.send(h2.window_update(1, 1))
        self.assertEqual((bytes(stream.data), stream.ended), (b"GET /a ", True))

    def test_head_needs_no_window(self) -> None:
        """6.9: Header fields are sent although all windows are closed."""
        client = self.connect((h2.INITIAL_WINDOW_SIZE, 0))
        stream = client.request()
        self.assertEqual((stream.status, bytes(stream.data), stream.ended), (200, b"", False))
        client.send(h2.window_update(1, 100))
        self.assertEqual((bytes(stream.data), stream.ended), (b"GET /a ", True))

    def test_overflow_of_connection(self) -> None:
        """6.9.1: A connection's window above 2**31 - 1 is a connection error."""
        client = self.connect()
        client.send(h2.window_update(0, h2.MAX_WINDOW))
        self.assert_connection_error(client, h2.FLOW_CONTROL_ERROR)

    def test_overflow_of_stream(self) -> None:
        """6.9.1: A stream's window above 2**31 - 1 is a stream error."""
        client = self.connect()
        client.send(h2.headers(1, WAIT), h2.window_update(1, h2.MAX_WINDOW))
        self.assert_stream_error(client, 1, h2.FLOW_CONTROL_ERROR)

    def test_greatest(self) -> None:
        """6.9.1: Windows of 2**31 - 1 bytes are allowed."""
        client = self.connect()
        client.send(h2.window_update(0, h2.MAX_WINDOW - h2.DEFAULT_WINDOW), h2.headers(1, LARGE_GET))
        client.send(h2.window_update(1, h2.MAX_WINDOW))
        self.assertEqual(len(client.stream(1).data), LARGE)

    def test_initial_window_of_open_streams(self) -> None:
        """6.9.2: A change of the initial window applies to open streams."""
        client = self.connect((h2.INITIAL_WINDOW_SIZE, 0))
        stream = client.request()
        self.assertEqual(bytes(stream.data), b"")
        client.send(h2.settings((h2.INITIAL_WINDOW_SIZE, 3)))
        self.assertEqual(bytes(stream.data), b"GET")
        client.send(h2.settings((h2.INITIAL_WINDOW_SIZE, 7)))
        self.assertEqual((bytes(stream.data), stream.ended), (b"GET /a ", True))

    def test_negative_window(self) -> None:
        """6.9.2: A window may become negative, and is opened by the sum of the increments."""
        client = self.connect((h2.INITIAL_WINDOW_SIZE, 3))
        stream = client.request()
        client.send(h2.settings((h2.INITIAL_WINDOW_SIZE, 1)))
        client.send(h2.window_update(1, 2))
        self.assertEqual(bytes(stream.data), b"GET")
        client.send(h2.window_update(1, 1))
        self.assertEqual(bytes(stream.data), b"GET ")

    def test_initial_window_is_not_the_connections(self) -> None:
        """6.9.2: SETTINGS do not change the connection's window."""
        client = self.connect((h2.INITIAL_WINDOW_SIZE, LARGE))
        client.send(h2.headers(1, LARGE_GET))
        self.assertEqual(len(client.stream(1).data), h2.DEFAULT_WINDOW)

    def test_overflow_by_settings(self) -> None:
        """6.9.2: A change of the initial window that lets the window of a stream overflow is a connection error."""
        client = self.connect()
        client.send(h2.headers(1, WAIT), h2.window_update(1, h2.MAX_WINDOW - h2.DEFAULT_WINDOW))
        client.send(h2.settings((h2.INITIAL_WINDOW_SIZE, h2.DEFAULT_WINDOW + 1)))
        self.assert_connection_error(client, h2.FLOW_CONTROL_ERROR)

    def test_empty_data(self) -> None:
        """6.9.1: The end of a stream needs no window."""
        client = self.connect((h2.INITIAL_WINDOW_SIZE, 7))
        stream = client.request()
        self.assertEqual((bytes(stream.data), stream.ended), (b"GET /a ", True))

    @given(updates=st.lists(st.tuples(st.booleans(), st.integers(1, 90_000)), max_size=30), frame=st.integers(14, 17))
    def test_any_updates(self, updates: list[tuple[bool, int]], frame: int) -> None:
        """6.9: A response is complete for each order in which its windows are opened."""
        client = Client(self.site, (h2.INITIAL_WINDOW_SIZE, 1000), (h2.MAX_FRAME_SIZE, 2**frame))
        client.send(h2.headers(1, LARGE_GET), h2.headers(3, LARGE_GET))
        for whole, increment in updates:
            client.send(h2.window_update(0, increment) if whole else h2.window_update(1, increment))
            first, second = client.streams[1], client.streams[3]
            sent = len(first.data) + len(second.data)
            if sent < 2 * LARGE:
                self.assertTrue(client.window == 0 or ((first.window == 0 or first.ended) and second.window == 0))
        client.send(*(h2.window_update(number, 10_000_000) for number in (0, 1, 3) if not client.stream(number).ended))
        self.assertEqual([len(client.streams[number].data) for number in (1, 3)], [LARGE, LARGE])


class RequestWindowTests(Http2Case):
    """Sections 5.2 and 6.9: windows of the client's bodies."""

    def test_restored(self) -> None:
        """5.2: The windows are opened again as bodies are read, so that bodies may be longer than them."""
        client = self.connect((h2.INITIAL_WINDOW_SIZE, 2_000_000))
        client.send(h2.window_update(0, 4_000_000))
        window = client.upload_window(0)
        body = bytes(range(256)) * 4000
        for number in (1, 3, 5):
            client.send(h2.headers(number, h2.POST, end_stream=False))
            self.assertEqual(client.upload(number, body), len(body))
            self.assertEqual(bytes(client.stream(number).data), b"POST /a " + body)
        self.assertGreater(client.upload_window(0), window // 2)

    def test_exceeded(self) -> None:
        """6.9.1: Data beyond the window, which is not opened before they are read, are a flow control error."""
        client = self.connect()
        client.send(h2.headers(1, get(b"/stream", method=b"POST"), end_stream=False))
        client.send(*(h2.data(1, bytes(16_384)) for _ in range(client.upload_window(1) // 16_384 + 1)))
        self.assert_error(client, 1, h2.FLOW_CONTROL_ERROR)
        self.assertTrue(self.waiting[0].disconnected)

    def test_padding_counts(self) -> None:
        """6.9.1: Padding counts to the windows, which are restored for frames of padding too."""
        client = self.connect()
        client.send(h2.headers(1, h2.POST, end_stream=False))
        for _ in range(3 * client.upload_window(1) // 256):
            self.assertGreaterEqual(client.upload_window(1), 256)
            client.send(h2.data(1, b"", padding=255))
        client.send(h2.data(1, b"body", end_stream=True))
        self.assertEqual(bytes(client.stream(1).data), b"POST /a body")

    def test_after_reset(self) -> None:
        """5.2: Data of streams that were reset return to the connection's window."""
        client = self.connect()
        window = client.upload_window(0)
        for _ in range(3 * window // 16_384):
            number = client.next_stream()
            client.send(h2.headers(number, h2.POST, end_stream=False), h2.data(number, bytes(16_384)))
            client.send(h2.reset(number))
            self.clock.advance(1)
        self.assertGreaterEqual(client.upload_window(0), 16_384)
        self.assert_usable(client)
