"""A TCP proxy between a client and a server whose connections tests can cut."""

from __future__ import annotations

from typing import Any

from twisted.internet.protocol import ClientFactory, Factory, Protocol


class _End(Protocol):
    """One side of a proxied connection; received data is sent on the other side."""

    other: _End | None = None

    def __init__(self, wire: CutWire, from_server: bool) -> None:
        self.wire = wire
        self.from_server = from_server
        self.held: list[bytes] = []
        self.closed = False
        self.filter = wire.filtering() if from_server and wire.filtering is not None else None

    def connectionMade(self) -> None:
        """Connect to the other side."""
        self.wire.ends.add(self)
        if not self.from_server:
            factory = ClientFactory()
            factory.noisy = False
            factory.buildProtocol = lambda address: self._join()
            factory.clientConnectionFailed = lambda connector, reason: self.transport.abortConnection()
            self.wire.reactor.connectTCP("127.0.0.1", self.wire.target, factory)
        elif self.other.closed:
            self.transport.abortConnection()
        else:
            for data in self.other.held:
                self.transport.write(data)
            self.other.held.clear()

    def _join(self) -> _End:
        end = _End(self.wire, True)
        end.other, self.other = self, end
        return end

    def dataReceived(self, data: bytes) -> None:
        """Forward received data."""
        if self.from_server and self.wire.swallowing is not None and self.wire.swallowing(data):
            return
        if not self.from_server and self.wire.rewriting is not None:
            data = self.wire.rewriting(data)
        if self.filter is not None:
            data = self.filter(data)
        other = self.other
        if other is None or other.transport is None:
            self.held.append(data)
        else:
            other.transport.write(data)

    def connectionLost(self, reason: Any = None) -> None:
        """Close the other side."""
        self.closed = True
        self.wire.ends.discard(self)
        if self.other is not None and self.other.transport is not None:
            self.other.transport.abortConnection()


class CutWire:
    """
    Listens at the address that the client uses for the server.

    @ivar swallowing: Returns whether a piece of data of the server is dropped; L{None} drops nothing.
    @ivar rewriting: Changes each piece of data of the client; L{None} changes nothing.
    @ivar filtering: Returns, for a new connection, a function that filters each piece of data of the server.
    """

    def __init__(self, reactor: Any, target: int) -> None:
        self.reactor = reactor
        self.target = target
        self.swallowing: Any = None
        self.rewriting: Any = None
        self.filtering: Any = None
        self.ends: set[_End] = set()
        self._factory = Factory.forProtocol(lambda: _End(self, False))
        self._factory.noisy = False
        self._port = reactor.listenTCP(0, self._factory, interface="127.0.0.1")
        self.port = self._port.getHost().port

    @property
    def url(self) -> str:
        """Return the address for the client."""
        return f"http://127.0.0.1:{self.port}"

    def break_connections(self) -> None:
        """Close all connections; new ones are accepted."""
        for end in list(self.ends):
            end.transport.abortConnection()

    def cut(self) -> Any:
        """Close all connections, and accept no new ones."""
        stopped = self._port.stopListening()
        self.break_connections()
        return stopped

    def accept_again(self) -> None:
        """Accept connections again."""
        self._port = self.reactor.listenTCP(self.port, self._factory, interface="127.0.0.1")
