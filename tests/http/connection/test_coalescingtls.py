"""Tests of L{kubetwist.http.connection.coalescingtls}, over real sockets."""

from __future__ import annotations

import gc
import socket
import ssl
import weakref
from typing import Any, cast

from twisted.internet import reactor as global_reactor
from twisted.internet.defer import Deferred
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.task import Clock, deferLater
from twisted.internet.threads import deferToThread
from twisted.trial.unittest import TestCase

from kubetwist.http.connection.coalescingtls import CoalescingTLSFactory
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

    async def received(self) -> bytes:
        """Return all data that a client receives."""

        def read() -> bytes:
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            with (
                socket.create_connection(("127.0.0.1", self.port), 20) as plain,
                context.wrap_socket(plain) as client,
            ):
                client.sendall(b"?")
                return b"".join(iter(lambda: client.recv(1 << 16), b""))

        data: bytes = await deferToThread(read)
        await self.lost
        return data

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

    async def test_order(self) -> None:
        """Short and long pieces and sequences arrive in order."""

        def answer(transport: Any) -> None:
            for piece in (b"a", LARGE, b"b" * 20_000, b"c"):
                transport.write(piece)
            transport.writeSequence([b"d", b"e"])
            transport.loseConnection()

        self.answer = answer
        self.assertEqual(await self.received(), b"a" + LARGE + b"b" * 20_000 + b"cde")

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
