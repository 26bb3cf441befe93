"""Tests for L{kubetwist.storage.etcd._http2} with the library h2."""

from __future__ import annotations

import contextlib
from typing import Any

from h2.settings import SettingCodes
from hpack import Encoder
from hyperframe.frame import (
    ContinuationFrame,
    DataFrame,
    GoAwayFrame,
    HeadersFrame,
    PingFrame,
    PushPromiseFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)
from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.storage.etcd._errors import (
    NoResponse,
    ProtocolError,
    RPCError,
)
from kubetwist.storage.etcd._http2 import (
    CONNECTION_WINDOW,
    MAX_PENDING_ACKS,
    MAX_STREAM_ID,
    STREAM_WINDOW,
    Call,
    Session,
)

from .peer import (
    ALL_WELL,
    ANSWER,
    Peer,
    cut,
)


class RecordedCall(Call):
    """A call that records its results."""

    def __init__(self, path: bytes = b"/s/M", message: bytes = b"question", **options: bool) -> None:
        super().__init__(path, message, 1 << 30, **options)
        self.messages: list[bytes] = []
        self.over: list[Any] = []

    def received(self, message: bytes) -> None:
        """See L{Call.received}."""
        self.messages.append(message)
        if message == b"breaks":
            raise ValueError("broken")

    def ended(self) -> None:
        """See L{Call.ended}."""
        self.over.append("ended")

    def failed(self, error: Exception) -> None:
        """See L{Call.failed}."""
        self.over.append(error)


class SessionCase(SynchronousTestCase):
    """Has both sides of a connection."""

    def make(self, settings: dict[Any, int] | None = None) -> tuple[Session, Peer]:
        """Create both sides, and exchange their prefaces."""
        self.refused: list[Call] = []
        self.asked_for_life = 0
        session = Session("etcd:2379", "http", self.refused.append, self.pinged)
        peer = Peer(settings)
        peer.receive(session.connection_preface())
        self.assertFalse(session.has_capacity)
        self.turn(session, peer)
        self.assertTrue(session.ready)
        return session, peer

    def pinged(self) -> None:
        """Record a ping of the peer."""
        self.asked_for_life += 1

    def turn(self, session: Session, peer: Peer) -> None:
        """Let both sides exchange data until neither sends any more."""
        while True:
            sent, answered = session.data_to_send(), peer.data_to_send()
            if not sent and not answered:
                return
            if sent:
                peer.receive(sent)
            if answered:
                session.feed(answered)

    def begin(self, session: Session, peer: Peer, call: RecordedCall | None = None) -> RecordedCall:
        """Send a call."""
        call = call or RecordedCall()
        session.begin(call)
        self.turn(session, peer)
        return call


class CallTests(SessionCase):
    """Calls with responses."""

    def test_answer(self) -> None:
        """A call sends a method and a message, and ends with its response."""
        session, peer = self.make()
        calls = [self.begin(session, peer, RecordedCall(path)) for path in (b"/s/A", b"/s/B", b"/s/A")]
        self.assertEqual(peer.paths(), [b"/s/A", b"/s/B", b"/s/A"])
        self.assertEqual((peer.messages(3), peer.ended), ([b"question"], [1, 3, 5]))
        for stream in (5, 1, 3):
            peer.answer(stream, b"%d" % stream)
        self.turn(session, peer)
        self.assertEqual([call.messages for call in calls], [[b"1"], [b"3"], [b"5"]])
        self.assertEqual([call.over for call in calls], [["ended"]] * 3)
        self.assertEqual((session.calls, peer.resets), ({}, {}))

    def test_refusal(self) -> None:
        """A response may be an error in its headers or in its trailers."""
        session, peer = self.make()
        first, second = self.begin(session, peer), self.begin(session, peer)
        peer.h2.send_headers(1, [*ANSWER, (b"grpc-status", b"3"), (b"grpc-message", b"too%20large")], end_stream=True)
        peer.begin(3)
        peer.finish(3, [(b"grpc-status", b"14")])
        self.turn(session, peer)
        result = [(error.code, error.message) for call in (first, second) for error in call.over]
        self.assertEqual(result, [(3, "too large"), (14, "etcd responded with code 14")])

    def test_something_else_answers(self) -> None:
        """A response that is not gRPC is an error of its kind, and ends only its call."""
        session, peer = self.make()
        calls = [self.begin(session, peer) for _ in range(3)]
        peer.h2.send_headers(1, [(b":status", b"503"), (b"content-type", b"text/html")])
        peer.h2.send_data(1, b"<html>")
        peer.h2.send_headers(3, [(b":status", b"404")], end_stream=True)
        peer.answer(5, b"fine")
        self.turn(session, peer)
        self.assertEqual([error.code for call in calls[:2] for error in call.over], [14, 12])
        self.assertEqual((calls[2].over, list(peer.resets)), (["ended"], [1]))

    def test_stream(self) -> None:
        """A streaming call receives messages until it is cancelled; later messages are dropped."""
        session, peer = self.make()
        call = self.begin(session, peer, RecordedCall(streaming=True))
        self.assertEqual(peer.ended, [])
        peer.begin(1)
        for message in (b"one", b"", b"three"):
            peer.send(1, message)
        self.turn(session, peer)
        self.assertEqual(call.messages, [b"one", b"", b"three"])
        session.cancel(call)
        peer.send(1, b"late")
        self.turn(session, peer)
        self.assertEqual((call.messages[3:], call.over, peer.resets), ([], [], {1: 8}))
        self.assertFalse(session.calls)

    def test_broken_receiver(self) -> None:
        """A call that raises on a message is cancelled; other calls continue."""
        session, peer = self.make()
        first, second = self.begin(session, peer, RecordedCall(streaming=True)), self.begin(session, peer)
        peer.begin(1)
        peer.send(1, b"breaks")
        peer.send(1, b"more")
        peer.answer(3, b"fine")
        self.turn(session, peer)
        self.assertIsInstance(first.over[0], NoResponse)
        self.assertEqual((first.messages, second.over, list(peer.resets)), ([b"breaks"], ["ended"], [1]))

    @given(st.lists(st.integers(0, 4000), max_size=30))
    def test_pieces(self, places: list[int]) -> None:
        """Responses are the same however their bytes are split."""
        session, peer = self.make()
        calls = [self.begin(session, peer, RecordedCall(streaming=number == 1)) for number in range(3)]
        peer.begin(3)
        peer.send(3, b"x" * 500)
        peer.answer(1, b"y" * 700)
        peer.h2.ping(b"12345678")
        peer.send(3, b"z")
        peer.answer(5, b"")
        for piece in cut(peer.data_to_send(), places):
            session.feed(piece)
        self.assertEqual([call.messages for call in calls], [[b"y" * 700], [b"x" * 500, b"z"], [b""]])
        self.assertEqual([call.over for call in calls], [["ended"], [], ["ended"]])


class WindowTests(SessionCase):
    """Flow control in both directions."""

    def test_large_request(self) -> None:
        """A large request is sent as the peer's window allows; small requests do not wait for its stream's window."""
        session, peer = self.make()
        peer.giving_back = False
        large = self.begin(session, peer, RecordedCall(message=b"l" * 300_000))
        self.assertEqual(len(peer.bodies[1]), 65535)
        peer.h2.increment_flow_control_window(100_000)
        self.turn(session, peer)
        self.assertEqual(len(peer.bodies[1]), 65535)
        self.begin(session, peer, RecordedCall(message=b"small"))
        self.assertEqual((peer.messages(3), peer.ended), ([b"small"], [3]))
        while 1 not in peer.ended:
            before = len(peer.bodies[1])
            peer.h2.increment_flow_control_window(50_000)
            peer.h2.increment_flow_control_window(40_000, 1)
            self.turn(session, peer)
            self.assertGreater(len(peer.bodies[1]), before)
        self.assertEqual(peer.messages(1), [b"l" * 300_000])
        peer.answer(1, b"done")
        self.turn(session, peer)
        self.assertEqual(large.over, ["ended"])

    def test_window_of_connection(self) -> None:
        """Requests wait in order for the window of the connection."""
        session, peer = self.make({SettingCodes.INITIAL_WINDOW_SIZE: 1 << 20})
        peer.giving_back = False
        for message in (b"a" * 100_000, b"b" * 10):
            self.begin(session, peer, RecordedCall(message=message))
        self.assertEqual((len(peer.bodies[1]), peer.bodies[3]), (65535, b""))
        peer.h2.increment_flow_control_window(100_000)
        self.turn(session, peer)
        self.assertEqual((peer.messages(1), peer.messages(3)), ([b"a" * 100_000], [b"b" * 10]))

    def test_other_settings(self) -> None:
        """The peer can change windows, frame sizes, table sizes and the number of streams at any time."""
        session, peer = self.make({SettingCodes.INITIAL_WINDOW_SIZE: 10})
        peer.giving_back = False
        call = self.begin(session, peer, RecordedCall(message=b"m" * 40_000))
        self.assertEqual(len(peer.bodies[1]), 10)
        peer.h2.update_settings(
            {
                SettingCodes.INITIAL_WINDOW_SIZE: 50_000,
                SettingCodes.MAX_FRAME_SIZE: 30_000,
                SettingCodes.MAX_CONCURRENT_STREAMS: 1,
                SettingCodes.HEADER_TABLE_SIZE: 0,
            }
        )
        self.turn(session, peer)
        self.assertEqual((peer.messages(1), session.has_capacity), ([b"m" * 40_000], False))
        peer.answer(1, b"")
        self.turn(session, peer)
        self.assertEqual((call.over, session.has_capacity), (["ended"], True))
        self.begin(session, peer)
        # A window can become negative; then nothing is sent until window updates make it positive.
        peer.answer(3, b"")
        peer.h2.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 100})
        self.turn(session, peer)
        self.begin(session, peer, RecordedCall(message=b"m" * 200))
        peer.h2.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 50})
        self.turn(session, peer)
        peer.h2.increment_flow_control_window(50, 5)
        self.turn(session, peer)
        self.assertEqual(len(peer.bodies[5]), 100)
        peer.h2.increment_flow_control_window(500, 5)
        self.turn(session, peer)
        self.assertEqual(peer.messages(5), [b"m" * 200])

    def test_large_answers(self) -> None:
        """Windows are updated for received data, so that responses of any size arrive."""
        session, peer = self.make()
        call = self.begin(session, peer, RecordedCall(streaming=True))
        peer.begin(1)
        sent = 0
        while sent < CONNECTION_WINDOW + STREAM_WINDOW:
            peer.send(1, bytes(1 << 20))
            sent += 1 << 20
            self.turn(session, peer)
        self.assertEqual(sum(map(len, call.messages)), sent)
        self.assertEqual(peer.h2.remote_settings[SettingCodes.INITIAL_WINDOW_SIZE], STREAM_WINDOW)

    def test_canceled_request(self) -> None:
        """A cancelled call sends no more data, nor does a call that gets its response early."""
        session, peer = self.make()
        peer.giving_back = False
        first = self.begin(session, peer, RecordedCall(message=bytes(100_000)))
        session.cancel(first)
        self.turn(session, peer)
        peer.h2.increment_flow_control_window(100_000)
        second = self.begin(session, peer, RecordedCall(message=bytes(200_000)))
        peer.h2.send_headers(3, [*ANSWER, (b"grpc-status", b"8")], end_stream=True)
        self.turn(session, peer)
        peer.h2.increment_flow_control_window(200_000)
        third = self.begin(session, peer)
        peer.answer(5, b"fine")
        self.turn(session, peer)
        self.assertEqual((first.over, second.over[0].code, third.over), ([], 8, ["ended"]))
        self.assertEqual((len(peer.bodies[1]), peer.resets), (65535, {1: 8, 3: 0}))


class EndTests(SessionCase):
    """Ends of connections and streams, and the outcome of calls."""

    def test_reset(self) -> None:
        """A refused stream was not processed; the outcome of a reset stream is unknown."""
        session, peer = self.make()
        refused, broken = self.begin(session, peer), self.begin(session, peer)
        peer.h2.reset_stream(1, 7)
        peer.h2.reset_stream(3, 2)
        self.turn(session, peer)
        self.assertEqual((self.refused, refused.over), ([refused], []))
        self.assertIsInstance(broken.over[0], NoResponse)

    def test_going_away(self) -> None:
        """After GOAWAY processed calls are finished, except watches; the remaining calls were not processed."""
        session, peer = self.make()
        begun, watch, new = self.begin(session, peer), RecordedCall(streaming=True), self.begin(session, peer)
        self.begin(session, peer, watch)
        self.assertEqual([begun.stream, new.stream, watch.stream], [1, 3, 5])
        peer.begin(1)
        session.feed(peer.data_to_send() + GoAwayFrame(0, 1).serialize())
        self.assertEqual((session.usable, session.has_capacity, begun.over), (False, False, []))
        self.assertEqual(self.refused, [new, watch])
        peer.send(1, b"done")
        peer.finish(1)
        session.feed(peer.data_to_send())
        self.assertEqual((begun.over, session.calls), (["ended"], {}))
        with self.assertRaises(ProtocolError):
            session.feed(GoAwayFrame(0, 5).serialize())

    def test_shutting_down(self) -> None:
        """GOAWAY ends watches immediately, so that they resume on another member."""
        session, peer = self.make()
        watch, call = self.begin(session, peer, RecordedCall(streaming=True)), self.begin(session, peer)
        session.feed(GoAwayFrame(0, MAX_STREAM_ID, 0, b"bye").serialize())
        self.assertIn("bye", str(watch.over[0]))
        self.assertEqual((list(session.calls.values()), session.too_many_pings), ([call], False))
        session.feed(GoAwayFrame(0, 3, 11, b"too_many_pings").serialize())
        self.assertTrue(session.too_many_pings)

    def test_lost(self) -> None:
        """The loss of the connection fails all its calls."""
        session, peer = self.make()
        calls = [self.begin(session, peer) for _ in range(2)]
        error = NoResponse("lost")
        session.lost(error)
        self.assertEqual([call.over for call in calls], [[error], [error]])
        self.assertFalse(session.has_capacity)

    def test_last_stream(self) -> None:
        """A connection has a maximum stream id, and then accepts no more calls."""
        session, peer = self.make()
        self.begin(session, peer)
        session._next_stream_id = MAX_STREAM_ID
        session.begin(RecordedCall())
        self.assertEqual((sorted(session.calls), session.usable), ([1, MAX_STREAM_ID], False))

    def test_keepalive_pings(self) -> None:
        """Pings are answered with a delay; a second ping is answered immediately."""
        session, peer = self.make()
        peer.h2.ping(b"12345678")
        session.feed(peer.data_to_send())
        self.assertEqual((session.data_to_send(), self.asked_for_life), (b"", 1))
        session.acknowledge()
        self.assertEqual(session.data_to_send(), PingFrame(0, b"12345678", flags=["ACK"]).serialize())
        for _ in range(2):
            peer.h2.ping(b"abcdefgh")
        session.feed(peer.data_to_send())
        self.assertEqual(session.data_to_send(), PingFrame(0, b"abcdefgh", flags=["ACK"]).serialize() * 2)
        session.ping()
        self.turn(session, peer)
        self.assertEqual(peer.pings, 1)

    def test_flood(self) -> None:
        """A peer that requests replies without reading them is disconnected."""
        for frame in (PingFrame(0, b"12345678"), SettingsFrame(0)):
            session, _ = self.make()
            with self.assertRaises(ProtocolError):
                session.feed(frame.serialize() * (MAX_PENDING_ACKS + 2))


class StrictTests(SessionCase):
    """Protocol violations close the connection."""

    def head(self, *headers: tuple[bytes, bytes]) -> bytes:
        """Return a header block."""
        encoder = Encoder()
        encoder.header_table_size = 0
        return encoder.encode(headers)

    def test_beginning(self) -> None:
        """A connection that does not begin with SETTINGS is rejected."""
        for data in (
            PingFrame(0, b"12345678").serialize(),
            SettingsFrame(0, flags=["ACK"]).serialize(),
            b"SSH-2.0-x\r\n",
        ):
            session = Session("a", "http", self.fail, self.fail)
            with self.assertRaises(ProtocolError):
                session.feed(data)

    def test_rules(self) -> None:
        """Each of these frames is a protocol violation."""
        valid, trailers = self.head(*ANSWER), self.head(*ALL_WELL)

        def headers(block: bytes, *flags: str, stream: int = 1) -> bytes:
            return HeadersFrame(stream, block, flags=["END_HEADERS", *flags]).serialize()

        begun = headers(valid)
        complete = DataFrame(1, b"\0\0\0\0\1a").serialize()
        for name, data in {
            "data before headers": complete,
            "no trailers": begun + DataFrame(1, b"", flags=["END_STREAM"]).serialize(),
            "no status": headers(self.head((b"a", b"b"))),
            "no code": begun + complete + headers(self.head((b"a", b"b")), "END_STREAM"),
            "headers amid": begun + headers(valid),
            "status in the end": begun + headers(valid, "END_STREAM"),
            "half a message": begun + DataFrame(1, b"\0\0\0\0\2a").serialize() + headers(trailers, "END_STREAM"),
            "compressed": begun + DataFrame(1, b"\1\0\0\0\1a").serialize(),
            "only informational": headers(self.head((b":status", b"100")), "END_STREAM"),
            "unknown stream": headers(valid, stream=7),
            "the other's": headers(valid, stream=2),
            "reset of nothing": RstStreamFrame(9).serialize(),
            "a push": PushPromiseFrame(1, 2, b"", flags=["END_HEADERS"]).serialize(),
            "too wide": WindowUpdateFrame(0, (1 << 31) - 1).serialize(),
            "one too wide": WindowUpdateFrame(1, (1 << 31) - 1).serialize() * 2,
            "no window": WindowUpdateFrame(1, 1).serialize()[:-1] + b"\0",
            "frames too small": SettingsFrame(0, {5: 100}).serialize(),
            "a window too large": SettingsFrame(0, {4: 1 << 31}).serialize(),
            "a continuation": ContinuationFrame(1, valid).serialize(),
        }.items():
            session, peer = self.make()
            self.begin(session, peer)
            with self.assertRaises(ProtocolError, msg=name):
                session.feed(data)

    def test_allowed(self) -> None:
        """Each of these frames is valid, and ignored."""
        session, peer = self.make()
        call = self.begin(session, peer)
        informational = HeadersFrame(1, self.head((b":status", b"103")), flags=["END_HEADERS"]).serialize()
        unknown = b"\0\0\2\x42\0\0\0\0\1ab"
        priority = b"\0\0\5\2\0\0\0\0\1" + bytes(4) + b"\x10"
        session.feed(informational + unknown + priority + SettingsFrame(0, {0x99: 5}).serialize())
        peer.answer(1, b"fine")
        self.turn(session, peer)
        self.assertEqual(call.over, ["ended"])

    @given(st.binary(max_size=120), st.integers(0, 60))
    def test_any_bytes(self, noise: bytes, where: int) -> None:
        """After any bytes among valid frames, the connection continues or raises L{ProtocolError}."""
        session, peer = self.make()
        self.begin(session, peer, RecordedCall(streaming=True))
        peer.begin(1)
        peer.send(1, b"message")
        data = peer.data_to_send()
        with contextlib.suppress(ProtocolError):
            session.feed(data[:where] + noise + data[where:])

    def test_errors(self) -> None:
        """An error of etcd states whether a write may have been applied."""
        for code, message, uncertain, retry_other_member in (
            (3, "etcdserver: request is too large", False, False),
            (8, "etcdserver: too many requests", False, True),
            (14, "etcdserver: request timed out", True, True),
            (14, "etcdserver: rpc not supported for learner", True, True),
            (9, "etcdserver: rpc not supported for learner", False, True),
            (2, "?", True, True),
            (5, "etcdserver: requested lease not found", False, False),
            (16, "etcdserver: invalid auth token", False, False),
        ):
            error = RPCError(code, message)
            self.assertEqual((error.uncertain, error.retry_other_member), (uncertain, retry_other_member), message)
        self.assertTrue(RPCError(11, "etcdserver: mvcc: required revision has been compacted").compacted)
        self.assertTrue(RPCError(11, "etcdserver: mvcc: required revision is a future revision").future)
