"""Tests of L{kubetwist.http.connection.coalescingtls}, over real sockets."""

from __future__ import annotations

import gc
import socket
import ssl
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from cryptography.hazmat.primitives.serialization import Encoding
from OpenSSL.SSL import Error

from twisted.internet import reactor as global_reactor
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import TCP4ClientEndpoint
from twisted.internet.error import ConnectionDone
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.ssl import CertificateOptions
from twisted.internet.task import Clock, deferLater
from twisted.internet.testing import StringTransport
from twisted.internet.threads import deferToThread
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase, TestCase

from kubetwist.http.connection import coalescingtls
from kubetwist.http.connection.coalescingtls import (
    JOINING_SECONDS,
    MIN_JOINED_CONNECTIONS,
    CoalescingTLSFactory,
    CoalescingTLSTransport,
)
from kubetwist.server.credentials.certificates import CertConfig, CertificateAuthority
from kubetwist.server.credentials.tlscontext import ServingContextFactory

reactor: Any = global_reactor
#: More than a record, than what is kept in a turn, and than a socket takes.
LARGE = b"l" * 5_000_000


class Server(Protocol):
    """A protocol that calls the test case."""

    def __init__(self, case: CoalescingTLSTests) -> None:
        self.case = case

    def dataReceived(self, data: bytes) -> None:
        """Call the test's function."""
        self.case.answer(self.transport)

    def connectionLost(self, reason: Any = None) -> None:
        """Record the loss."""
        self.case.lost.callback(None)


class CoalescingTLSTests(TestCase):
    """Written data arrive completely and in order."""

    timeout = 30

    def setUp(self) -> None:
        """Start a TLS server."""
        self.lost: Deferred[None] = Deferred()
        pair = CertificateAuthority.make("test").issue(CertConfig("127.0.0.1", server=True))
        context = ServingContextFactory(pair, "VersionTLS12")
        self.factory = CoalescingTLSFactory(context, Factory.forProtocol(lambda: Server(self)), reactor)
        port = reactor.listenTCP(0, self.factory, interface="127.0.0.1")
        self.addCleanup(port.stopListening)
        self.port = port.getHost().port

    async def received(self, certificates: str = "") -> bytes:
        """
        Return all data that a client receives.

        @param certificates: The file of the client's key, certificate and chain, if it has one.
        """

        def read() -> bytes:
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            if certificates:
                context.load_cert_chain(certificates)
            with (
                socket.create_connection(("127.0.0.1", self.port), 20) as plain,
                context.wrap_socket(plain) as client,
            ):
                client.sendall(b"?")
                return b"".join(iter(lambda: client.recv(1 << 16), b""))

        data: bytes = await deferToThread(read)
        await self.lost
        return data

    async def test_client_certificates(self) -> None:
        """The certificate of a client is returned with its whole chain; without a certificate there is nothing."""
        top, inner = CertificateAuthority.make("top"), CertificateAuthority.make("inner")
        pair = inner.issue(CertConfig("alice"))
        path = self.mktemp()
        cross = top.cross_sign(inner)
        Path(path).write_bytes(pair.key + pair.certificate + cross)
        seen: list[list[bytes]] = []

        def answer(transport: Any) -> None:
            found = coalescingtls.peer_certificates(transport)
            seen.append([one.to_cryptography().public_bytes(Encoding.PEM) for one in found])
            transport.loseConnection()

        self.answer = answer
        await self.received(path)
        self.lost = Deferred()
        await self.received()
        self.assertEqual(seen, [[pair.certificate, cross], []])

    async def test_no_tls(self) -> None:
        """A client without TLS gets Go's answer to HTTP requests, and other data get none."""

        def read(asked: bytes) -> bytes:
            with socket.create_connection(("127.0.0.1", self.port), 20) as plain:
                plain.sendall(asked)
                return b"".join(iter(lambda: plain.recv(1 << 16), b""))

        alerts: bytes = await deferToThread(read, b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
        await self.lost
        self.assertEqual(
            alerts.partition(b"\r\n\r\n")[::2],
            (b"HTTP/1.0 400 Bad Request", b"Client sent an HTTP request to an HTTPS server.\n"),
        )
        self.lost = Deferred()
        alerts = await deferToThread(read, b"EHLO mail.example.com\r\n")
        await self.lost
        self.assertNotIn(b"HTTP", alerts)

    async def test_outgoing(self) -> None:
        """An outgoing connection sends short data together in one iteration, for which its socket is not registered."""
        self.answer = lambda transport: transport.write(b"answer")
        answers: list[Deferred[bytes]] = [Deferred(), Deferred()]
        waiting = iter(answers)
        client = Protocol()
        client.dataReceived = lambda data: next(waiting).callback(data)  # type: ignore[method-assign]
        factory = CoalescingTLSFactory(
            CertificateOptions(), Factory.forProtocol(lambda: client), reactor, is_client=True
        )
        endpoint = TCP4ClientEndpoint(reactor, "127.0.0.1", self.port)
        opened: Any = await endpoint.connect(factory)
        sent: list[bytes] = []
        send = opened._send
        opened._send = lambda data: (sent.append(data), send(data))
        client.transport.write(b"?")
        client.transport.write(b"!")
        await deferLater(reactor, 0)
        self.assertEqual(sent, [b"?!"])
        self.assertEqual(await answers[0], b"answer")
        client.transport.write(b"?")
        await deferLater(reactor, 0)
        self.assertNotIn(opened.transport, reactor.getWriters())
        self.assertEqual(await answers[1], b"answer")
        client.transport.loseConnection()
        await self.lost

    async def test_no_tls_outgoing(self) -> None:
        """A server without TLS is never sent Go's answer to HTTP requests."""
        received: list[bytes] = []

        class Plain(Protocol):
            def dataReceived(self, data: bytes) -> None:
                received.append(data)
                self.transport.write(b"GET / HTTP/1.1\r\n\r\n")

        port = reactor.listenTCP(0, Factory.forProtocol(Plain), interface="127.0.0.1")
        self.addCleanup(port.stopListening)
        lost: Deferred[Any] = Deferred()
        client = Protocol()
        client.connectionLost = lost.callback  # type: ignore[method-assign,assignment]
        factory = CoalescingTLSFactory(
            CertificateOptions(), Factory.forProtocol(lambda: client), reactor, is_client=True
        )
        await TCP4ClientEndpoint(reactor, "127.0.0.1", port.getHost().port).connect(factory)
        await self.assertFailure(lost, Error)
        self.assertNotIn(b"HTTP request", b"".join(received))

    async def test_order(self) -> None:
        """Short and long pieces and sequences arrive in order."""

        def answer(transport: Any) -> None:
            for piece in (b"a", LARGE, b"b" * 20_000, b"c"):
                transport.write(piece)
            transport.writeSequence([b"d", b"e"])
            transport.loseConnection()

        self.answer = answer
        self.assertEqual(await self.received(), b"a" + LARGE + b"b" * 20_000 + b"cde")

    async def test_empty(self) -> None:
        """Empty data, such as an empty message of a tunnel, are not sent, and do not end the connection."""

        def answer(transport: Any) -> None:
            for write in (transport.write, transport.write_first, transport.write_unordered):
                write(b"")
                transport.flush()
            transport.write(b"end")
            transport.loseConnection()

        self.answer = answer
        self.assertEqual(await self.received(), b"end")

    async def test_iterations(self) -> None:
        """Data of a later iteration follow the data that the kernel has not accepted yet."""

        def answer(transport: Any) -> None:
            transport.write(LARGE)
            reactor.callLater(0, transport.write, b"short")
            reactor.callLater(0.001, transport.write, b"er")
            reactor.callLater(0.002, transport.loseConnection)

        self.answer = answer
        self.assertEqual(await self.received(), LARGE + b"shorter")

    async def test_producer(self) -> None:
        """A connection that is closed while a producer is registered ends after the producer's data."""

        class Producer:
            def pauseProducing(self) -> None:
                pass

            def resumeProducing(self) -> None:
                pass

            def stopProducing(self) -> None:
                pass

        def answer(transport: Any) -> None:
            transport.registerProducer(Producer(), True)
            transport.write(b"first")
            transport.loseConnection()
            reactor.callLater(0, more, transport)

        def more(transport: Any) -> None:
            transport.write(b"last")
            transport.unregisterProducer()

        self.answer = answer
        self.assertEqual(await self.received(), b"firstlast")

    async def test_aborted(self) -> None:
        """Data written to an aborted connection are dropped."""

        def answer(transport: Any) -> None:
            transport.write(b"never")
            transport.abortConnection()
            transport.write(b"neither")

        self.answer = answer
        try:
            self.assertEqual(await self.received(), b"")
        except OSError:
            # A connection that is broken off is reset, or ends.
            await self.lost
        self.assertEqual(self.flushLoggedErrors(), [])

    def test_failing_flush(self) -> None:
        """If one connection cannot be flushed, others are."""
        flushed = []

        class Fake:
            urgent = False

            def __init__(self, number: int) -> None:
                self.number = number

            def flush(self) -> None:
                if self.number == 1:
                    raise ValueError("as a test")
                flushed.append(self.number)

        transports: list[Any] = [Fake(number) for number in range(3)]
        for transport in transports:
            self.factory.flush_soon(transport)
        self.factory._flush()
        self.assertEqual(flushed, [0, 2])
        self.assertEqual(len(self.flushLoggedErrors(ValueError)), 1)

    def test_events_first(self) -> None:
        """Watch events are sent before the responses of the same iteration."""
        sent = []

        class Fake:
            def __init__(self, name: str, urgent: bool) -> None:
                self.name, self.urgent = name, urgent

            def flush(self) -> None:
                sent.append(self.name)

        def write_events() -> None:
            sent.append("written")
            factory.flush_soon(cast(Any, Fake("late event", True)))

        factory = self.factory
        factory._write_events = write_events
        factory._reactor = Clock()
        for name, urgent in (("answer", False), ("event", True), ("other answer", False)):
            factory.flush_soon(cast(Any, Fake(name, urgent)))
        factory._flush()
        self.assertEqual(sent, ["written", "event", "late event", "answer", "other answer"])

    async def test_write_first(self) -> None:
        """Data of C{write_first} precede the other data of their iteration, even if they are long."""
        for first in (b"1", LARGE):

            def answer(transport: Any, first: bytes = first) -> None:
                transport.write(b"2")
                transport.write_first(first)
                transport.write_first(b"+")
                reactor.callLater(0.001, transport.loseConnection)

            self.answer = answer
            self.lost = Deferred()
            self.assertEqual(await self.received(), first + b"+2")

    def test_first_of_all(self) -> None:
        """Data of C{write_first} are sent before the data of other connections, after the watch events are written."""
        sent = []

        class Fake:
            urgent = False

            def __init__(self, name: str) -> None:
                self.name = name

            def flush(self) -> None:
                sent.append(self.name)

            def flush_first(self) -> None:
                sent.append(f"first {self.name}")

        factory = self.factory
        factory._reactor = Clock()
        one, other = (cast(Any, Fake(name)) for name in ("one", "other"))
        factory._write_events = lambda: factory.flush_first_soon(other)
        factory.flush_soon(one)
        factory.flush_soon(other)
        factory.flush_first_soon(one)
        factory._flush()
        self.assertEqual(sent, ["first one", "first other", "one", "other"])

    async def test_large_answers(self) -> None:
        """A response that is too large to be buffered is sent after the watch events, too."""
        order = []
        self.factory._write_events = lambda: order.append("events")

        def answer(transport: Any) -> None:
            encrypt = transport._write
            transport._write = lambda data: (order.append(len(data)), encrypt(data))
            transport.write(LARGE)
            transport.loseConnection()

        self.answer = answer
        self.assertEqual(await self.received(), LARGE)
        self.assertEqual(order[:2], ["events", len(LARGE)])

    async def test_freed(self) -> None:
        """An aborted connection is freed immediately, with its unsent data."""
        found: list[weakref.ref[Any]] = []

        def answer(transport: Any) -> None:
            found.append(weakref.ref(transport))
            transport.write(LARGE)

        def break_off() -> None:
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            with (
                socket.create_connection(("127.0.0.1", self.port), 20) as plain,
                context.wrap_socket(plain) as client,
            ):
                client.sendall(b"?")
                client.recv(1)

        self.answer = answer
        gc.disable()
        self.addCleanup(gc.enable)
        await deferToThread(break_off)
        await self.lost
        await deferLater(reactor, 0)
        self.assertIsNone(found[0]())


class Turns:
    """
    A reactor whose calls run in the next iteration, and what they schedule in the one after it.

    @ivar now: The time in seconds.
    @ivar calls: The scheduled calls.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self.calls: list[Callable[[], object]] = []

    def seconds(self) -> float:
        """Return the time."""
        return self.now

    def callLater(self, delay: float, call: Callable[[], object]) -> None:
        """Schedule a call."""
        self.calls.append(call)


class FlushTests(SynchronousTestCase):
    """The order and the iteration in which connections send, with connections that record it."""

    def setUp(self) -> None:
        """Create a factory of connections that encrypt nothing."""
        self.clock: Any = Turns()
        pair = CertificateAuthority.make("test").issue(CertConfig("127.0.0.1", server=True))
        context = ServingContextFactory(pair, "VersionTLS12")
        self.factory = CoalescingTLSFactory(context, Factory.forProtocol(Protocol), self.clock)
        self.sent: list[bytes] = []

    def connection(self, urgent: bool = False) -> CoalescingTLSTransport:
        """Return a connection that records what it sends."""
        transport: Any = self.factory.buildProtocol(None)  # type: ignore[arg-type]
        transport.makeConnection(StringTransport())
        transport._handshakeDone = True
        transport.urgent = urgent
        transport._send = self.sent.append
        recorded: CoalescingTLSTransport = transport
        return recorded

    def watches(self, count: int) -> list[CoalescingTLSTransport]:
        """Return the connections of some watches."""
        return [self.connection(True) for _ in range(count)]

    def turn(self, received: int = 0) -> list[bytes]:
        """Run an iteration of the reactor in which some data were received before; return what was sent."""
        self.factory.received += received
        calls, self.clock.calls = self.clock.calls, []
        for call in calls:
            call()
        sent, self.sent[:] = self.sent[:], []
        return sent

    def test_idle(self) -> None:
        """Few watches get their events in the same iteration, many after one in which nothing is received."""
        for count in (1, MIN_JOINED_CONNECTIONS - 1):
            for watch in self.watches(count):
                watch.write(b"event")
            self.assertEqual(self.turn(received=1), [b"event"] * count)
        for watch in self.watches(MIN_JOINED_CONNECTIONS):
            watch.write(b"event")
        self.assertEqual(self.turn(received=1), [])
        self.assertEqual(self.turn(), [b"event"] * MIN_JOINED_CONNECTIONS)
        self.assertEqual(self.clock.calls, [])

    def test_busy(self) -> None:
        """While data are received, the events of some iterations are sent together, and answers after them."""
        watches, writer, reader = self.watches(MIN_JOINED_CONNECTIONS), self.connection(), self.connection()
        sent = []
        for number in range(3):
            for watch in watches:
                watch.write(b"%d" % number)
            if not number:
                writer.write(b"answer")
            reader.write_unordered(b"read %d" % number)
            sent.append(self.turn(received=1))
        self.assertEqual(sent, [[b"read 0"], [b"read 1"], [b"read 2"]])
        self.assertEqual(self.turn(), [b"012"] * MIN_JOINED_CONNECTIONS + [b"answer"])

    def test_bounded(self) -> None:
        """A busy server sends events after some milliseconds, and then joins later ones."""
        watches = self.watches(MIN_JOINED_CONNECTIONS)
        for _ in range(2):
            for watch in watches:
                watch.write(b"event")
            for _ in range(5):
                self.assertEqual(self.turn(received=1), [])
            self.clock.now += JOINING_SECONDS
            self.assertEqual(self.turn(received=1), [b"event"] * MIN_JOINED_CONNECTIONS)

    def test_interrupted(self) -> None:
        """
        Events of 40 watches are sent in several iterations. Answers follow the events before them; reads and
        later events do not wait, and no answer waits for events that were written after it.
        """
        self.patch(coalescingtls, "MIN_JOINED_CONNECTIONS", 1000)
        watches, first, second, reader = self.watches(40), self.connection(), self.connection(), self.connection()
        for watch in watches:
            watch._send = self.send_slowly  # type: ignore[method-assign]
            watch.write(b"1")
        first.write(b"first")
        reader.write_unordered(b"read")
        self.assertEqual(self.turn(), [b"1"] * 16 + [b"read"])
        for watch in watches:
            watch.write(b"2")
        first.write(b"second")
        second.write(b"third")
        reader.write_unordered(b"read")
        self.assertEqual(self.turn(), [b"12"] * 16 + [b"read"])
        self.assertEqual(self.turn(), [b"12"] * 8 + [b"first"] + [b"2"] * 7)
        self.assertEqual(self.turn(), [b"2"] * 9 + [b"second", b"third"])
        self.assertEqual((self.turn(), self.clock.calls), ([], []))

    def send_slowly(self, data: bytes) -> None:
        """Send data, which takes a millisecond."""
        self.clock.now += 0.001
        self.sent.append(data)

    def hold_answer(self) -> tuple[CoalescingTLSTransport, list[CoalescingTLSTransport]]:
        """
        Write an answer after events that take several iterations.

        @return: Its connection, and the connections of the watches.
        """
        self.patch(coalescingtls, "MIN_JOINED_CONNECTIONS", 1000)
        watches, writer = self.watches(20), self.connection()
        for watch in watches:
            watch._send = self.send_slowly  # type: ignore[method-assign]
            watch.write(b"1")
        writer.write(b"answer")
        self.assertEqual(self.turn(), [b"1"] * 16)
        return writer, watches

    def test_pipelined(self) -> None:
        """The response to a read does not overtake an answer on the same connection that waits for events."""
        writer, _ = self.hold_answer()
        writer.write_unordered(b"read")
        self.assertEqual(self.turn(), [b"1"] * 4 + [b"answer", b"read"])

    def test_written_before(self) -> None:
        """The response to a read that an answer follows on the same connection waits with it."""
        watches, client = self.watches(MIN_JOINED_CONNECTIONS), self.connection()
        for watch in watches:
            watch.write(b"event")
        client.write_unordered(b"read")
        client.write(b"answer")
        self.assertEqual(self.turn(), [])
        self.assertEqual(self.turn(), [b"event"] * len(watches) + [b"readanswer"])

    def test_large_answer(self) -> None:
        """An answer that is too large to wait is sent at once, after all events and earlier answers."""
        writer, _ = self.hold_answer()
        large = b"l" * 100_000
        writer.write(large)
        self.assertEqual(self.turn(), [b"1"] * 4 + [b"answer", large])

    def test_large_answer_before_events(self) -> None:
        """A connection that has sent a large answer already sends nothing more when later events are interrupted."""
        self.patch(coalescingtls, "MIN_JOINED_CONNECTIONS", 1000)
        watches, writer = self.watches(20), self.connection()
        large = b"l" * 100_000
        writer.write(large)
        for watch in watches:
            watch._send = self.send_slowly  # type: ignore[method-assign]
            watch.write(b"1")
        self.assertEqual(self.turn(), [large] + [b"1"] * 16)
        self.assertEqual(self.turn(), [b"1"] * 4)
        self.assertEqual((self.turn(), writer._ordered, len(writer._held)), ([], False, 0))

    def test_large_read(self) -> None:
        """The response to a read that is too large to be buffered is sent before waiting events."""
        for watch in self.watches(MIN_JOINED_CONNECTIONS):
            watch.write(b"event")
        large = b"l" * 100_000
        self.connection().write_unordered(large)
        self.assertEqual(self.turn(), [large])
        self.assertEqual(self.turn(), [b"event"] * MIN_JOINED_CONNECTIONS)

    def test_closed_by_the_server(self) -> None:
        """A connection that is closed after an answer sends it after the events and earlier answers."""
        writer, watches = self.hold_answer()
        other = self.connection()
        watches[0].write(b"2")
        other.write(b"last")
        other.loseConnection()
        writer.loseConnection()
        self.assertEqual(self.turn(), [b"1"] * 4 + [b"answer", b"2", b"last"])

    def test_large_answer_while_sending(self) -> None:
        """A connection whose sending leads to an answer that is too large to wait sends the other events before it."""
        watches, writer = self.watches(3), self.connection()
        large = b"l" * 100_000

        def send(data: bytes) -> None:
            self.sent.append(data)
            writer.write(large)

        watches[0]._send = send  # type: ignore[method-assign]
        for watch in watches:
            watch.write(b"event")
        self.assertEqual(self.turn(), [b"event"] * 3 + [large])
        self.assertEqual((self.turn(), self.clock.calls), ([], []))

    def test_lost(self) -> None:
        """The data of a lost connection are dropped, also those that wait for events."""
        writer, _ = self.hold_answer()
        writer.connectionLost()
        self.assertEqual(self.turn(), [b"1"] * 4)
        self.assertFalse(writer._held)


class Received(Protocol):
    """A protocol that collects what it receives."""

    def __init__(self) -> None:
        self.data = b""
        self.reason: Any = None

    def dataReceived(self, data: bytes) -> None:
        """Collect data."""
        self.data += data

    def connectionLost(self, reason: Any = None) -> None:
        """Keep the reason."""
        self.reason = reason


class ReceiveTests(SynchronousTestCase):
    """Data of a client arrive completely, in any pieces."""

    def setUp(self) -> None:
        """Create the credentials of the server."""
        pair = CertificateAuthority.make("test").issue(CertConfig("127.0.0.1", server=True))
        self.context = ServingContextFactory(pair, "VersionTLS12")

    def connect(self, version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> None:
        """Connect a client in memory."""
        self.received = Received()
        factory = CoalescingTLSFactory(self.context, Factory.forProtocol(lambda: self.received), Clock())
        self.server: Any = factory.buildProtocol(None)  # type: ignore[arg-type]
        self.wire = StringTransport()
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.minimum_version = context.maximum_version = version
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.client = context.wrap_bio(self.incoming, self.outgoing)
        self.server.makeConnection(self.wire)
        done = False
        while not done:
            try:
                self.client.do_handshake()
                done = True
            except ssl.SSLWantReadError:
                pass
            if self.outgoing.pending:
                self.server.dataReceived(self.outgoing.read())
            self.incoming.write(self.wire.value())
            self.wire.clear()

    def test_pieces(self) -> None:
        """Records arrive alone, in pieces, and together."""
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            self.connect(version)
            sent = b""
            for size in (1, 100, 16_384):
                data = bytes([size % 251]) * size
                sent += data * 4
                self.client.write(data)
                self.server.dataReceived(self.outgoing.read())
                self.client.write(data)
                encrypted = self.outgoing.read()
                self.server.dataReceived(encrypted[:3])
                self.server.dataReceived(encrypted[3:])
                self.client.write(data)
                self.client.write(data)
                self.server.dataReceived(self.outgoing.read())
            self.assertEqual(self.received.data, sent)

    def test_end(self) -> None:
        """A record that ends TLS closes the connection."""
        self.connect()
        with self.assertRaises(ssl.SSLWantReadError):
            self.client.unwrap()
        self.server.dataReceived(self.outgoing.read())
        self.assertTrue(self.wire.disconnecting)
        self.assertIsNone(self.server._reason)

    def test_damaged(self) -> None:
        """A damaged record ends the connection with an error and an alert, and what follows is ignored."""
        self.connect()
        self.client.write(b"data")
        encrypted = bytearray(self.outgoing.read())
        encrypted[-1] ^= 1
        self.server.dataReceived(bytes(encrypted))
        self.client.write(b"more")
        self.server.dataReceived(self.outgoing.read())
        self.server.connectionLost(Failure(ConnectionDone()))
        self.assertTrue(self.wire.disconnecting)
        self.assertEqual(self.received.data, b"")
        self.assertIs(self.received.reason.type, Error)
        self.incoming.write(self.wire.value())
        self.assertRaises(ssl.SSLError, self.client.read)
