"""
Tests for L{kubetwist.http.connection.coalescingtls}: over real sockets, as the system calls matter.
"""

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
    """Does what a test wants when something arrives."""

    def __init__(self, case: PromptTests) -> None:
        self.case = case

    def dataReceived(self, data: bytes) -> None:
        """A client asks."""
        self.case.answer(self.transport)

    def connectionLost(self, reason: Any = None) -> None:
        """A client has gone."""
        self.case.lost.callback(None)


class PromptTests(TestCase):
    """What is written arrives, all of it and in order, however it is written."""

    timeout = 30

    def setUp(self) -> None:
        """Listen."""
        self.lost: Deferred[None] = Deferred()
        pair = CertificateAuthority.make("test").issue(CertConfig("127.0.0.1", server=True))
        context = ServingContextFactory(pair, "VersionTLS12")
        self.factory = CoalescingTLSFactory(context, Factory.forProtocol(lambda: Server(self)), reactor)
        port = reactor.listenTCP(0, self.factory, interface="127.0.0.1")
        self.addCleanup(port.stopListening)
        self.port = port.getHost().port

    async def received(self) -> bytes:
        """What a client gets to read after it has asked, until the connection ends."""

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
        """Who asks without TLS is told so in words; who talks no protocol at all is not."""

        def read(asked: bytes) -> bytes:
            with socket.create_connection(("127.0.0.1", self.port), 20) as plain:
                plain.sendall(asked)
                return b"".join(iter(lambda: plain.recv(1 << 16), b""))

        told: bytes = await deferToThread(read, b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
        await self.lost
        self.assertEqual(
            told.partition(b"\r\n\r\n")[::2],
            (b"HTTP/1.0 400 Bad Request", b"Client sent an HTTP request to an HTTPS server.\n"),
        )
        self.lost = Deferred()
        told = await deferToThread(read, b"EHLO mail.example.com\r\n")
        await self.lost
        self.assertNotIn(b"HTTP", told)

    async def test_order(self) -> None:
        """Short and long pieces, and sequences of them, arrive in the order in which they were written."""

        def answer(transport: Any) -> None:
            for piece in (b"a", LARGE, b"b" * 20_000, b"c"):
                transport.write(piece)
            transport.writeSequence([b"d", b"e"])
            transport.loseConnection()

        self.answer = answer
        self.assertEqual(await self.received(), b"a" + LARGE + b"b" * 20_000 + b"cde")

    async def test_turns(self) -> None:
        """What is written in another turn comes behind what the system has not taken yet."""

        def answer(transport: Any) -> None:
            transport.write(LARGE)
            reactor.callLater(0, transport.write, b"short")
            reactor.callLater(0.001, transport.write, b"er")
            reactor.callLater(0.002, transport.loseConnection)

        self.answer = answer
        self.assertEqual(await self.received(), LARGE + b"shorter")

    async def test_producer(self) -> None:
        """A connection that is lost while somebody produces ends when he is done, with all that he has written."""

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

    async def test_gone(self) -> None:
        """What is written to somebody who has gone is lost, and nothing else."""

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

    def test_neighbours(self) -> None:
        """When one connection can not be flushed, the others are."""
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
        """Watch events are written and sent before the answers of the same turn, whatever their order in it."""
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

    async def test_large_answers(self) -> None:
        """An answer that is too large to wait for the end of the turn is sent after the watch events, too."""
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
        """A connection that its client aborts is freed immediately, with its unsent data."""
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
