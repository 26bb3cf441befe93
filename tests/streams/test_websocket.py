"""Tests for L{kubetwist.streams.websocket}."""

from __future__ import annotations

import struct
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.streams.framedprotocol import MAX_FRAMES_PER_TURN
from kubetwist.streams.websocket import CLOSE_TIMEOUT, WebSocketConnection
from tests.streams.wires import FULL, Wire, pump


class _RecordingListener:
    """Records the events of a connection."""

    def __init__(self) -> None:
        self.messages: list[bytes] = []
        self.partial = b""
        self.ends: list[bool] = []

    def message_received(self, data: bytes, finished: bool) -> None:
        assert not self.ends
        self.partial += data
        if finished:
            self.messages.append(self.partial)
            self.partial = b""

    def closed(self, clean: bool) -> None:
        self.ends.append(clean)


class _Pair:
    """A connected client and server."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.at_client, self.at_server = _RecordingListener(), _RecordingListener()
        self.client = WebSocketConnection(self.clock, self.at_client, client=True)
        self.server = WebSocketConnection(self.clock, self.at_server)
        self.wire = Wire(self.client, self.server)

    def pump(self, size: int = 1 << 16) -> None:
        pump(self.clock, self.wire, size=size)


class _Raw:
    """A raw client that sends and receives bytes."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.heard = _RecordingListener()
        self.got = b""
        self.disconnected = False
        self.connection = WebSocketConnection(self.clock, self.heard)
        self.wire = Wire(self.connection, self)

    def makeConnection(self, transport: Any) -> None:
        self.transport = transport

    def dataReceived(self, data: bytes) -> None:
        self.got += data

    def connectionLost(self, reason: Any) -> None:
        self.disconnected = True

    def send(self, data: bytes, size: int = 1 << 16) -> None:
        self.transport.write(data)
        pump(self.clock, self.wire, size=size)


def frame(opcode: int, payload: bytes = b"", fin: bool = True, mask: bytes = b"\1\2\3\4") -> bytes:
    """Return a frame of a client."""
    assert len(payload) < 126
    masked = bytes(byte ^ mask[at % 4] for at, byte in enumerate(payload))
    return bytes((fin << 7 | opcode, 0x80 | len(payload))) + mask + masked


class MessageTests(SynchronousTestCase):
    """Sent messages."""

    @given(st.lists(st.binary(max_size=300), max_size=5), st.integers(1, 100))
    def test_both_ways(self, messages: list[bytes], size: int) -> None:
        """Messages arrive unchanged and in order, however their bytes are split."""
        pair = _Pair()
        for message in messages:
            pair.client.send(message)
            pair.server.send(message[::-1])
        pair.pump(size)
        self.assertEqual(messages, pair.at_server.messages)
        self.assertEqual([message[::-1] for message in messages], pair.at_client.messages)

    def test_large(self) -> None:
        """A large message is delivered in pieces, without buffering."""
        pair = _Pair()
        pieces: list[tuple[int, bool]] = []
        pair.at_server.message_received = lambda data, finished: pieces.append((len(data), finished))  # type: ignore[method-assign]
        pair.client.send(b"x" * 1_000_000)
        pair.pump(10_000)
        self.assertEqual(1_000_000, sum(size for size, _ in pieces))
        self.assertLessEqual(max(size for size, _ in pieces), 10_000)
        self.assertEqual([True], [finished for _, finished in pieces if finished])

    def test_fragments(self) -> None:
        """The fragments of a message are one message; pings between them are answered."""
        raw = _Raw()
        raw.send(frame(2, b"ab", fin=False) + frame(9, b"hello") + frame(0, b"cd"))
        self.assertEqual([b"abcd"], raw.heard.messages)
        self.assertEqual(b"\x8a\x05hello", raw.got)

    def test_text(self) -> None:
        """Text messages are delivered as UTF-8 bytes."""
        raw = _Raw()
        raw.send(frame(1, "0ä".encode()), 1)
        self.assertEqual(["0ä".encode()], raw.heard.messages)

    def test_small_frames(self) -> None:
        """Many small frames are handled in batches, with turns of the reactor in between."""
        pair = _Pair()
        for _ in range(MAX_FRAMES_PER_TURN * 3):
            pair.client.send(b"x")
        pair.wire.pump()
        self.assertLess(len(pair.at_server.messages), MAX_FRAMES_PER_TURN * 2)
        pair.pump()
        self.assertEqual(MAX_FRAMES_PER_TURN * 3, len(pair.at_server.messages))

    def test_flood_of_pings(self) -> None:
        """Only the newest ping of a client that does not read is answered, when it reads again."""
        raw = _Raw()
        raw.wire.second.reading = False
        for number in range(2000):
            raw.send(b"".join(frame(9, b"%06d" % (number * 10 + one)) for one in range(10)))
        self.assertLess(raw.wire.first.most_waiting, FULL + 100)
        raw.wire.second.reading = True
        pump(raw.clock, raw.wire)
        self.assertEqual(b"\x8a\x06019999", raw.got[-8:])


class CloseTests(SynchronousTestCase):
    """Ends of connections."""

    def test_client_closes(self) -> None:
        """A close frame of the client is answered, then the connection is closed."""
        pair = _Pair()
        pair.client.send(b"last")
        pair.client.close()
        pair.pump()
        self.assertEqual(([b"last"], [True]), (pair.at_server.messages, pair.at_server.ends))
        self.assertEqual([], pair.at_client.ends)
        self.assertTrue(pair.wire.first.disconnected and pair.wire.second.disconnected)
        self.assertEqual([], pair.clock.getDelayedCalls())

    def test_server_closes(self) -> None:
        """After sending a close frame, the connection waits for the peer's close frame."""
        raw = _Raw()
        raw.connection.send(b"last")
        raw.connection.close()
        raw.connection.send(b"too late")
        raw.send(frame(2, b"after close"))
        self.assertEqual(b"\x82\x04last\x88\x02\x03\xe8", raw.got)
        self.assertFalse(raw.disconnected)
        raw.send(frame(8, b"\x03\xe8"))
        self.assertTrue(raw.disconnected)
        self.assertEqual(([], []), (raw.heard.messages, raw.heard.ends))
        self.assertEqual([], raw.clock.getDelayedCalls())

    def test_no_answer(self) -> None:
        """The wait for the peer's close frame has a timeout."""
        raw = _Raw()
        raw.connection.close()
        pump(raw.clock, raw.wire)
        raw.clock.advance(CLOSE_TIMEOUT - 1)
        pump(raw.clock, raw.wire)
        self.assertFalse(raw.disconnected)
        raw.clock.advance(1)
        pump(raw.clock, raw.wire)
        self.assertTrue(raw.disconnected)

    def test_slow_reader(self) -> None:
        """The timeout of the close handshake begins after the peer has read the data before the close frame."""
        raw = _Raw()
        raw.wire.second.reading = False
        raw.connection.send(b"x" * (FULL + 1))
        raw.connection.close()
        pump(raw.clock, raw.wire)
        raw.clock.advance(10 * CLOSE_TIMEOUT)
        pump(raw.clock, raw.wire)
        raw.wire.second.reading = True
        pump(raw.clock, raw.wire)
        self.assertEqual(b"\x88\x02\x03\xe8", raw.got[-4:])
        self.assertFalse(raw.disconnected)
        raw.clock.advance(CLOSE_TIMEOUT)
        pump(raw.clock, raw.wire)
        self.assertTrue(raw.disconnected)

    def test_at_once(self) -> None:
        """close(wait=False) closes the connection after the close frame."""
        raw = _Raw()
        raw.connection.close(1001, wait=False)
        pump(raw.clock, raw.wire)
        self.assertEqual((b"\x88\x02\x03\xe9", True), (raw.got, raw.disconnected))

    def test_lost(self) -> None:
        """The loss of a connection without a close frame is not a clean close."""
        pair = _Pair()
        pair.wire.first.loseConnection()
        pair.pump()
        self.assertEqual([False], pair.at_server.ends)

    def test_close_while_held(self) -> None:
        """Closing a paused connection that was lost calls on_connection_lost but not the listener."""
        pair = _Pair()
        disconnected: list[bool] = []
        pair.server.on_connection_lost = lambda: disconnected.append(True)
        pair.server.pause_reading("one")
        pair.wire.first.abortConnection()
        self.assertEqual([], disconnected)
        pair.server.close()
        self.assertEqual(([True], []), (disconnected, pair.at_server.ends))
        self.assertEqual([], pair.clock.getDelayedCalls())

    def test_not_connected(self) -> None:
        """A connection that was never established can be closed."""
        clock = Clock()
        connection = WebSocketConnection(clock, _RecordingListener())
        connection.close()
        connection.abort()
        self.assertEqual([], clock.getDelayedCalls())

    def test_abort(self) -> None:
        """abort() closes the connection immediately."""
        pair = _Pair()
        pair.server.pause_reading("one")
        pair.server.abort()
        self.assertTrue(pair.wire.second.disconnected)
        self.assertEqual([False], pair.at_server.ends)

    def test_garbage(self) -> None:
        """Invalid frames are answered with a close frame with the reason, and the connection is closed."""
        for data, code in [
            (b"\x82\x01x", 1002),
            (frame(3), 1002),
            (frame(0, b"x"), 1002),
            (frame(9, fin=False), 1002),
            (frame(0x42), 1002),
            (frame(1, b"\xff"), 1007),
            (frame(8, b"x"), 1002),
            (b"\x82\xff" + b"\xff" * 12, 1002),
        ]:
            raw = _Raw()
            raw.send(data + frame(2, b"more"))
            self.assertEqual(b"\x88", raw.got[:1])
            self.assertEqual(struct.pack(">H", code), raw.got[2:4])
            self.assertTrue(raw.disconnected)
            self.assertEqual([False], raw.heard.ends)
            self.assertEqual([], raw.heard.messages)

    @given(st.binary(max_size=200), st.integers(1, 30))
    def test_any_bytes(self, data: bytes, size: int) -> None:
        """Any bytes of a client are handled without other errors."""
        raw = _Raw()
        raw.send(data, size)

    @given(st.integers(0, 255), st.binary(max_size=100), st.booleans())
    def test_any_frame(self, opcode: int, payload: bytes, fin: bool) -> None:
        """Any frames of a client are handled without other errors."""
        raw = _Raw()
        raw.send(frame(opcode, payload, fin) + frame(8))
        self.assertEqual(1, len(raw.heard.ends))
