"""Connections in memory between a storage process and its fronts, and a reactor that runs while a test waits."""

from __future__ import annotations

import time
from collections import deque
from queue import Empty
from typing import Any

from twisted.internet.defer import Deferred, fail
from twisted.internet.error import ConnectError, ConnectionDone, ConnectionLost
from twisted.internet.interfaces import IPushProducer, IStreamClientEndpoint, ITransport
from twisted.python.failure import Failure
from zope.interface import implementer

from kubetwist.interfaces import IStorageBackend
from kubetwist.storage.memory import MemoryStorage
from kubetwist.storage.remote import RemoteStorage, StorageServer
from kubetwist.testing.storage import DEAD, StorageReactor

#: Bytes that one end accepts before it pauses its producer.
BUFFER = 64 << 10


class TurningReactor(StorageReactor):
    """A L{StorageReactor} that makes the calls that are due while it waits."""

    def turn(self) -> None:
        """Make the calls that are due, and one call from a thread, if there is one soon."""
        self.advance(0)
        try:
            call, args, kw = self._calls.get(timeout=0.01)
        except Empty:
            return
        call(*args, **kw)

    def turn_until(self, condition: Any) -> None:
        """Run until a condition is true."""
        until = time.monotonic() + DEAD
        while not condition():
            if time.monotonic() > until:
                raise AssertionError("nothing happens any more")
            self.turn()

    def settle(self) -> None:
        """Run everything that is due now."""
        self.advance(0)
        while not self._calls.empty():
            self.turn()
            self.advance(0)


@implementer(ITransport)
class WireEnd:
    """
    One end of a connection.

    @ivar reading: Whether it reads what the other end writes.
    @ivar received_bytes: The number of bytes it has read.
    """

    def __init__(self, reactor: TurningReactor) -> None:
        self.reading = True
        self.received_bytes = 0
        self.protocol: Any = None
        self.other: WireEnd = self
        self._reactor = reactor
        self._incoming: deque[bytes | None] = deque()
        self._unread = 0
        self._producer: IPushProducer | None = None
        self._paused = False
        self._open = True

    # --- writing

    def write(self, data: bytes) -> None:
        """Pass data to the other end."""
        if self._open:
            self.other.deliver(bytes(data))
            if self.other._unread > BUFFER and self._producer is not None and not self._paused:
                self._paused = True
                self._producer.pauseProducing()

    def writeSequence(self, data: Any) -> None:
        """Pass data to the other end."""
        self.write(b"".join(data))

    def registerProducer(self, producer: IPushProducer, streaming: bool) -> None:
        """Pause C{producer} while the other end does not read."""
        self._producer = producer

    def unregisterProducer(self) -> None:
        """Forget the producer."""
        self._producer = None

    def loseConnection(self) -> None:
        """Close after everything that was written."""
        self._open = False
        self.other.deliver(None)
        self._reactor.callFromThread(self._lost, ConnectionDone())

    def abortConnection(self) -> None:
        """Close at once; what the other end has not read is lost."""
        self.other._incoming.clear()
        self.other._unread = 0
        self.loseConnection()

    # --- reading

    def pauseProducing(self) -> None:
        """Stop reading."""
        self.reading = False

    def resumeProducing(self) -> None:
        """Read again."""
        self.reading = True
        self._reactor.callFromThread(self._read)

    def deliver(self, data: bytes | None) -> None:
        """Receive data, or the end of the connection, later."""
        self._incoming.append(data)
        self._unread += len(data or b"")
        self._reactor.callFromThread(self._read)

    def _read(self) -> None:
        while self._incoming and self.reading:
            data = self._incoming.popleft()
            if data is None:
                self._lost(ConnectionLost())
                return
            self._unread -= len(data)
            self.received_bytes += len(data)
            if self.protocol is not None:
                self.protocol.dataReceived(data)
        other = self.other
        if other._paused and self._unread <= BUFFER and other._producer is not None:
            other._paused = False
            other._producer.resumeProducing()

    def _lost(self, reason: Exception) -> None:
        self._open = False
        protocol, self.protocol = self.protocol, None
        if protocol is not None:
            protocol.connectionLost(Failure(reason))

    def getPeer(self) -> Any:
        """Return no address."""

    def getHost(self) -> Any:
        """Return no address."""


@implementer(IStreamClientEndpoint)
class StorageProcess:
    """
    A storage process in this process, and the endpoint that connects to it. It starts with the first connection.

    @ivar server: The server; L{None} while the process is not running.
    @ivar wires: The ends of all connections: the front's, and the process's.
    """

    def __init__(self, storage: IStorageBackend, reactor: TurningReactor) -> None:
        self.storage = storage
        self.server: StorageServer | None = None
        self.wires: list[tuple[WireEnd, WireEnd]] = []
        self.refusing = False
        self._reactor = reactor
        self._opened = False

    async def start(self) -> StorageServer:
        """Open the storage, and start the server."""
        if self.server is None:
            if not self._opened:
                await self.storage.open()
                self._opened = True
            self.server = StorageServer(self.storage, self._reactor)
            await self.server.start()
        return self.server

    async def stop(self) -> None:
        """Stop the server, and close the storage."""
        if self.server is not None:
            await self.server.stop()
        await self.storage.close()

    def connect(self, factory: Any) -> Deferred[Any]:
        """See L{IStreamClientEndpoint.connect}."""
        if self.refusing:
            return fail(ConnectError(string="the process is not running"))
        return Deferred.fromCoroutine(self._connect(factory))

    async def _connect(self, factory: Any) -> Any:
        server = await self.start()
        client = factory.buildProtocol(None)
        connection = server.factory().buildProtocol(None)
        near, far = WireEnd(self._reactor), WireEnd(self._reactor)
        near.other, far.other = far, near
        near.protocol, far.protocol = client, connection
        self.wires.append((near, far))
        connection.makeConnection(far)
        client.makeConnection(near)
        return client

    def disconnect(self) -> None:
        """Cut all connections, with what is on the way."""
        for near, far in self.wires:
            for end in (near, far):
                end._incoming.clear()
                end._lost(ConnectionLost())
        self.wires.clear()

    def front(self, **options: Any) -> RemoteStorage:
        """Return the storage of a new front."""
        return RemoteStorage(self, self._reactor, **options)


def remote_memory(case: Any, reactor: Any) -> RemoteStorage:
    """Return the storage of a front over a store in memory."""
    process = StorageProcess(MemoryStorage(reactor), reactor)
    case.addCleanup(lambda: reactor.run(process.stop()))
    return process.front()
