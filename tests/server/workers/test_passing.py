"""Tests for L{kubetwist.server.workers.passing}, with real sockets."""

from __future__ import annotations

import socket
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.protocol import Factory, Protocol
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.http.connection.connectionlimit import ConnectionLimiter
from kubetwist.server.errors import StartError
from kubetwist.server.workers.passing import ConnectionAcceptor, ConnectionPasser, PassedAddress

from .descriptorreactor import DescriptorReactor


class Echo(Protocol):
    """Returns what it receives."""

    def dataReceived(self, data: bytes) -> None:
        """Return data."""
        assert self.transport is not None
        self.transport.write(data)


class EchoFactory(Factory):
    """Keeps its protocols, and whether it is started."""

    started = 0

    def __init__(self) -> None:
        self.protocols: list[Echo] = []

    def startFactory(self) -> None:
        """Count."""
        self.started += 1

    def stopFactory(self) -> None:
        """Count."""
        self.started -= 1

    def buildProtocol(self, addr: Any) -> Echo:
        """Return a new protocol."""
        protocol = Echo()
        self.protocols.append(protocol)
        return protocol


class FrontEnd:
    """A front: its factory, and the passer of the storage process."""

    def __init__(self, case: PassingTests) -> None:
        passing, self.socket = socket.socketpair()
        case.addCleanup(self.socket.close)
        self.factory = EchoFactory()
        self.drained: Deferred[None] = Deferred()
        address = PassedAddress(6443, self.socket, lambda: self.drained)
        self.receiver: Any = address.listen(self.factory, case.reactor)
        self.passer = ConnectionPasser(passing, case.reactor, case.acceptor.ended)  # type: ignore[arg-type]
        case.addCleanup(self.passer.close)
        case.acceptor.fronts.append(self.passer)


class PassingTests(SynchronousTestCase):
    """Tests for connections that are passed to fronts."""

    def setUp(self) -> None:
        """Listen."""
        self.reactor = DescriptorReactor()
        listening = socket.socket()
        listening.bind(("127.0.0.1", 0))
        listening.setblocking(False)
        self.address = listening.getsockname()
        self.limiter = ConnectionLimiter(5)
        self.acceptor = ConnectionAcceptor(listening, self.reactor, self.limiter)  # type: ignore[arg-type]
        self.addCleanup(self.acceptor.close)
        self.acceptor.start()

    def connect(self) -> socket.socket:
        """Return a new connection of a client."""
        client = socket.create_connection(self.address)
        client.settimeout(10)
        self.addCleanup(client.close)
        return client

    def turn(self, times: int = 4) -> None:
        """Run some iterations of the reactor."""
        for _ in range(times):
            self.reactor.turn()

    def ask(self, client: socket.socket) -> bytes:
        """Return the answer to a client."""
        client.send(b"ping")
        self.turn()
        return client.recv(16)

    def test_passed(self) -> None:
        """A connection is served by the front that receives it, and its client has its address there."""
        front = FrontEnd(self)
        client = self.connect()
        self.turn()
        self.assertEqual(self.ask(client), b"ping")
        (protocol,) = front.factory.protocols
        transport: Any = protocol.transport
        self.assertEqual(transport.getPeer().port, client.getsockname()[1])
        self.assertEqual(front.factory.started, 1)

    def test_balance(self) -> None:
        """Each connection goes to the front with the fewest connections."""
        fronts = [FrontEnd(self) for _ in range(2)]
        clients = [self.connect() for _ in range(4)]
        self.turn()
        self.assertEqual([len(front.passer) for front in fronts], [2, 2])
        for protocol in list(fronts[0].factory.protocols):
            transport: Any = protocol.transport
            transport.abortConnection()
        self.reactor.advance(0)
        self.turn()
        self.assertEqual([len(front.passer) for front in fronts], [0, 2])
        clients += [self.connect(), self.connect()]
        self.turn()
        self.assertEqual([len(front.passer) for front in fronts], [2, 2])
        self.assertEqual(self.ask(clients[-1]), b"ping")

    def test_alternate(self) -> None:
        """Short connections one after the other go to different fronts."""
        fronts = [FrontEnd(self) for _ in range(2)]
        for _ in range(4):
            client = self.connect()
            self.turn()
            self.assertEqual(self.ask(client), b"ping")
            client.close()
            self.turn()
        self.assertEqual([len(front.factory.protocols) for front in fronts], [2, 2])

    def test_limit(self) -> None:
        """The limit of connections of a client applies to all fronts together, and counts open connections only."""
        fronts = [FrontEnd(self) for _ in range(2)]
        clients = [self.connect() for _ in range(6)]
        self.turn()
        self.assertEqual(sum(len(front.passer) for front in fronts), 5)
        self.assertEqual(clients[5].recv(16), b"")
        clients[0].close()
        self.turn()
        client = self.connect()
        self.turn()
        self.assertEqual(self.ask(client), b"ping")

    def test_no_front(self) -> None:
        """Connections wait while there is no front, and are served by the next one."""
        client = self.connect()
        self.turn()
        self.assertNotIn(self.acceptor, self.reactor.readers)
        FrontEnd(self)
        self.reactor.advance(1)
        self.turn()
        self.assertEqual(self.ask(client), b"ping")

    def test_front_busy(self) -> None:
        """A connection that no front can take waits until one has read its queue."""
        front = FrontEnd(self)
        front.socket.setblocking(False)
        front.passer._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
        self.reactor.removeReader(front.receiver)
        self.limiter.limit = 1000
        clients = []
        while self.acceptor in self.reactor.readers:
            clients.append(self.connect())
            self.turn(1)
        self.reactor.addReader(front.receiver)
        self.turn(10)
        self.reactor.advance(1)
        self.turn()
        self.assertEqual(len(front.factory.protocols), len(clients))
        self.assertEqual(self.ask(clients[-1]), b"ping")

    def test_front_ended(self) -> None:
        """The connections of a front that has ended do not count any more."""
        front = FrontEnd(self)
        self.connect()
        self.turn()
        self.assertEqual(len(front.passer), 1)
        front.receiver.connectionLost()
        self.turn()
        self.assertEqual(len(front.passer), 0)
        self.assertEqual(self.limiter._counts, {})

    def test_reset_connection(self) -> None:
        """A connection whose client has reset it before it was received does not count."""
        front = FrontEnd(self)
        self.reactor.removeReader(front.receiver)
        client = self.connect()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.turn()
        client.close()
        self.reactor.addReader(front.receiver)
        self.turn()
        self.assertEqual(len(front.passer), 0)

    def test_stop(self) -> None:
        """A front that stops serves the connections that were passed before, and no later ones."""
        front = FrontEnd(self)
        self.reactor.removeReader(front.receiver)
        client = self.connect()
        self.turn()
        stopped = front.receiver.stopListening()
        self.assertNoResult(stopped)
        front.drained.callback(None)
        self.successResultOf(stopped)
        self.assertEqual(len(front.factory.protocols), 1)
        self.assertNotIn(front.receiver, self.reactor.readers)
        self.assertEqual(front.factory.started, 0)
        self.assertEqual(self.ask(client), b"ping")

    def test_close(self) -> None:
        """A closed acceptor releases the address."""
        self.acceptor.close()
        self.acceptor.close()
        self.assertRaises(OSError, socket.create_connection, self.address)

    def test_address_in_use(self) -> None:
        """A start fails if another process listens on the address since it was bound."""
        listening, other = socket.socket(), socket.socket()
        for one in (listening, other):
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.addCleanup(one.close)
        listening.bind(("127.0.0.1", 0))
        other.bind(listening.getsockname())
        other.listen()
        acceptor = ConnectionAcceptor(listening, self.reactor, self.limiter)  # type: ignore[arg-type]
        self.assertRaises(StartError, acceptor.start)
