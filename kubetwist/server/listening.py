"""Bind the server's address at the beginning of a start, and listen on it at the end."""

from __future__ import annotations

import socket
from typing import Any, Final, Protocol, cast

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IListeningPort, IProtocolFactory, IReactorSocket

from .errors import StartError

#: Connections that the kernel queues until they are accepted.
BACKLOG: Final = 1024


class Listening(Protocol):
    """Something that accepts connections, such as an L{IListeningPort}."""

    def stopListening(self) -> Deferred[None] | None:
        """Accept no more connections."""


class ServedAddress(Protocol):
    """
    The address of a server.

    @ivar port: The port.
    """

    port: int

    def listen(self, factory: IProtocolFactory, reactor: IReactorSocket) -> Listening:
        """Accept connections from now on."""

    def close(self) -> None:
        """Release the address if nothing listens on it. Idempotent."""


class BoundAddress:
    """
    A bound TCP socket that refuses connections until L{listen} is called.

    The address is bound first, so that a server whose address is in use stops before it changes a file.

    @ivar port: The bound port, also if port 0 was requested.
    """

    def __init__(self, address: str, port: int, *, shared: bool = False) -> None:
        """
        Bind C{address} and C{port}; 0 stands for a free port.

        @param address: An IPv4 or IPv6 address.
        @param shared: Whether other processes that do the same may bind the port, too; the kernel distributes the
            connections among them (C{SO_REUSEPORT}).
        @raise StartError: It cannot be bound.
        """
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._socket: socket.socket | None = socket.socket(family, socket.SOCK_STREAM)
        try:
            self._socket.setblocking(False)
            # As Twisted does: connections of an earlier server in TIME_WAIT do not block the port.
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if shared:
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            self._socket.bind((address, port))
        except OSError as error:
            self.close()
            raise StartError(f"cannot listen on {address} port {port}: {error.strerror or error}") from error
        self.port: int = self._socket.getsockname()[1]

    def listen(self, factory: IProtocolFactory, reactor: IReactorSocket) -> IListeningPort:
        """
        Accept connections from now on.

        @raise StartError: Another process listens on the address since it was bound.
        """
        bound = self._socket
        assert bound is not None, "the address was released"
        try:
            bound.listen(BACKLOG)
        except OSError as error:
            address, port = bound.getsockname()[:2]
            raise StartError(f"cannot listen on {address} port {port}: {error.strerror or error}") from error
        # The reactor duplicates the descriptor.
        port = reactor.adoptStreamPort(bound.fileno(), bound.family, cast("Any", factory))
        self.close()
        return port

    def take(self) -> socket.socket:
        """Return the bound socket, which the caller closes."""
        bound, self._socket = self._socket, None
        assert bound is not None, "the address was released"
        return bound

    def close(self) -> None:
        """Release the address if nothing listens on it. Idempotent."""
        bound, self._socket = self._socket, None
        if bound is not None:
            bound.close()
