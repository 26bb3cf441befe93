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
    PING_PATIENCE,
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
from kubetwist.storage.etcd._grpc import (
    BACKOFF_FIRST,
    Member,
)
from kubetwist.storage.etcd._http2 import LAST_STREAM
from kubetwist.storage.etcd.address import Address

from .case import TurningReactor
from .peer import Peer

PATH = b"/s/M"


class Wire:
    """
    The transport of a client, which a L{Peer} is at the other end of.

    @ivar most: How much it takes before it is stuck; L{None} for all.
    @ivar broken: Whether what is written is lost.
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
        """Nothing waits here."""

    setTcpKeepAlive = setTcpNoDelay

    def registerProducer(self, producer: Any, streaming: bool) -> None:
        """Who is told when everything is written."""
        self.producer = producer
        assert streaming is (self.writeSomeData is None)

    def writeSomeData(self, data: bytes) -> Any:
        """Write at once."""
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
        """Take what waits."""
        held, self.held, self.most = self.held, b"", None
        self.sent.append(held)
        self.producer.resumeProducing()

    def abortConnection(self) -> None:
        """Close."""
        self.closed = True

    def lose(self, reason: Exception | None = None) -> None:
        """The connection is closed by the other."""
        self.closed = True
        self.connection.connectionLost(Failure(reason or ConnectionLost()))

    def turn(self) -> None:
        """Let both talk until nobody has anything to say."""
        while not self.closed:
            self.connection.channel.member.reactor.advance(0)
            sent, self.sent = b"".join(self.sent), []
            self.peer.receive(sent)
            answered = self.peer.output()
            if answered:
                self.connection.dataReceived(answered)
            elif not self.sent:
                return


class SlowWire(Wire):
    """One that writes when it can, and tells when it has too much to write; as TLS is."""

    writeSomeData = None

    def write(self, data: bytes) -> None:
        """Write later, that is now."""
        self.sent.append(data)


class MemberTests(SynchronousTestCase):
    """Calls of a member, over connections in memory."""

    def setUp(self) -> None:
        """Make a member, and nothing that it is connected to."""
        self.reactor = MemoryReactorClock()
        self.examined: list[Member] = []
        self.member = Member(Address.parse("http://127.0.0.1:7"), self.reactor, None, self.examined.append)
        self.addCleanup(self.assert_clean)

    def assert_clean(self) -> None:
        """Nothing is left when it is closed."""
        self.member.close()
        self.reactor.advance(CONNECT_TIMEOUT)
        self.assertEqual([call for call in self.reactor.getDelayedCalls() if call.active()], [])

    def attempts(self) -> int:
        """How often somebody has tried to connect."""
        return len(self.reactor.tcpClients)

    def connect(self, settings: dict[Any, int] | None = None, greet: bool = True, kind: type[Wire] = Wire) -> Wire:
        """Have the last attempt succeed."""
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
        """Have the last attempt fail."""
        self.reactor.tcpClients[-1][2].clientConnectionFailed(None, Failure(ConnectionRefusedError("nobody there")))

    def ask(self, seconds: float = 5.0, message: bytes = b"question") -> Any:
        """Ask for something."""
        return self.member.post(PATH, message, seconds)

    def watch(self, seconds: float = 5.0) -> tuple[Stream, list[bytes], list[Exception | None]]:
        """Ask for something that goes on; what comes of it, and its end."""
        messages: list[bytes] = []
        ends: list[Exception | None] = []
        return self.member.stream(PATH, b"all", messages.append, ends.append, seconds), messages, ends

    def test_calls(self) -> None:
        """All calls go over one connection, those that came before it was there in their order."""
        answers = [self.ask(message=b"%d" % number) for number in range(3)]
        wire = self.connect()
        answers.append(self.ask(message=b"3"))
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
        """The calls of a turn are sent together when the turn is over."""
        wire = self.connect_watched()
        answers = [self.ask() for _ in range(4)]
        self.assertEqual(wire.sent, [])
        self.reactor.advance(0)
        self.assertEqual(len(wire.sent), 1)
        answers.append(self.member.post(PATH, b"question", 5.0, True))
        self.assertEqual(len(wire.sent), 2)
        wire.turn()
        self.assertEqual(wire.peer.ended, [1, 3, 5, 7, 9, 11])
        wire.lose()
        for answer in answers:
            self.failureResultOf(answer, NoResponse)

    def test_lost_before_sent(self) -> None:
        """What was not even written when its connection is lost is sent over another one."""
        wire = self.connect_watched()
        sent = self.ask()
        self.reactor.advance(0)
        unsent, given_up = self.ask(), self.watch()
        given_up[0].stop()
        again = self.ask()
        wire.lose()
        self.failureResultOf(sent, NoResponse)
        other = self.connect()
        self.assertEqual(len(other.peer.requests), 2)
        for stream in (1, 3):
            other.peer.answer(stream, b"fine")
        other.turn()
        self.assertEqual((self.successResultOf(unsent), self.successResultOf(again)), (b"fine", b"fine"))

    def test_refusal(self) -> None:
        """An answer may be an error of etcd's, or none at all, or too many."""
        answers = [self.ask() for _ in range(3)]
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
        """Who can not be reached has done nothing; it is suspected, and looked at later, less and less often."""
        answer = self.ask()
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
        self.member.good()
        self.assertIsNone(self.member.unhealthy_since)

    def test_later_calls(self) -> None:
        """When an attempt fails, it is made again for those who came after it was begun."""
        first = self.ask()
        later = self.ask()
        self.refuse()
        self.failureResultOf(first, NotSent)
        wire = self.connect()
        wire.peer.answer(1, b"fine")
        wire.turn()
        self.assertEqual((self.successResultOf(later), self.attempts()), (b"fine", 2))

    def test_no_greeting(self) -> None:
        """Who takes connections and says nothing, as one that is paused, has done nothing."""
        answer = self.ask(60.0)
        wire = self.connect(greet=False)
        self.reactor.advance(CONNECT_TIMEOUT)
        self.assertIn("no HTTP/2 in 3 seconds", str(self.failureResultOf(answer, NotSent).value))
        self.assertTrue(wire.closed)

    def test_other_protocol(self) -> None:
        """Nor has who speaks something else."""
        answer = self.ask()
        self.connect(greet=False).connection.dataReceived(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        self.assertIn("no HTTP/2", str(self.failureResultOf(answer, NotSent).value))

    def test_lost(self) -> None:
        """What was sent over a connection that is lost may have been done; what comes then goes over another one."""
        answer = self.ask()
        self.connect().lose(ConnectionDone())
        self.failureResultOf(answer, NoResponse)
        again = self.ask()
        wire = self.connect()
        wire.peer.answer(1, b"fine")
        wire.turn()
        self.assertEqual(self.successResultOf(again), b"fine")

    def test_against_rules(self) -> None:
        """Who breaks the rules loses the connection, and has done nobody knows what."""
        answers = [self.ask(), self.ask()]
        wire = self.connect()
        wire.connection.dataReceived(bytes(9))
        for answer in answers:
            self.failureResultOf(answer, ProtocolError)
        self.assertTrue(wire.closed)

    def test_broken(self) -> None:
        """What can not even be written is sent over another connection; what was sent before has no answer."""
        first = self.ask()
        wire = self.connect()
        wire.broken = True
        second, (_, messages, ends) = self.ask(), self.watch()
        self.reactor.advance(0)
        self.failureResultOf(first, NoResponse)
        other = self.connect()
        other.peer.answer(1, b"fine")
        other.peer.begin(3)
        other.peer.send(3, b"event")
        other.turn()
        self.assertEqual((self.successResultOf(second), messages, ends), (b"fine", [b"event"], []))

    def test_timeout(self) -> None:
        """Who takes too long is told that nobody waits; where others are answered, the connection stays."""
        slow = self.ask(2.0)
        wire = self.connect()
        self.reactor.advance(1)
        quick = self.ask(2.0)
        wire.turn()
        wire.peer.answer(3, b"fine")
        wire.turn()
        self.reactor.advance(1)
        wire.turn()
        self.assertEqual(str(self.failureResultOf(slow, ResponseTimeout).value), "no answer in 2 seconds")
        self.assertEqual((self.successResultOf(quick), wire.peer.resets, wire.closed), (b"fine", {1: 8}, False))

    def test_silence(self) -> None:
        """Where nothing comes any more, new calls go over another connection; the old one goes when nobody waits."""
        first = self.ask(2.0)
        wire = self.connect()
        self.reactor.advance(1)
        second = self.ask(2.0)
        self.reactor.advance(1)
        self.failureResultOf(first, ResponseTimeout)
        self.assertFalse(wire.closed)
        third = self.ask()
        other = self.connect()
        other.peer.answer(1, b"fine")
        other.turn()
        self.assertEqual(self.successResultOf(third), b"fine")
        self.reactor.advance(1)
        self.failureResultOf(second, ResponseTimeout)
        self.assertTrue(wire.closed)

    def test_keepalive(self) -> None:
        """Who is silent for long is asked for a sign of life, as long as somebody waits; and left if there is none."""
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
        self.assertIn("no sign of life", str(ends[0]))
        self.assertEqual((messages, wire.closed), ([b"event"], True))

    def connect_watched(self) -> Wire:
        """A connection with an answered call."""
        answer = self.ask()
        wire = self.connect()
        wire.peer.answer(1, b"")
        wire.turn()
        self.successResultOf(answer)
        return wire

    def test_no_keepalive(self) -> None:
        """Nobody is asked for signs of life while nobody waits for anything."""
        wire = self.connect_watched()
        self.reactor.pump([KEEPALIVE] * 10)
        wire.turn()
        self.assertEqual((wire.peer.pings, wire.closed), (0, False))

    def test_too_many_pings(self) -> None:
        """Where signs of life are asked for too often, that is done less often."""
        wire = self.connect_watched()
        wire.peer.h2.close_connection(11, b"too_many_pings")
        wire.turn()
        self.assertEqual((self.member.keepalive, wire.closed), (2 * KEEPALIVE, True))

    def test_sign_of_life(self) -> None:
        """Signs of life are given, but not at once."""
        wire = self.connect_watched()
        wire.peer.h2.ping(b"12345678")
        wire.turn()
        self.assertEqual(wire.sent, [])
        self.reactor.advance(PING_PATIENCE)
        self.assertEqual(len(b"".join(wire.sent)), 17)

    def test_going_away(self) -> None:
        """A member that goes away finishes what it has begun; what it has not looked at is asked again, once."""
        first, second = self.ask(), self.ask()
        wire = self.connect()
        wire.peer.begin(1)
        wire.peer.h2.close_connection(0, last_stream_id=1)
        wire.connection.dataReceived(wire.peer.output())
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
        """A call that a member refuses to look at is made again."""
        answer = self.ask()
        wire = self.connect()
        wire.peer.h2.reset_stream(1, 7)
        wire.turn()
        self.assertEqual(wire.peer.messages(3), [b"question"])
        wire.peer.answer(3, b"fine")
        wire.turn()
        self.assertEqual(self.successResultOf(answer), b"fine")

    def test_room(self) -> None:
        """A member is asked as much at a time as it allows; who has given up is not asked for."""
        answers = [self.ask() for _ in range(2)]
        stream, _, ends = self.watch()
        answers.append(self.ask())
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
        """Where nothing can be written, what comes waits, and nothing overtakes anything."""
        first = self.ask()
        wire = self.connect()
        wire.most = 10
        second = self.ask()
        self.reactor.advance(0)
        third = self.ask()
        self.reactor.advance(0)
        wire.peer.answer(1, b"one")
        wire.connection.dataReceived(wire.peer.output())
        self.assertEqual(self.successResultOf(first), b"one")
        self.assertTrue(wire.held)
        wire.drain()
        wire.turn()
        for stream in (3, 5):
            wire.peer.answer(stream, b"%d" % stream)
        wire.turn()
        self.assertEqual((self.successResultOf(second), self.successResultOf(third)), (b"3", b"5"))

    def test_paused(self) -> None:
        """Where the transport has too much to write, calls wait until it has less."""
        first = self.ask()
        wire = self.connect(kind=SlowWire)
        wire.producer.pauseProducing()
        second = self.ask()
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
        """A stream has answers until it is stopped; only the first must come in time."""
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
        """A stream ends well, or with an error, or with its connection."""
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
        """When a connection has no more numbers, another one is made."""
        wire = self.connect_watched()
        wire.connection.session._next = LAST_STREAM
        last, other = self.ask(), self.ask()
        wire.connection.dataReceived(b"")
        second = self.connect()
        second.peer.answer(1, b"fine")
        second.turn()
        self.assertEqual((self.successResultOf(other), wire.closed), (b"fine", False))
        wire.lose()
        self.failureResultOf(last, NoResponse)

    def test_closed(self) -> None:
        """With the client go connections, and what waits."""
        waiting = self.ask()
        self.member.close()
        self.failureResultOf(waiting, NotSent)
        self.failureResultOf(self.ask(), NotSent)
        wire = self.connect(greet=False)
        wire.turn()
        self.assertTrue(wire.closed)


class BrokenTests(SynchronousTestCase):
    """Connections that break while nobody looks."""

    def test_broken_while_idle(self) -> None:
        """What is sent over a connection that turns out to be broken goes over another one."""
        reactor = TurningReactor()
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
            connection.sendall(peer.output())

            def asked() -> bool:
                with contextlib.suppress(BlockingIOError):
                    peer.receive(connection.recv(1 << 16))
                return stream in peer.ended

            reactor.turn_until(asked)
            peer.answer(stream, b"fine")
            connection.sendall(peer.output())
            self.assertEqual(reactor.run(answer), b"fine")

        answer = member.post(PATH, b"", 10.0)
        reactor.turn_until(accept)
        serve(answer, 1)
        accepted[0].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        accepted[0].close()
        answer = member.post(PATH, b"", 10.0)
        reactor.turn_until(accept)
        serve(answer, 1)
        self.assertEqual(self.flushLoggedErrors(), [])


class AddressTests(SynchronousTestCase):
    """L{Address.parse} reads --etcd-servers."""

    def test_addresses(self) -> None:
        """Members have a scheme, a host and a port, of which two can be left out."""
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
        """What is none is named."""
        for url in ("", "unix:///etcd.sock", "http://a/b", "http://a:b", "http://:1", "http://a?x"):
            with self.assertRaises(ValueError) as caught:
                Address.parse(url)
            self.assertIn(repr(url), str(caught.exception))
