"""Hostile clients: floods of frames, resets and header blocks."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

from kubetwist.api.resource import UserInfo
from kubetwist.authentication.errors import AuthenticationFailed
from kubetwist.http.http2.budgets import MAX_RESETS
from kubetwist.http.site import KubeSite

from ..harness import filtered_site
from . import frames as h2
from .client import Client, Http2Case, get
from .measures import count_calls

WAIT = get(b"/wait")
#: Frames of a flood.
MANY = 20_000
#: Bytes that a connection may hold in addition to what a new one holds.
MAX_HELD = 512 * 1024


class FloodCase(Http2Case):
    """Base of tests of floods."""

    def flood(self, client: Client, make: Callable[[int], bytes], count: int = MANY) -> None:
        """
        Send many frames in segments of 64 KiB, until the server closes the connection.

        @param make: Returns the frames number C{n}.
        """
        waiting: list[bytes] = []
        size = 0
        for number in range(count):
            waiting.append(make(number))
            size += len(waiting[-1])
            if size > 60_000 or number == count - 1:
                client.send(*waiting)
                waiting, size = [], 0
                if client.closed:
                    return

    def assert_calmed(self, client: Client) -> None:
        """Assert that the connection was closed because of the flood, and holds nothing."""
        self.assert_connection_error(client, h2.ENHANCE_YOUR_CALM)
        self.clock.advance(0)
        self.assertEqual(self.site.open_requests, set())

    def assert_flood_ends(self, make: Callable[[int], bytes], before: bytes = b"") -> Client:
        """Assert that a flood ends a connection, also if the client reads nothing."""
        for reading in (True, False):
            client = self.connect()
            held = self.held(client)
            client.send(before)
            client.reading = reading
            self.flood(client, make)
            self.assertLess(self.held(client), held + MAX_HELD)
            if reading:
                self.assert_calmed(client)
            else:
                client.read()
                self.assertTrue(client.closed)
        return client


class ControlFrameTests(FloodCase):
    """Floods of frames that open no stream."""

    def test_ping(self) -> None:
        """CVE-2019-9512: A flood of PING closes the connection."""
        self.assert_flood_ends(lambda number: h2.ping(b"%08d" % number))

    def test_acknowledged_ping(self) -> None:
        """A flood of acknowledgements of PING closes the connection."""
        self.assert_flood_ends(lambda number: h2.ping(b"%08d" % number, h2.ACK))

    def test_settings(self) -> None:
        """CVE-2019-9515: A flood of SETTINGS closes the connection."""
        self.assert_flood_ends(lambda number: h2.settings())
        self.assert_flood_ends(lambda number: h2.settings((h2.INITIAL_WINDOW_SIZE, number), (h2.HEADER_TABLE_SIZE, 9)))

    def test_acknowledged_settings(self) -> None:
        """A flood of acknowledgements of SETTINGS closes the connection."""
        self.assert_flood_ends(lambda number: h2.settings(flags=h2.ACK))

    def test_long_settings(self) -> None:
        """A SETTINGS frame with thousands of values costs little, and a flood of them closes the connection."""
        client = self.connect()
        long = h2.settings(*(((0x100 + number), number) for number in range(2700)))
        self.assertLess(len(long), 16_384 + 9)
        self.flood(client, lambda number: long, 3000)
        self.assert_calmed(client)

    def test_initial_windows(self) -> None:
        """A flood of changes of the initial window with many open streams closes the connection."""
        client = self.connect()
        client.send(*(h2.headers(client.next_stream(), WAIT) for _ in range(100)))
        self.flood(client, lambda number: h2.settings((h2.INITIAL_WINDOW_SIZE, number % 2)))
        self.assert_calmed(client)

    def test_priority(self) -> None:
        """CVE-2019-9513: A flood of PRIORITY closes the connection, for one stream or for many."""
        self.assert_flood_ends(lambda number: h2.priority(1, 3 + 2 * (number % 100)))
        self.assert_flood_ends(lambda number: h2.priority(2 * number + 1, 2 * number + 3))

    def test_window_updates(self) -> None:
        """A flood of WINDOW_UPDATE closes the connection, for the connection or for streams."""
        self.assert_flood_ends(lambda number: h2.window_update(0, 1))
        self.assert_flood_ends(lambda number: h2.window_update(1, 1), h2.headers(1, WAIT))
        self.assert_flood_ends(lambda number: h2.window_update(1, 1), h2.headers(1))

    def test_unknown_frames(self) -> None:
        """A flood of frames of unknown types closes the connection."""
        self.assert_flood_ends(lambda number: h2.frame(0x20 + number % 200, 0, number % 50))

    def test_resets_of_closed_streams(self) -> None:
        """A flood of RST_STREAM for closed streams closes the connection."""
        self.assert_flood_ends(lambda number: h2.reset(1), h2.headers(1))

    def test_goaway(self) -> None:
        """A flood of GOAWAY does not keep a connection open, or closes it."""
        client = self.connect()
        client.send(h2.headers(1, WAIT))
        held = self.held(client)
        self.flood(client, lambda number: h2.goaway(0, 0, b"x" * 1000))
        self.assertTrue(client.closed)
        self.assertLess(self.held(client), held + MAX_HELD)

    def test_mixed(self) -> None:
        """A flood of different frames closes the connection."""
        kinds = (h2.ping(), h2.settings(), h2.priority(5), h2.window_update(0, 1), h2.frame(0x99), h2.reset(1))
        self.assert_flood_ends(lambda number: kinds[number % len(kinds)], h2.headers(1))

    def test_empty_data(self) -> None:
        """CVE-2019-9518: A flood of empty DATA closes the connection."""
        opened = h2.headers(1, h2.POST, end_stream=False)
        self.assert_flood_ends(lambda number: h2.data(1), opened)

    def test_padding_only(self) -> None:
        """A flood of DATA that consist of padding closes the connection."""
        opened = h2.headers(1, h2.POST, end_stream=False)
        self.assert_flood_ends(lambda number: h2.data(1, padding=number % 3), opened)

    def test_data_of_closed_streams(self) -> None:
        """A flood of DATA for a closed stream closes the connection."""
        client = self.connect()
        client.send(h2.headers(1))
        self.flood(client, lambda number: h2.data(1, b"x"))
        self.assert_connection_error(client, h2.ENHANCE_YOUR_CALM, h2.STREAM_CLOSED, h2.FLOW_CONTROL_ERROR)

    def test_patient_client(self) -> None:
        """Control frames at the pace of real clients never close a connection."""
        client = self.connect()
        client.send(h2.headers(1, WAIT))
        for _ in range(3000):
            client.send(h2.ping(), h2.window_update(1, 1), h2.window_update(0, 1))
            self.clock.advance(1)
        self.assertEqual(len(client.received(h2.PING)), 3000)
        self.assert_usable(client)

    def test_windows_of_a_large_response(self) -> None:
        """Two WINDOW_UPDATE frames for each small piece of large responses do not close a connection."""
        client = self.connect()
        for _ in range(20):
            number = client.next_stream()
            client.send(h2.headers(number, get(b"/large")))
            stream = client.stream(number)
            read = 0
            while not stream.ended:
                received = len(stream.data) - read
                read += received
                self.assertGreater(received, 0)
                updates = []
                for _ in range(max(1, received // 4096)):
                    updates += (h2.window_update(0, 4096), h2.window_update(number, 4096))
                client.send(*updates)
        self.assertIsNone(client.goaway)


class ResetTests(FloodCase):
    """Rapid reset, and other ways to open streams beyond the limit."""

    def reset_flood(self, make: Callable[[int], bytes], settings: tuple[tuple[int, int], ...] = ()) -> None:
        """Assert that a flood of requests that end early closes the connection after few requests."""
        client = self.connect(*settings)
        limit = client.server_settings[h2.MAX_CONCURRENT_STREAMS]
        held = self.held(client)
        most = 0

        def frames(number: int) -> bytes:
            nonlocal most
            most = max(most, len(self.site.open_requests))
            return make(2 * number + 1)

        self.flood(client, frames)
        self.assert_calmed(client)
        self.assertLessEqual(most, limit)
        self.assertLessEqual(len(self.served), MAX_RESETS + limit)
        self.waiting.clear()
        self.assertLess(self.held(client), held + MAX_HELD)

    def test_rapid_reset(self) -> None:
        """CVE-2023-44487: Requests that are reset at once close the connection after few of them."""
        self.reset_flood(lambda number: h2.headers(number, WAIT) + h2.reset(number))

    def test_reset_before_the_body(self) -> None:
        """Requests that are reset before their bodies have arrived close the connection."""
        self.reset_flood(lambda number: h2.headers(number, h2.POST, end_stream=False) + h2.reset(number))

    def test_reset_of_streamed_bodies(self) -> None:
        """Requests with streamed bodies that are reset at once close the connection."""
        fields = get(b"/stream", method=b"POST")
        self.reset_flood(lambda number: h2.headers(number, fields, end_stream=False) + h2.reset(number))

    def test_made_resets(self) -> None:
        """CVE-2025-8671: Frames that have the server reset their streams count as resets by the client."""
        for trigger in (
            lambda number: h2.window_update(number, 0),
            lambda number: h2.window_update(number, h2.MAX_WINDOW),
            lambda number: h2.data(number, b"x"),
            lambda number: h2.headers(number, WAIT),
            lambda number: h2.frame(h2.PRIORITY, 0, number, b"four"),
        ):
            client = self.connect()
            self.served.clear()
            self.flood(client, lambda number, make=trigger: h2.headers(2 * number + 1, WAIT) + make(2 * number + 1))
            self.assertTrue(client.closed)
            assert client.goaway is not None
            self.assertIn(
                client.goaway[1], (h2.ENHANCE_YOUR_CALM, h2.PROTOCOL_ERROR, h2.STREAM_CLOSED, h2.FRAME_SIZE_ERROR)
            )
            limit = client.server_settings[h2.MAX_CONCURRENT_STREAMS]
            self.assertLessEqual(len(self.served), MAX_RESETS + limit)

    def test_malformed_requests(self) -> None:
        """A flood of malformed requests closes the connection."""
        self.assert_flood_ends(lambda number: h2.headers(2 * number + 1, [*h2.GET, (b"Upper", b"x")]))
        self.assert_flood_ends(lambda number: h2.headers(2 * number + 1, [*h2.GET, (b"content-length", b"5")]))

    def test_refused_heads_with_closed_windows(self) -> None:
        """Responses to malformed requests that cannot be sent do not add up."""
        for fields in (get(b"/a%zz"), [*h2.GET, *((b"x-%d" % number, b"v") for number in range(300))]):
            client = self.connect((h2.INITIAL_WINDOW_SIZE, 0))
            held = self.held(client)
            block = h2.block(fields)
            self.flood(client, lambda number, block=block: h2.headers(2 * number + 1, block), 10_000)
            self.assertLess(self.held(client), held + 4 * MAX_HELD)
        self.assertEqual(self.served, [])

    def test_refused_streams(self) -> None:
        """A flood of requests above the limit of streams closes the connection."""
        client = self.connect()
        limit = client.server_settings[h2.MAX_CONCURRENT_STREAMS]
        self.flood(client, lambda number: h2.headers(2 * number + 1, WAIT))
        self.assert_calmed(client)
        self.assertEqual(len(self.served), limit)

    def test_responses_not_read(self) -> None:
        """A client that sends requests and reads nothing is not served without end."""
        client = self.connect()
        held = self.held(client)
        client.reading = False
        self.flood(client, lambda number: h2.headers(2 * number + 1))
        self.assertLess(self.held(client), held + 2 * MAX_HELD)
        self.assertLess(len(self.served), MANY)

    def test_cancelled_watches(self) -> None:
        """All streams may be reset at once, again after a while, and some at any time."""
        client = self.connect()
        for _ in range(20):
            numbers = [client.next_stream() for _ in range(client.server_settings[h2.MAX_CONCURRENT_STREAMS])]
            client.send(*(h2.headers(number, WAIT) for number in numbers))
            client.send(*map(h2.reset, numbers))
            self.advance(60)
        for _ in range(2000):
            number = client.next_stream()
            client.send(h2.headers(number, WAIT), h2.reset(number))
            self.clock.advance(1)
        self.assert_usable(client)

    def test_requests_in_sequence(self) -> None:
        """Any number of requests that are answered is served on a connection."""
        client = self.connect()
        for _ in range(5000):
            self.assertEqual(client.request().status, 200)
        self.assertFalse(client.closed)

    def test_memory_of_ended_streams(self) -> None:
        """Ended streams leave nothing behind."""
        client = self.connect()
        for _ in range(50):
            client.request()
        held = self.held(client)
        for _ in range(3000):
            client.request()
            client.request(h2.POST, b"body")
        self.assertLess(self.held(client), held + 16_384)


class UnauthenticatedTests(FloodCase):
    """Requests without credentials, which end their connection as in the reference."""

    def make_site(self) -> KubeSite:
        """Return a site with all filters, which serves anonymous users and refuses tokens."""
        site = filtered_site(self.handle, authenticator=Anonymous(), clock=self.clock)
        self.addCleanup(site.stopFactory)
        return site

    def assert_one_request(self, *fields: tuple[bytes, bytes]) -> Client:
        """Assert that only the first of many requests is answered, and the connection ended."""
        client = self.connect()
        self.flood(client, lambda number: h2.headers(2 * number + 1, [*h2.GET, *fields]), 1000)
        self.clock.advance(0)
        self.assertTrue(client.closed)
        assert client.goaway is not None
        self.assertEqual(client.goaway[1], h2.NO_ERROR)
        answered = [number for number, stream in client.streams.items() if stream.status]
        self.assertEqual(answered, [1])
        self.assertTrue(client.stream(1).ended)
        return client

    def test_refused(self) -> None:
        """A client with a wrong token gets one response per connection."""
        client = self.assert_one_request((b"authorization", b"Bearer wrong"))
        self.assertEqual(client.stream(1).status, 401)
        self.assertEqual(self.served, [])

    def test_anonymous(self) -> None:
        """A client without credentials gets one response per connection."""
        client = self.assert_one_request()
        self.assertEqual(client.stream(1).status, 200)
        self.assertEqual(len(self.served), 1)


class Anonymous:
    """An authenticator that knows no user."""

    def authenticate(self, request: Any) -> UserInfo:
        """Return the anonymous user, unless there is a token."""
        if request.getHeader(b"authorization"):
            raise AuthenticationFailed("the token is unknown")
        return UserInfo("system:anonymous", groups=("system:unauthenticated",))


class HeaderTests(FloodCase):
    """Header blocks that are long, or become long when they are decoded."""

    def assert_too_large(self, client: Client, number: int) -> None:
        """Assert that a header list was refused, with or without the connection."""
        self.assertEqual(self.served, [])
        stream = client.stream(number)
        if client.goaway is not None:
            self.assert_connection_error(
                client, h2.ENHANCE_YOUR_CALM, h2.PROTOCOL_ERROR, h2.COMPRESSION_ERROR, h2.FRAME_SIZE_ERROR
            )
        elif stream.status is not None:
            self.assertEqual((stream.status, stream.ended), (431, True))
            self.assert_usable(client)
        else:
            self.assert_stream_error(client, number, h2.ENHANCE_YOUR_CALM, h2.PROTOCOL_ERROR, h2.REFUSED_STREAM)

    def test_too_many_fields(self) -> None:
        """A request may have 200 header fields, and not more."""
        fields = [*h2.GET, *((b"x-%d" % number, b"v") for number in range(196))]
        self.assertEqual(self.connect().request(fields).status, 200)
        self.served.clear()
        for count in (197, 300, 2000):
            client = self.connect()
            client.request([*h2.GET, *((b"x-%d" % number, b"v") for number in range(count))])
            self.assert_too_large(client, 1)

    def test_repeated_fields(self) -> None:
        """Fields with the same name count one by one, and so do pieces of a cookie."""
        for name in (b"accept", b"cookie"):
            client = self.connect()
            client.request([*h2.GET, *((name, b"v") for _ in range(300))])
            self.assert_too_large(client, 1)

    def test_list_too_large(self) -> None:
        """A header list above the announced size is refused; the connection's table remains valid if it continues."""
        client = self.connect()
        limit = client.server_settings[h2.MAX_HEADER_LIST_SIZE]
        value = b"v" * 4000
        block = h2.block(h2.GET) + h2.literal(b"x-kept", b"kept", 0x40)
        block += b"".join(h2.literal(b"x-%d" % number, value) for number in range(limit // 4000 + 2))
        frames = [h2.headers(1, block[:16_384], end_headers=False)]
        frames += [
            h2.continuation(1, block[at : at + 16_384], end_headers=False) for at in range(16_384, len(block), 16_384)
        ]
        client.send(*frames, h2.continuation(1, b""))
        self.assert_too_large(client, 1)
        if client.goaway is None:
            self.assertEqual(client.request(h2.block(h2.GET) + h2.indexed(62)).status, 200)

    def test_long_field(self) -> None:
        """A single field above the announced size is refused."""
        client = self.connect()
        limit = client.server_settings[h2.MAX_HEADER_LIST_SIZE]
        block = h2.block([*h2.GET, (b"x-name", b"v" * limit)])
        frames = [h2.headers(1, block[:16_384], end_headers=False)]
        frames += [
            h2.continuation(1, block[at : at + 16_384], end_headers=False) for at in range(16_384, len(block), 16_384)
        ]
        client.send(*frames, h2.continuation(1, b""))
        self.assert_too_large(client, 1)

    def test_large_list_within_the_limit(self) -> None:
        """A header list slightly below the announced size is served."""
        client = self.connect()
        limit = client.server_settings[h2.MAX_HEADER_LIST_SIZE]
        size = sum(len(name) + len(value) + 32 for name, value in h2.GET)
        block = h2.block([*h2.GET, (b"x-name", b"v" * (limit - size - 100))])
        frames = [h2.headers(1, block[:16_384], end_headers=False)]
        frames += [
            h2.continuation(1, block[at : at + 16_384], end_headers=False) for at in range(16_384, len(block), 16_384)
        ]
        client.send(*frames, h2.continuation(1, b""))
        self.assertEqual(client.stream(1).status, 200)

    def test_continuation_flood(self) -> None:
        """CVE-2024-27316: CONTINUATION without end closes the connection, and is not kept."""
        for payload in (b"", b"\x00", h2.literal(b"x-name", b"v" * 1000), b"\x00\x01x\x7f" + bytes(9)):
            client = self.connect()
            held = self.held(client)
            client.send(h2.headers(1, end_headers=False))
            self.flood(client, lambda number, payload=payload: h2.continuation(1, payload, end_headers=False))
            self.assertTrue(client.closed)
            self.assertIsNotNone(client.goaway)
            self.assertLess(self.held(client), held + MAX_HELD)
        self.assertEqual(self.served, [])

    def test_continuation_flood_with_end(self) -> None:
        """A block of thousands of frames is refused, although its list is short."""
        client = self.connect()
        client.send(h2.headers(1, end_headers=False))
        self.flood(client, lambda number: h2.continuation(1, b"", end_headers=number == MANY - 1))
        self.assert_too_large(client, 1)

    def test_indexed_amplification(self) -> None:
        """One byte for a long field of the dynamic table is counted as the whole field."""
        client = self.connect()
        added = h2.literal(b"x-name", b"v" * 3900, 0x40)
        self.assertEqual(client.request(h2.block(h2.GET) + added).status, 200)
        self.served.clear()
        block = h2.block(h2.GET) + h2.indexed(62) * 16_000
        tracemalloc.start()
        self.addCleanup(tracemalloc.stop)
        calls = count_calls(lambda: client.send(h2.headers(3, block)))
        self.assertLess(tracemalloc.get_traced_memory()[1], 4_000_000)
        self.assertLess(calls, 5_000)
        self.assert_too_large(client, 3)

    def test_short_amplification(self) -> None:
        """Thousands of short indexed fields in one block are refused after few of them."""
        client = self.connect()
        block = h2.block(h2.GET) + b"\x90" * 16_000
        calls = count_calls(lambda: client.send(h2.headers(1, block)))
        self.assertLess(calls, 5_000)
        self.assert_too_large(client, 1)

    def test_table_churn(self) -> None:
        """Blocks that only change the dynamic table hold no more than its size."""
        client = self.connect()
        held = self.held(client)
        for number in range(400):
            added = b"".join(h2.literal(b"x-%d-%d" % (number, at), b"v" * 20, 0x40) for at in range(150))
            client.request(h2.block(h2.GET) + added)
        self.assertLess(self.held(client), held + 100_000)

    def test_size_updates(self) -> None:
        """Thousands of updates of the table's size in a block are an error."""
        client = self.connect()
        client.send(h2.headers(1, h2.table_size(0) * 10_000 + h2.block(h2.GET)))
        self.assert_connection_error(client, h2.COMPRESSION_ERROR)

    def test_huge_announced_table(self) -> None:
        """A client that announces a huge table does not have the server fill it."""
        client = self.connect((h2.HEADER_TABLE_SIZE, 2**32 - 1))
        for _ in range(20):
            client.request(get(b"/unique"))
        held = self.held(client)
        for _ in range(2000):
            self.assertEqual(client.request(get(b"/unique")).status, 200)
        self.assertLess(self.held(client), held + 64_000)
