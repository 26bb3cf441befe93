"""Tests for L{kubetwist.storage.etcd._grpc}: members and connections, in memory, and over a socket that breaks."""

from __future__ import annotations

import contextlib
import socket
import struct
from typing import Any

from h2.settings import SettingCodes

from twisted.internet.error import ConnectionDone, ConnectionLost, ConnectionRefusedError
from twisted.internet.interfaces import IHandshakeListener, IPullProducer, IPushProducer
from twisted.internet.testing import MemoryReactorClock
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from kubetwist.storage.etcd._connection import (
    CONNECT_TIMEOUT,
    KEEPALIVE,
    PING_ACK_DELAY,
    Connection,
    Stream,
)
from kubetwist.storage.etcd._errors import (
    NoResponse,
    NotSent,
    ProtocolError,
    ResponseTimeout,
    RPCError,
)
from kubetwist.storage.etcd._grpc import Member
from kubetwist.storage.etcd._health import BACKOFF_FIRST
from kubetwist.storage.etcd._http2 import MAX_STREAM_ID
from kubetwist.storage.etcd.address import Address

from .case import RunningReactor
from .peer import Peer

PATH = b"/s/M"


class Wire:
    """
    The transport of a client that is connected to a L{Peer}.

    @ivar most: The number of bytes that are accepted before the transport is full; L{None} for no limit.
    @ivar broken: Whether written data is lost.
    """

    #: As over TLS.
    negotiatedProtocol = b"h2"

    def __init__(self, connection: Connection, peer: Peer) -> None:
        self.connection = connection
        self.peer = peer
        self.most: int | None = None
        self.broken = False
        self.closed = False
        self.producer: Any = None
        self.held = b""
        self.sent: list[bytes] = []

    def setTcpNoDelay(self, enabled: bool) -> None:
        """Return that no data is waiting."""

    setTcpKeepAlive = setTcpNoDelay

    def registerProducer(self, producer: Any, streaming: bool) -> None:
        """Register the producer of the written data."""
        self.producer = producer
        assert streaming is (self.writeSomeData is None)

    def writeSomeData(self, data: bytes) -> Any:
        """Write immediately."""
        assert not self.held, "what is written must not overtake what waits"
        if self.broken:
            return ConnectionLost()
        taken = len(data) if self.most is None else min(self.most, len(data))
        self.sent.append(data[:taken])
        return taken

    def write(self, data: bytes) -> None:
        """Write later."""
        self.held += data

    def drain(self) -> None:
        """Deliver the waiting data."""
        held, self.held, self.most = self.held, b"", None
        self.sent.append(held)
        self.producer.resumeProducing()

    def abortConnection(self) -> None:
        """Close the connection."""
        self.closed = True

    def lose(self, reason: Exception | None = None) -> None:
        """Handle that the peer has closed the connection."""
        self.closed = True
        self.connection.connectionLost(Failure(reason or ConnectionLost()))

    def turn(self) -> None:
        """Let both sides exchange data until neither sends any more."""
        while not self.closed:
            self.connection.channel.member.reactor.advance(0)
            sent, self.sent = b"".join(self.sent), []
            self.peer.receive(sent)
            answered = self.peer.data_to_send()
            if answered:
                self.connection.dataReceived(answered)
            elif not self.sent:
                return


class SlowWire(Wire):
    """A transport that buffers data and reports a full buffer, as TLS does."""

    writeSomeData = None

    def write(self, data: bytes) -> None:
        """Write immediately."""
        self.sent.append(data)


class MemberTests(SynchronousTestCase):
    """Calls of a member over connections in memory."""

    def setUp(self) -> None:
        """Create a member without connections."""
        self.reactor = MemoryReactorClock()
        self.examined: list[Member] = []
        self.member = Member(Address.parse("http://127.0.0.1:7"), self.reactor, None, self.examined.append)
        self.addCleanup(self.assert_clean)

    def assert_clean(self) -> None:
        """No calls remain when the member is closed."""
        self.member.close()
        self.reactor.advance(CONNECT_TIMEOUT)
        self.assertEqual([call for call in self.reactor.getDelayedCalls() if call.active()], [])

    def attempts(self) -> int:
        """Return the number of connection attempts."""
        return len(self.reactor.tcpClients)

    def connect(self, settings: dict[Any, int] | None = None, greet: bool = True, kind: type[Wire] = Wire) -> Wire:
        """Let the last connection attempt succeed."""
        host, port, factory, _, _ = self.reactor.tcpClients[-1]
        self.assertEqual((host, port), ("127.0.0.1", 7))
        protocol = factory.buildProtocol(None)
        connection = protocol._wrappedProtocol
        wire = kind(connection, Peer(settings))
        protocol.makeConnection(wire)
        if greet:
            wire.turn()
        return wire

    def refuse(self) -> None:
        """Let the last connection attempt fail."""
        self.reactor.tcpClients[-1][2].clientConnectionFailed(
            None, Failure(ConnectionRefusedError("connection refused"))
        )

    def send_call(self, seconds: float = 5.0, message: bytes = b"question") -> Any:
        """Send a request."""
        return self.member.call_unary(PATH, message, seconds)

    def watch(self, seconds: float = 5.0) -> tuple[Stream, list[bytes], list[Exception | None]]:
        """Open a stream; return its messages and its end."""
        messages: list[bytes] = []
        ends: list[Exception | None] = []
        return self.member.stream(PATH, b"all", messages.append, ends.append, seconds), messages, ends

    def test_calls(self) -> None:
        """All calls use one connection; calls that waited for it are sent in order."""
        answers = [self.send_call(message=b"%d" % number) for number in range(3)]
        wire = self.connect()
        answers.append(self.send_call(message=b"3"))
        wire.turn()
        streams = list(wire.peer.requests)
        self.assertEqual([wire.peer.messages(stream) for stream in streams], [[b"0"], [b"1"], [b"2"], [b"3"]])
        for stream in reversed(streams):
            wire.peer.answer(stream, b"to %d" % stream)
        wire.turn()
        self.assertEqual([self.successResultOf(answer) for answer in answers], [b"to %d" % one for one in streams])
        self.assertEqual(self.attempts(), 1)
        for interface in (IHandshakeListener, IPullProducer, IPushProducer):
            verifyObject(interface, wire.connection)

    def test_together(self) -> None:
        """The calls of one turn are sent together at its end."""
        wire = self.connect_watched()
        answers = [self.send_call() for _ in range(4)]
        self.assertEqual(wire.sent, [])
        self.reactor.advance(0)
        self.assertEqual(len(wire.sent), 1)
        answers.append(self.member.call_unary(PATH, b"question", 5.0, True))
        self.assertEqual(len(wire.sent), 2)
        wire.turn()
        self.assertEqual(wire.peer.ended, [1, 3, 5, 7, 9, 11])
        wire.lose()
        for answer in answers:
            self.failureResultOf(answer, NoResponse)

    def test_lost_before_sent(self) -> None:
        """Calls that were not written when their connection is lost are sent over another one."""
        wire = self.connect_watched()
        sent = self.send_call()
        self.reactor.advance(0)
        unsent, given_up = self.send_call(), self.watch()
        given_up[0].stop()
        second_attempt = self.send_call()
        wire.lose()
        self.failureResultOf(sent, NoResponse)
        other = self.connect()
        self.assertEqual(len(other.peer.requests), 2)
        for stream in (1, 3):
            other.peer.answer(stream, b"fine")
        other.turn()
        self.assertEqual((self.successResultOf(unsent), self.successResultOf(second_attempt)), (b"fine", b"fine"))

    def test_refusal(self) -> None:
        """A response may be an error of etcd; no response or several responses are errors."""
        answers = [self.send_call() for _ in range(3)]
        wire = self.connect()
        wire.peer.begin(1)
        wire.peer.finish(1, [(b"grpc-status", b"9"), (b"grpc-message", b"no")])
        wire.peer.begin(3)
        wire.peer.finish(3)
        wire.peer.begin(5)
        wire.peer.send(5, b"one")
        wire.peer.send(5, b"two")
        wire.turn()
        self.assertEqual(self.failureResultOf(answers[0], RPCError).value.message, "no")
        for answer in answers[1:]:
            self.failureResultOf(answer, ProtocolError)
        self.assertFalse(wire.closed)

    def test_unreachable(self) -> None:
        """An unreachable member has processed nothing; it is unhealthy and checked with increasing delays."""
        answer = self.send_call()
        self.refuse()
        self.assertIn("127.0.0.1:7", str(self.failureResultOf(answer, NotSent).value))
        self.assertEqual(self.member.unhealthy_since, self.reactor.seconds())
        self.reactor.advance(BACKOFF_FIRST)
        self.assertEqual(self.examined, [self.member])
        self.member.mark_unhealthy("still")
        self.reactor.advance(BACKOFF_FIRST)
        self.assertEqual(len(self.examined), 1)
        self.reactor.advance(BACKOFF_FIRST)
        self.assertEqual(len(self.examined), 2)
        self.member.mark_healthy()
        self.assertIsNone(self.member.unhealthy_since)

    def test_later_calls(self) -> None:
        """After a failed connection attempt, a new one is made for the calls that were added later."""
        first = self.send_call()
        later = self.send_call()
        self.refuse()
        self.failureResultOf(first, NotSent)
        wire = self.connect()
        wire.peer.answer(1, b"fine")
        wire.turn()
        self.assertEqual((self.successResultOf(later), self.attempts()), (b"fine", 2))

    def test_no_greeting(self) -> None:
        """A member that accepts connections but sends nothing has processed nothing."""
        answer = self.send_call(60.0)
        wire = self.connect(greet=False)
        self.reactor.advance(CONNECT_TIMEOUT)
        self.assertIn("no HTTP/2 in 3 seconds", str(self.failureResultOf(answer, NotSent).value))
        self.assertTrue(wire.closed)

    def test_other_protocol(self) -> None:
        """A peer with another protocol has processed nothing."""
        answer = self.send_call()
        self.connect(greet=False).connection.dataReceived(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        self.assertIn("invalid HTTP/2", str(self.failureResultOf(answer, NotSent).value))

    def test_lost(self) -> None:
        """Calls on a lost connection have an unknown outcome; later calls use another connection."""
        answer = self.send_call()
        self.connect().lose(ConnectionDone())
        self.failureResultOf(answer, NoResponse)
        second_attempt = self.send_call()
        wire = self.connect()
        wire.peer.answer(1, b"fine")
        wire.turn()
        self.assertEqual(self.successResultOf(second_attempt), b"fine")

    def test_against_rules(self) -> None:
        """A protocol violation closes the connection, and the outcome of its calls is unknown."""
        answers = [self.send_call(), self.send_call()]
        wire = self.connect()
        wire.connection.dataReceived(bytes(9))
        for answer in answers:
            self.failureResultOf(answer, ProtocolError)
        self.assertTrue(wire.closed)

    def test_broken(self) -> None:
        """Calls that cannot be written are sent over another connection; earlier calls get no response."""
        first = self.send_call()
        wire = self.connect()
        wire.broken = True
        second, (_, messages, ends) = self.send_call(), self.watch()
        self.reactor.advance(0)
        self.failureResultOf(first, NoResponse)
        other = self.connect()
        other.peer.answer(1, b"fine")
        other.peer.begin(3)
        other.peer.send(3, b"event")
        other.turn()
        self.assertEqual((self.successResultOf(second), messages, ends), (b"fine", [b"event"], []))

    def test_timeout(self) -> None:
        """A call with a timeout is cancelled at the member; the connection stays open if other calls get responses."""
        slow = self.send_call(2.0)
        wire = self.connect()
        self.reactor.advance(1)
        quick = self.send_call(2.0)
        wire.turn()
        wire.peer.answer(3, b"fine")
        wire.turn()
        self.reactor.advance(1)
        wire.turn()
        self.assertEqual(str(self.failureResultOf(slow, ResponseTimeout).value), "no response in 2 seconds")
        self.assertEqual((self.successResultOf(quick), wire.peer.resets, wire.closed), (b"fine", {1: 8}, False))

    def test_silence(self) -> None:
        """After a timeout on a silent connection, new calls use another one; the old one closes after its last call."""
        first = self.send_call(2.0)
        wire = self.connect()
        self.reactor.advance(1)
        second = self.send_call(2.0)
        self.reactor.advance(1)
        self.failureResultOf(first, ResponseTimeout)
        self.assertFalse(wire.closed)
        third = self.send_call()
        other = self.connect()
        other.peer.answer(1, b"fine")
        other.turn()
        self.assertEqual(self.successResultOf(third), b"fine")
        self.reactor.advance(1)
        self.failureResultOf(second, ResponseTimeout)
        self.assertTrue(wire.closed)

    def test_keepalive(self) -> None:
        """A connection that is silent during calls is pinged, and closed without a response to the ping."""
        wire = self.connect_watched()
        _, messages, ends = self.watch()
        wire.turn()
        wire.peer.begin(3)
        wire.peer.send(3, b"event")
        wire.turn()
        for pings in (1, 2, 3):
            self.reactor.advance(KEEPALIVE)
            wire.turn()
            self.assertEqual((wire.peer.pings, ends, wire.closed), (pings, [], False))
        self.reactor.pump([KEEPALIVE] * 3)
        self.assertIn("keepalive ping timed out", str(ends[0]))
        self.assertEqual((messages, wire.closed), ([b"event"], True))

    def connect_watched(self) -> Wire:
        """Return a connection with an answered call."""
        answer = self.send_call()
        wire = self.connect()
        wire.peer.answer(1, b"")
        wire.turn()
        self.successResultOf(answer)
        return wire

    def test_no_keepalive(self) -> None:
        """A connection without calls is not pinged."""
        wire = self.connect_watched()
        self.reactor.pump([KEEPALIVE] * 10)
        wire.turn()
        self.assertEqual((wire.peer.pings, wire.closed), (0, False))

    def test_too_many_pings(self) -> None:
        """The keepalive interval grows if the member reports too many pings."""
        wire = self.connect_watched()
        wire.peer.h2.close_connection(11, b"too_many_pings")
        wire.turn()
        self.assertEqual((self.member.keepalive, wire.closed), (2 * KEEPALIVE, True))

    def test_delayed_ping_reply(self) -> None:
        """Pings of the member are answered, with a delay."""
        wire = self.connect_watched()
        wire.peer.h2.ping(b"12345678")
        wire.turn()
        self.assertEqual(wire.sent, [])
        self.reactor.advance(PING_ACK_DELAY)
        self.assertEqual(len(b"".join(wire.sent)), 17)

    def test_going_away(self) -> None:
        """A member that sends GOAWAY finishes its calls; unprocessed calls are sent again, once."""
        first, second = self.send_call(), self.send_call()
        wire = self.connect()
        wire.peer.begin(1)
        wire.peer.h2.close_connection(0, last_stream_id=1)
        wire.connection.dataReceived(wire.peer.data_to_send())
        self.assertFalse(wire.closed)
        self.assertNoResult(first)
        other = self.connect()
        self.assertEqual(other.peer.messages(1), [b"question"])
        other.peer.h2.reset_stream(1, 7)
        other.turn()
        self.failureResultOf(second, NotSent)
        wire.lose()
        self.failureResultOf(first, NoResponse)

    def test_refused(self) -> None:
        """A call whose stream the member refuses is sent again."""
        answer = self.send_call()
        wire = self.connect()
        wire.peer.h2.reset_stream(1, 7)
        wire.turn()
        self.assertEqual(wire.peer.messages(3), [b"question"])
        wire.peer.answer(3, b"fine")
        wire.turn()
        self.assertEqual(self.successResultOf(answer), b"fine")

    def test_room(self) -> None:
        """The number of concurrent calls is limited by the member; cancelled calls are not sent."""
        answers = [self.send_call() for _ in range(2)]
        stream, _, ends = self.watch()
        answers.append(self.send_call())
        wire = self.connect({SettingCodes.MAX_CONCURRENT_STREAMS: 1})
        seen = []
        for _ in range(3):
            stream.stop()
            (number,) = set(wire.peer.requests) - set(seen)
            seen.append(number)
            wire.peer.answer(number, b"fine")
            wire.turn()
        self.assertEqual([self.successResultOf(answer) for answer in answers], [b"fine"] * 3)
        self.assertEqual(ends, [])

    def test_stuck(self) -> None:
        """While the transport is full, calls wait and keep their order."""
        first = self.send_call()
        wire = self.connect()
        wire.most = 10
        second = self.send_call()
        self.reactor.advance(0)
        third = self.send_call()
        self.reactor.advance(0)
        wire.peer.answer(1, b"one")
        wire.connection.dataReceived(wire.peer.data_to_send())
        self.assertEqual(self.successResultOf(first), b"one")
        self.assertTrue(wire.held)
        wire.drain()
        wire.turn()
        for stream in (3, 5):
            wire.peer.answer(stream, b"%d" % stream)
        wire.turn()
        self.assertEqual((self.successResultOf(second), self.successResultOf(third)), (b"3", b"5"))

    def test_paused(self) -> None:
        """While the transport's buffer is full, calls wait."""
        first = self.send_call()
        wire = self.connect(kind=SlowWire)
        wire.producer.pauseProducing()
        second = self.send_call()
        wire.turn()
        wire.peer.answer(1, b"one")
        wire.turn()
        self.assertEqual((self.successResultOf(first), list(wire.peer.requests)), (b"one", [1]))
        wire.producer.resumeProducing()
        wire.turn()
        wire.peer.answer(3, b"two")
        wire.turn()
        self.assertEqual(self.successResultOf(second), b"two")

    def test_stream(self) -> None:
        """A stream receives messages until it is cancelled; only the first has a timeout."""
        stream, messages, ends = self.watch(2.0)
        wire = self.connect()
        wire.peer.begin(1)
        wire.peer.send(1, b"one")
        wire.turn()
        self.reactor.advance(3)
        wire.peer.send(1, b"two")
        wire.turn()
        stream.stop()
        wire.turn()
        self.assertEqual((messages, ends, wire.peer.resets), ([b"one", b"two"], [], {1: 8}))
        self.assertEqual(wire.peer.requests[1][b"hasleader"], b"true")
        _, _, late = self.watch(2.0)
        self.reactor.advance(2)
        self.assertIsInstance(late[0], ResponseTimeout)

    def test_end_of_stream(self) -> None:
        """A stream ends successfully, with an error, or with its connection."""
        ends = [self.watch()[2] for _ in range(3)]
        wire = self.connect()
        wire.peer.begin(1)
        wire.peer.finish(1)
        wire.peer.begin(3)
        wire.peer.finish(3, [(b"grpc-status", b"14"), (b"grpc-message", b"etcdserver: no leader")])
        wire.turn()
        wire.lose()
        self.assertEqual([ends[0], str(ends[1][0])], [[None], "etcdserver: no leader"])
        self.assertIsInstance(ends[2][0], NoResponse)

    def test_last_stream(self) -> None:
        """When the stream ids of a connection are used up, another connection is opened."""
        wire = self.connect_watched()
        wire.connection.session._next_stream_id = MAX_STREAM_ID
        last, other = self.send_call(), self.send_call()
        wire.connection.dataReceived(b"")
        second = self.connect()
        second.peer.answer(1, b"fine")
        second.turn()
        self.assertEqual((self.successResultOf(other), wire.closed), (b"fine", False))
        wire.lose()
        self.failureResultOf(last, NoResponse)

    def test_closed(self) -> None:
        """Closing the client closes connections and fails waiting calls."""
        waiting = self.send_call()
        self.member.close()
        self.failureResultOf(waiting, NotSent)
        self.failureResultOf(self.send_call(), NotSent)
        wire = self.connect(greet=False)
        wire.turn()
        self.assertTrue(wire.closed)


class BrokenTests(SynchronousTestCase):
    """Connections that break while they are idle."""

    def test_broken_while_idle(self) -> None:
        """Calls over a connection that turns out to be broken are sent over another one."""
        reactor = RunningReactor()
        self.addCleanup(reactor.close)
        server = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(server.close)
        server.setblocking(False)
        member = Member(Address.parse(f"http://127.0.0.1:{server.getsockname()[1]}"), reactor)
        self.addCleanup(member.close)
        accepted: list[socket.socket] = []

        def accept() -> bool:
            try:
                accepted.append(server.accept()[0])
            except BlockingIOError:
                return False
            return True

        def serve(answer: Any, stream: int) -> None:
            peer, connection = Peer(), accepted[-1]
            connection.setblocking(False)
            connection.sendall(peer.data_to_send())

            def asked() -> bool:
                with contextlib.suppress(BlockingIOError):
                    peer.receive(connection.recv(1 << 16))
                return stream in peer.ended

            reactor.turn_until(asked)
            peer.answer(stream, b"fine")
            connection.sendall(peer.data_to_send())
            self.assertEqual(reactor.run(answer), b"fine")

        answer = member.call_unary(PATH, b"", 10.0)
        reactor.turn_until(accept)
        serve(answer, 1)
        accepted[0].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        accepted[0].close()
        answer = member.call_unary(PATH, b"", 10.0)
        reactor.turn_until(accept)
        serve(answer, 1)
        self.assertEqual(self.flushLoggedErrors(), [])


class AddressTests(SynchronousTestCase):
    """Tests for L{Address.parse}."""

    def test_addresses(self) -> None:
        """Members have a scheme, a host and a port; scheme and port have defaults."""
        for url, expected in (
            ("http://127.0.0.1:2379", ("127.0.0.1", 2379, False, "127.0.0.1:2379")),
            ("https://etcd-0.example.com:2379/", ("etcd-0.example.com", 2379, True, "etcd-0.example.com:2379")),
            ("https://[fd00::1]:99", ("fd00::1", 99, True, "[fd00::1]:99")),
            ("etcd", ("etcd", 2379, False, "etcd:2379")),
            ("https://bücher.example", ("bücher.example", 2379, True, "xn--bcher-kva.example:2379")),
        ):
            address = Address.parse(url)
            self.assertEqual((address.host, address.port, address.tls, address.authority), expected)

    def test_nonsense(self) -> None:
        """An invalid address is named in the error."""
        for url in ("", "unix:///etcd.sock", "http://a/b", "http://a:b", "http://:1", "http://a?x"):
            with self.assertRaises(ValueError) as caught:
                Address.parse(url)
            self.assertIn(repr(url), str(caught.exception))
