"""Tests for L{kubetwist.streams.spdy}."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.streams import spdy
from kubetwist.streams.framedprotocol import (
    MAX_BUFFERED_BYTES,
    MAX_FRAMES_PER_TURN,
)
from kubetwist.streams.spdy import (
    OPEN_TIMEOUT,
    SPDYConnection,
    SPDYStream,
    StreamConnectionLost,
    StreamEnded,
    StreamReset,
    StreamTimeout,
)
from kubetwist.streams.spdyframes import (
    REFUSED_STREAM,
    Data,
    FrameReader,
    FrameWriter,
    GoAway,
    Ping,
    RstStream,
    Settings,
    SynReply,
    SynStream,
    WindowUpdate,
)

from .wires import FULL, Wire, pump


class _RecordingListener:
    """Records the events of a stream."""

    def __init__(self) -> None:
        self.data = b""
        self.finished = False
        self.reason: StreamEnded | None = None

    def data_received(self, data: bytes) -> None:
        assert not self.finished and self.reason is None
        self.data += data

    def remote_finished(self) -> None:
        assert not self.finished and self.reason is None
        self.finished = True

    def lost(self, reason: StreamEnded) -> None:
        assert self.reason is None
        self.reason = reason


class _Pair:
    """A connected client and a server that accepts all streams."""

    def __init__(self, **options: Any) -> None:
        self.clock = Clock()
        self.streams: list[SPDYStream] = []
        self.heard: list[_RecordingListener] = []
        self.client = SPDYConnection(self.clock)
        self.server = SPDYConnection(self.clock, server=True, accept=self.accept, **options)
        self.wire = Wire(self.client, self.server)

    def accept(self, stream: SPDYStream) -> bool:
        if stream.header("streamtype") == "odd":
            return False
        self.streams.append(stream)
        self.heard.append(_RecordingListener())
        stream.listener = self.heard[-1]
        return True

    def pump(self, size: int = 1 << 16) -> None:
        pump(self.clock, self.wire, size=size)


class _Raw:
    """A raw peer that sends and receives bytes."""

    def __init__(self, **options: Any) -> None:
        self.clock = Clock()
        self.got = b""
        self.disconnected = False
        self.writer = FrameWriter()
        self.connection = SPDYConnection(self.clock, **options)
        self.wire = Wire(self.connection, self)

    def makeConnection(self, transport: Any) -> None:
        self.transport = transport

    def dataReceived(self, data: bytes) -> None:
        self.got += data

    def connectionLost(self, reason: Any) -> None:
        self.disconnected = True

    def send(self, *frames: Any) -> None:
        self.transport.write(b"".join(self.writer.write(frame) for frame in frames))
        pump(self.clock, self.wire)

    def frames(self) -> list[Any]:
        """Return all received frames."""
        pump(self.clock, self.wire)
        reader = FrameReader()
        reader.feed(self.got)
        result = []
        while (frame := reader.next()) is not None:
            result.append(frame)
        return result


class StreamTests(SynchronousTestCase):
    """Streams between two SPDYConnections."""

    def open(self, pair: _Pair, kind: str = "stdout") -> tuple[SPDYStream, _RecordingListener]:
        """Open a stream of the client."""
        heard = _RecordingListener()
        opening = pair.client.create_stream({"streamtype": kind}, heard)
        self.assertNoResult(opening)
        pair.pump()
        return self.successResultOf(opening), heard

    @given(st.lists(st.binary(max_size=50), max_size=6), st.integers(1, 40))
    def test_both_ways(self, pieces: list[bytes], size: int) -> None:
        """Data and its end arrive in order, however the bytes are split."""
        pair = _Pair()
        stream, heard = self.open(pair)
        self.assertEqual("stdout", pair.streams[0].header("streamtype"))
        for piece in pieces:
            stream.write(piece)
            pair.streams[0].write(piece[::-1])
        stream.finish()
        pair.pump(size)
        self.assertEqual(
            (b"".join(pieces), True, None), (pair.heard[0].data, pair.heard[0].finished, pair.heard[0].reason)
        )
        self.assertEqual((b"".join(piece[::-1] for piece in pieces), False), (heard.data, heard.finished))
        pair.streams[0].finish()
        pair.pump(size)
        self.assertTrue(heard.finished)
        self.assertEqual(({}, {}), (pair.client._streams, pair.server._streams))

    def test_long_writes(self) -> None:
        """Data above the maximum frame size is sent in several frames."""
        pair = _Pair()
        stream, _ = self.open(pair)
        data = bytes(range(256)) * 100_000
        stream.write(data)
        pair.pump()
        self.assertEqual(data, pair.heard[0].data)

    def test_reset(self) -> None:
        """Resetting a stream calls the listener of the peer once, and no other listener."""
        pair = _Pair()
        stream, heard = self.open(pair)
        _, other = self.open(pair)
        pair.streams[0].reset()
        pair.streams[0].write(b"late")
        pair.pump()
        self.assertIsInstance(heard.reason, StreamReset)
        self.assertIsNone(pair.heard[0].reason)
        self.assertIsNone(other.reason)
        stream.write(b"dropped")
        stream.finish()
        pair.pump()
        self.assertEqual(b"", pair.heard[0].data)

    def test_refused(self) -> None:
        """A stream that the peer refuses fails to open."""
        pair = _Pair()
        opening = pair.client.create_stream({"streamtype": "odd"}, _RecordingListener())
        pair.pump()
        self.assertEqual(REFUSED_STREAM, self.failureResultOf(opening, StreamReset).value.status)

    def test_client_takes_none(self) -> None:
        """A connection without C{accept} refuses all streams."""
        pair = _Pair()
        opening = pair.server.create_stream({"streamtype": "stdout"}, _RecordingListener())
        pair.pump()
        self.failureResultOf(opening, StreamReset)

    def test_not_accepted(self) -> None:
        """Opening a stream has a timeout."""
        raw = _Raw()
        opening = raw.connection.create_stream({"streamtype": "stdout"}, _RecordingListener())
        raw.clock.advance(OPEN_TIMEOUT - 1)
        self.assertNoResult(opening)
        raw.clock.advance(1)
        self.assertEqual("Timeout occurred", str(self.failureResultOf(opening, StreamTimeout).value))
        self.assertIsInstance(raw.frames()[-1], RstStream)

    def test_given_up(self) -> None:
        """Cancelling the opening of a stream resets it."""
        raw = _Raw()
        opening = raw.connection.create_stream({"streamtype": "stdout"}, _RecordingListener())
        opening.addErrback(lambda _: None)
        opening.cancel()
        self.assertEqual([SynStream(1, {"streamtype": "stdout"}), RstStream(1, 5)], raw.frames())
        self.assertEqual([], raw.clock.getDelayedCalls())

    def test_connection_lost(self) -> None:
        """The loss of the connection ends all its streams, also those that are being opened."""
        pair = _Pair()
        _, heard = self.open(pair)
        opening = pair.client.create_stream({}, _RecordingListener())
        pair.wire.first.abortConnection()
        self.assertIsInstance(heard.reason, StreamConnectionLost)
        self.failureResultOf(opening, StreamConnectionLost)
        self.failureResultOf(pair.client.create_stream({}, _RecordingListener()), StreamConnectionLost)
        self.assertEqual([], pair.clock.getDelayedCalls())

    def test_close(self) -> None:
        """Closing a connection resets its streams, sends GOAWAY, and closes the transport after that."""
        raw = _Raw()
        heard = _RecordingListener()
        opening = raw.connection.create_stream({}, heard)
        raw.send(SynReply(1, {}))
        finished = raw.connection.create_stream({}, heard)
        raw.send(SynReply(3, {}))
        self.successResultOf(finished).finish()
        self.successResultOf(opening).write(b"last")
        raw.connection.close()
        raw.connection.close()
        self.assertEqual(
            [
                SynStream(1, {}),
                SynStream(3, {}),
                Data(3, b"", True),
                Data(1, b"last"),
                RstStream(1, 5),
                GoAway(0),
            ],
            raw.frames(),
        )
        self.assertTrue(raw.disconnected)
        self.assertIsNone(heard.reason)

    def test_goaway(self) -> None:
        """After GOAWAY no stream can be opened, and the connection is closed when its streams have ended."""
        pair = _Pair()
        stream, heard = self.open(pair)
        pair.server._write(GoAway(1))
        pair.pump()
        self.failureResultOf(pair.client.create_stream({}, _RecordingListener()), StreamConnectionLost)
        stream.write(b"more")
        pair.streams[0].write(b"more")
        pair.streams[0].finish()
        pair.pump()
        self.assertEqual((b"more", b"more"), (heard.data, pair.heard[0].data))
        self.assertFalse(pair.wire.first.disconnected)
        stream.finish()
        pair.pump()
        self.assertTrue(pair.wire.first.disconnected and pair.wire.second.disconnected)


class PeerTests(SynchronousTestCase):
    """Behaviour of peers."""

    def test_pings(self) -> None:
        """Pings of the peer are returned; replies to pings are not."""
        raw = _Raw()
        raw.send(Ping(2), Ping(3), Ping(4))
        self.assertEqual([Ping(2), Ping(4)], raw.frames())

    def test_ping_every(self) -> None:
        """Pings are sent in the given interval until the connection is closed."""
        raw = _Raw()
        raw.connection.ping_every(5)
        raw.clock.pump([1] * 11)
        self.assertEqual([Ping(1), Ping(3)], raw.frames())
        raw.connection.close()
        self.assertEqual([], raw.clock.getDelayedCalls())

    def test_ignored(self) -> None:
        """Settings, window updates and data of unknown streams are ignored."""
        raw = _Raw()
        raw.send(Settings({4: (0, 1)}), WindowUpdate(1, 5), Data(7, b"x", True), SynReply(7, {}), RstStream(7, 1))
        self.assertEqual([], raw.frames())
        self.assertFalse(raw.disconnected)

    def test_garbage(self) -> None:
        """Invalid frames close the connection, and its streams are lost."""
        raw = _Raw()
        heard = _RecordingListener()
        raw.connection.create_stream({}, heard)
        raw.send(SynReply(1, {}))
        raw.transport.write(b"\xff" * 100)
        self.assertEqual(GoAway(0, 1), raw.frames()[-1])
        self.assertTrue(raw.disconnected)
        self.assertIsInstance(heard.reason, StreamConnectionLost)

    @given(st.binary(max_size=300), st.booleans())
    def test_any_bytes(self, data: bytes, server: bool) -> None:
        """Any bytes of the peer are handled without other errors."""
        raw = _Raw(server=server, accept=None)
        heard = _RecordingListener()
        opening = raw.connection.create_stream({}, heard)
        opening.addErrback(lambda failure: failure.trap(StreamEnded))
        raw.transport.write(data)
        raw.frames()

    def test_stream_numbers(self) -> None:
        """Streams with used ids, or ids of the wrong side, are reset."""
        pair = _Raw(server=True, accept=lambda stream: bool(setattr(stream, "listener", _RecordingListener())) or True)
        pair.send(SynStream(5, {}), SynStream(3, {}), SynStream(8, {}))
        self.assertEqual([SynReply(5, {}), RstStream(3, 1), RstStream(8, 1)], pair.frames())

    def test_many_streams(self) -> None:
        """The number of concurrent streams of the peer is limited."""
        raw = _Raw(
            server=True,
            max_streams=2,
            accept=lambda stream: bool(setattr(stream, "listener", _RecordingListener())) or True,
        )
        raw.send(*(SynStream(number, {}) for number in (1, 3, 5)), RstStream(1, 5), SynStream(7, {}))
        self.assertEqual([SynReply(1, {}), SynReply(3, {}), RstStream(5, 3), SynReply(7, {})], raw.frames())

    def test_refused_too_often(self) -> None:
        """A peer that opens too many refused streams is disconnected."""
        self.patch(spdy, "MAX_REFUSED_STREAMS", 10)
        raw = _Raw()
        raw.send(*(SynStream(2 * number, {}) for number in range(1, 20)))
        self.assertEqual([*(RstStream(2 * number, 3) for number in range(1, 11)), GoAway(0, 1)], raw.frames())
        self.assertTrue(raw.disconnected)

    def test_flood_of_pings(self) -> None:
        """Pings of a peer that does not read are not answered."""
        raw = _Raw()
        raw.transport.reading = False
        raw.send(*(Ping(2 * number) for number in range(1, 100_000)))
        self.assertLess(raw.wire.first.most_waiting, FULL + 100)

    def test_portions(self) -> None:
        """Many small frames are handled in batches, with turns of the reactor in between."""
        pair = _Pair()
        opening = pair.client.create_stream({}, _RecordingListener())
        pair.pump()
        stream = self.successResultOf(opening)
        for _ in range(MAX_FRAMES_PER_TURN * 3):
            stream.write(b"x")
        pair.wire.pump()
        self.assertLess(len(pair.heard[0].data), MAX_FRAMES_PER_TURN * 2)
        self.assertFalse(pair.wire.second.reading)
        pair.pump()
        self.assertEqual(MAX_FRAMES_PER_TURN * 3, len(pair.heard[0].data))
        self.assertTrue(pair.wire.second.reading)


class BackpressureTests(SynchronousTestCase):
    """Backpressure."""

    def test_held(self) -> None:
        """Data for a paused connection waits in the network until reading resumes."""
        pair = _Pair()
        opening = pair.client.create_stream({}, _RecordingListener())
        pair.pump()
        stream = self.successResultOf(opening)
        pair.server.pause_reading("one")
        pair.server.pause_reading("two")
        for _ in range(100):
            stream.write(b"x" * 10_000)
        pair.pump()
        self.assertEqual(b"", pair.heard[0].data)
        self.assertLess(pair.server._buffered_bytes, 1000)
        pair.server.resume_reading("one")
        pair.pump()
        self.assertEqual(b"", pair.heard[0].data)
        pair.server.resume_reading("two")
        pair.pump()
        self.assertEqual(1_000_000, len(pair.heard[0].data))

    def test_watched(self) -> None:
        """A paused connection with C{watch} reads a limited amount, and its loss is reported immediately."""
        pair = _Pair()
        disconnected: list[bool] = []
        pair.server.on_connection_lost = lambda: disconnected.append(True)
        opening = pair.client.create_stream({}, _RecordingListener())
        pair.pump()
        stream = self.successResultOf(opening)
        pair.server.pause_reading("one", watch=True)
        for _ in range(100):
            stream.write(b"x" * 10_000)
        pair.pump()
        self.assertEqual(b"", pair.heard[0].data)
        self.assertGreater(pair.server._buffered_bytes, MAX_BUFFERED_BYTES)
        self.assertLess(pair.server._buffered_bytes, MAX_BUFFERED_BYTES + (1 << 16) + 1)
        pair.wire.first.abortConnection()
        self.assertEqual([True], disconnected)
        self.assertIsInstance(pair.heard[0].reason, StreamConnectionLost)

    def test_end_waits(self) -> None:
        """The loss of a connection is handled after the data that arrived before, even if reading is paused."""
        pair = _Pair()
        opening = pair.client.create_stream({}, _RecordingListener())
        pair.pump()
        stream = self.successResultOf(opening)
        stream.write(b"last words")
        stream.finish()
        # The data would be read by now if reading were not paused.
        pair.wire.first.loseConnection()
        pair.wire.second.pauseProducing = lambda: None  # type: ignore[method-assign]
        pair.server.pause_reading("one")
        pair.pump()
        self.assertEqual(b"", pair.heard[0].data)
        pair.server.resume_reading("one")
        pair.pump()
        self.assertEqual((b"last words", True), (pair.heard[0].data, pair.heard[0].finished))
        self.assertIsInstance(pair.heard[0].reason, StreamConnectionLost)

    def test_close_while_held(self) -> None:
        """Closing a paused connection that was lost reports its loss."""
        pair = _Pair()
        disconnected: list[bool] = []
        pair.server.on_connection_lost = lambda: disconnected.append(True)
        pair.server.ping_every(5)
        pair.server.pause_reading("one")
        pair.wire.first.abortConnection()
        self.assertEqual([], disconnected)
        pair.server.close()
        self.assertEqual([True], disconnected)
        self.assertEqual([], pair.clock.getDelayedCalls())

    def test_pressure(self) -> None:
        """on_backpressure is called when writing pauses and when it resumes."""
        pair = _Pair()
        reported: list[bool] = []
        pair.client.on_backpressure = reported.append
        opening = pair.client.create_stream({}, _RecordingListener())
        pair.pump()
        stream = self.successResultOf(opening)
        pair.server.pause_reading("one")
        stream.write(b"x" * FULL)
        stream.write(b"x" * FULL)
        self.assertEqual(([True], True), (reported, pair.client.write_paused))
        pair.server.resume_reading("one")
        pair.pump()
        self.assertEqual(([True, False], False), (reported, pair.client.write_paused))
