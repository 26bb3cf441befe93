"""
Connections of clients are accepted by the storage process and passed to the fronts.

Each connection goes to the front with the fewest connections of its client, and among these to the one with the fewest
in total. A front reports the connections that have ended, so that the limit counts the connections of the whole server.
The kernel would choose a front at random, which leaves few long connections unbalanced (decision 29).
"""

from __future__ import annotations

import errno
import os
import socket
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from struct import Struct
from typing import Any, Final, cast

from twisted.internet.abstract import FileDescriptor
from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import (
    IAddress,
    IDelayedCall,
    IProtocolFactory,
    IReactorFDSet,
    IReactorTime,
)
from twisted.internet.main import CONNECTION_DONE, CONNECTION_LOST
from twisted.internet.protocol import Factory, connectionDone
from twisted.internet.tcp import Server
from twisted.logger import Logger
from twisted.python.failure import Failure

from ...http.connection.connectionlimit import ConnectionLimiter, client_network
from ..errors import StartError
from ..listening import BACKLOG

#: Maximum number of connections that are accepted, or received, in one iteration of the reactor.
_MAX_AT_ONCE: Final = 64
#: Seconds until connections are accepted again, after an error or if no front can take one.
_PAUSE: Final = 0.05
#: The number of a connection, which is sent with its descriptor, and again at its end.
_NUMBER: Final = Struct("!I")
_CLOSE_ON_EXEC: Final = getattr(socket, "MSG_CMSG_CLOEXEC", 0)


def client_address(peer: tuple[Any, ...]) -> IPv4Address | IPv6Address:
    """Return the address of a client from its socket address."""
    return IPv4Address("TCP", *peer) if len(peer) == 2 else IPv6Address("TCP", *peer)


class ConnectionPasser(FileDescriptor):
    """
    Passes connections to one front.

    @ivar clients: The open connections of the front by client network, see L{client_network}.
    """

    def __init__(self, passing: socket.socket, reactor: IReactorFDSet, ended: Callable[[IAddress], object]) -> None:
        """
        @param passing: The socket to the front; it is closed by this object.
        @param reactor: The reactor.
        @param ended: Called with the client of each connection that has ended.
        """
        super().__init__(reactor)
        passing.setblocking(False)
        self.clients: Counter[str] = Counter()
        self._socket = passing
        self._ended = ended
        self._passed: dict[int, IAddress] = {}
        self._last = 0
        self._received = b""
        self.connected = 1
        self.startReading()  # type: ignore[no-untyped-call] # Twisted has no annotations

    def __len__(self) -> int:
        return len(self._passed)

    def fileno(self) -> int:
        """See L{FileDescriptor.fileno}."""
        return self._socket.fileno()

    def offer(self, connection: socket.socket, peer: IAddress) -> bool:
        """
        Pass a connection; the caller closes its descriptor.

        @return: Whether the front will receive it.
        """
        number = (self._last + 1) % (1 << 32)
        try:
            socket.send_fds(self._socket, [_NUMBER.pack(number)], [connection.fileno()])
        except OSError:
            # The queue is full, or the front has ended.
            return False
        self._last = number
        self._passed[number] = peer
        self.clients[client_network(getattr(peer, "host", ""))] += 1
        return True

    def doRead(self) -> Exception | None:
        """See L{FileDescriptor.doRead}: receive the numbers of connections that have ended."""
        try:
            data = self._socket.recv(1 << 16)
        except BlockingIOError:
            return None
        except OSError:
            return CONNECTION_LOST
        if not data:
            return CONNECTION_DONE
        data = self._received + data
        complete = len(data) - len(data) % _NUMBER.size
        self._received = data[complete:]
        for (number,) in _NUMBER.iter_unpack(data[:complete]):
            self._release(number)
        return None

    def _release(self, number: int) -> None:
        peer = self._passed.pop(number)
        network = client_network(getattr(peer, "host", ""))
        self.clients[network] -= 1
        if not self.clients[network]:
            del self.clients[network]
        self._ended(peer)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """See L{FileDescriptor.connectionLost}: the front has ended, and all of its connections."""
        super().connectionLost(reason)  # type: ignore[no-untyped-call] # Twisted has no annotations
        self._socket.close()
        for number in list(self._passed):
            self._release(number)

    def close(self) -> None:
        """Close the socket."""
        if self.connected:
            self.connectionLost(connectionDone)


class ConnectionAcceptor(FileDescriptor):
    """
    Accepts connections and passes them to the fronts.

    @ivar fronts: The fronts that receive connections.
    """

    _log = Logger()

    def __init__(self, listening: socket.socket, reactor: IReactorFDSet, limiter: ConnectionLimiter) -> None:
        """
        @param listening: A bound socket; it is closed by this object.
        @param reactor: The reactor.
        @param limiter: Limits the connections of a client to all fronts.
        """
        super().__init__(reactor)
        self.fronts: list[ConnectionPasser] = []
        self._socket = listening
        self._limiter = limiter
        self._clock = cast("IReactorTime", reactor)
        self._pause: IDelayedCall | None = None
        #: A connection that no front could take.
        self._waiting: tuple[socket.socket, IAddress] | None = None

    def start(self) -> None:
        """
        Accept connections from now on.

        @raise StartError: Another process listens on the address since it was bound.
        """
        try:
            self._socket.listen(BACKLOG)
        except OSError as error:
            raise StartError(f"cannot listen on port {self._socket.getsockname()[1]}: {error.strerror}") from error
        self.connected = 1
        self.startReading()  # type: ignore[no-untyped-call] # Twisted has no annotations

    def fileno(self) -> int:
        """See L{FileDescriptor.fileno}."""
        return self._socket.fileno()

    def ended(self, peer: IAddress) -> None:
        """Count the end of a connection."""
        self._limiter.release(peer)

    def doRead(self) -> None:
        """See L{FileDescriptor.doRead}: accept and pass connections; the rest waits in the queue of the kernel."""
        for _ in range(_MAX_AT_ONCE):
            if not self.fronts:
                self._wait()
                return
            try:
                connection, address = self._socket.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno not in (errno.ECONNABORTED, errno.EINTR):
                    self._log.error("cannot accept connections: {error}", error=error)
                    self._wait()
                    return
                continue
            connection.setblocking(False)
            peer = client_address(address)
            if not self._limiter.acquire(peer):
                self._limiter.release(peer)
                connection.close()
            elif not self._pass(connection, peer):
                self._waiting = connection, peer
                self._wait()
                return

    def _pass(self, connection: socket.socket, peer: IAddress) -> bool:
        network = client_network(getattr(peer, "host", ""))
        for front in sorted(self.fronts, key=lambda one: (one.clients[network], len(one))):
            if front.offer(connection, peer):
                connection.close()
                # Among equal fronts, the next connection goes to another one.
                self.fronts.remove(front)
                self.fronts.append(front)
                return True
        return False

    def _wait(self) -> None:
        self.stopReading()  # type: ignore[no-untyped-call] # Twisted has no annotations
        self._pause = self._clock.callLater(_PAUSE, self._resume)

    def _resume(self) -> None:
        self._pause = None
        waiting = self._waiting
        if waiting is not None:
            if not self._pass(*waiting):
                self._wait()
                return
            self._waiting = None
        self.startReading()  # type: ignore[no-untyped-call] # Twisted has no annotations

    def close(self) -> None:
        """Accept no more connections. Idempotent."""
        if self.connected:
            super().connectionLost(connectionDone)  # type: ignore[no-untyped-call] # Twisted has no annotations
        if self._pause is not None:
            self._pause.cancel()
            self._pause = None
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            waiting[0].close()
            self._limiter.release(waiting[1])
        self._socket.close()


class ReceivedConnection(Server):
    """A connection that this process has received; its end is reported."""

    def __init__(
        self,
        connection: socket.socket,
        protocol: Any,
        peer: tuple[Any, ...],
        reactor: Any,
        ended: Callable[[], object],
    ) -> None:
        """
        @param connection: The connection.
        @param protocol: Its protocol.
        @param peer: The address of the client.
        @param reactor: The reactor.
        @param ended: Called when the connection has ended.
        """
        super().__init__(connection, protocol, peer, cast("Any", None), peer[1], reactor)
        self.repstr = f"<{type(protocol).__name__} of {peer[0]}>"
        self._report_end = ended

    def connectionLost(self, reason: Failure) -> None:
        """See L{Server.connectionLost}."""
        super().connectionLost(reason)
        self._report_end()


class ConnectionReceiver(FileDescriptor):
    """Receives the connections of a front, in place of a listening port."""

    def __init__(
        self,
        passing: socket.socket,
        factory: Factory,
        reactor: IReactorFDSet,
        before_stop: Callable[[], Deferred[Any]],
    ) -> None:
        """
        @param passing: The socket to the storage process; it is closed at the end of the process.
        @param factory: Creates the protocols of connections.
        @param reactor: The reactor.
        @param before_stop: Fires when the storage process passes no more connections.
        """
        super().__init__(reactor)
        passing.setblocking(False)
        self._socket = passing
        self._factory = factory
        self._before_stop = before_stop
        self.connected = 1

    def fileno(self) -> int:
        """See L{FileDescriptor.fileno}."""
        return self._socket.fileno()

    def startListening(self) -> None:
        """Receive connections from now on."""
        self._factory.doStart()
        self.startReading()  # type: ignore[no-untyped-call] # Twisted has no annotations

    def stopListening(self) -> Deferred[None]:
        """Receive the connections that were passed before, and no later ones."""
        return Deferred.fromCoroutine(self._stop())

    async def _stop(self) -> None:
        await self._before_stop()
        self.doRead()
        self.stopReading()  # type: ignore[no-untyped-call] # Twisted has no annotations
        self._factory.doStop()

    def doRead(self) -> Exception | None:
        """See L{FileDescriptor.doRead}: receive connections."""
        for _ in range(_MAX_AT_ONCE):
            try:
                data, descriptors, _, _ = socket.recv_fds(self._socket, _NUMBER.size, 1, _CLOSE_ON_EXEC)
            except BlockingIOError:
                return None
            except OSError:
                return CONNECTION_LOST
            if not data:
                return CONNECTION_DONE
            self._received(data, descriptors)
        return None

    def _received(self, number: bytes, descriptors: list[int]) -> None:
        if not descriptors:
            # The process has too many open files: the kernel has closed the connection.
            self.write(number)
            return
        os.set_inheritable(descriptors[0], False)
        connection = socket.socket(fileno=descriptors[0])
        connection.setblocking(False)
        try:
            peer = connection.getpeername()
        except OSError:
            # The client has disconnected.
            connection.close()
            self.write(number)
            return
        protocol: Any = self._factory.buildProtocol(client_address(peer))
        transport = ReceivedConnection(connection, protocol, peer, self.reactor, lambda: self.write(number))
        protocol.makeConnection(transport)

    def writeSomeData(self, data: bytes) -> int | Exception:
        """See L{FileDescriptor.writeSomeData}: report the end of connections."""
        try:
            return self._socket.send(data)
        except BlockingIOError:
            return 0
        except OSError:
            return CONNECTION_LOST

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """See L{FileDescriptor.connectionLost}: the storage process has ended; its control connection ends, too."""
        super().connectionLost(reason)  # type: ignore[no-untyped-call] # Twisted has no annotations
        with suppress(OSError):
            self._socket.close()


class PassedAddress:
    """
    The address of a front, at which the storage process listens.

    @ivar port: The port.
    """

    def __init__(self, port: int, passing: socket.socket, before_stop: Callable[[], Deferred[Any]]) -> None:
        """
        @param port: The port.
        @param passing: The socket to the storage process.
        @param before_stop: Fires when the storage process passes no more connections.
        """
        self.port = port
        self._passing = passing
        self._before_stop = before_stop

    def listen(self, factory: IProtocolFactory, reactor: object) -> ConnectionReceiver:
        """Receive connections from now on."""
        receiver = ConnectionReceiver(
            self._passing, cast("Factory", factory), cast("IReactorFDSet", reactor), self._before_stop
        )
        receiver.startListening()
        return receiver

    def close(self) -> None:
        """Do nothing: the socket is closed at the end of the process."""
