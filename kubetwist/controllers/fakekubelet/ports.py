"""What answers on the ports of simulated pods: an echo, a static response, or a port of this machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.endpoints import TCP4ClientEndpoint
from twisted.internet.interfaces import IProtocol
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.python.failure import Failure

from ...client.memorytransport import connect_in_memory
from ...http.request import KubeRequest
from ...http.site import KubeSite
from ..fakeimages import PortAnswer


class _Echo(Protocol):
    """Sends received data back, and reads no faster than the client does."""

    transport: Any

    def connectionMade(self) -> None:
        self.transport.registerProducer(self.transport, True)

    def dataReceived(self, data: bytes) -> None:
        self.transport.write(data)


class _Response(Protocol):
    """Sends a text, and closes."""

    transport: Any

    def __init__(self, text: bytes) -> None:
        self._text = text

    def connectionMade(self) -> None:
        self.transport.write(self._text)
        self.transport.loseConnection()


class _Forward(Protocol):
    """Forwards a connection to a port of this machine."""

    transport: Any

    def __init__(self, reactor: Any, host: str, port: int) -> None:
        self._endpoint = TCP4ClientEndpoint(reactor, host, port, timeout=5)
        self._other: _Bridge | None = None

    def connectionMade(self) -> None:
        self.transport.pauseProducing()
        factory = Factory.forProtocol(lambda: _Bridge(self))
        factory.noisy = False
        self._endpoint.connect(factory).addErrback(lambda failure: self.transport.abortConnection())

    def bridged(self, other: _Bridge) -> None:
        """Handle the established connection to the port."""
        if not self.transport.connected:
            other.transport.abortConnection()
            return
        self._other = other
        self.transport.registerProducer(other.transport, True)
        other.transport.registerProducer(self.transport, True)
        self.transport.resumeProducing()

    def dataReceived(self, data: bytes) -> None:
        if self._other is not None:
            self._other.transport.write(data)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        other, self._other = self._other, None
        if other is not None:
            other.transport.unregisterProducer()
            other.transport.loseConnection()


class _Bridge(Protocol):
    """The connection to the port of this machine."""

    transport: Any

    def __init__(self, near: _Forward) -> None:
        self._near = near

    def connectionMade(self) -> None:
        self._near.bridged(self)

    def dataReceived(self, data: bytes) -> None:
        self._near.transport.write(data)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self._near.transport.unregisterProducer()
        self._near.transport.loseConnection()


def make_answer(reactor: Any, answer: PortAnswer) -> IProtocol:
    """Return the protocol of a connection to a port."""
    if answer.kind == "echo":
        return _Echo()
    if answer.kind == "response":
        return _Response(answer.body)
    if answer.kind == "forward":
        return _Forward(reactor, answer.host, answer.port)

    def respond(request: KubeRequest) -> None:
        content_type = b"text/plain"
        for name, value in answer.headers:
            if name.lower() == "content-type":
                content_type = value.encode()
            else:
                request.setHeader(name, value)
        request.respond(answer.status, answer.body, content_type)

    return KubeSite(respond, reactor).buildProtocol(None)  # type: ignore[arg-type] # it ignores the address


class _StreamEnd(Protocol):
    """The client's end of a connection to a port, whose data go to a stream."""

    transport: Any

    def __init__(self, write: Callable[[bytes], None], end: Callable[[], None]) -> None:
        self._write = write
        self._end = end

    def dataReceived(self, data: bytes) -> None:
        self._write(data)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self._end()


def connect_stream(
    reactor: Any, answer: PortAnswer, write: Callable[[bytes], None], end: Callable[[], None]
) -> Callable[[bytes | None], None]:
    """
    Connect a stream to a port.

    @param write: Sends data to the client.
    @param end: Ends the stream.
    @return: A function that receives the client's data, and L{None} at their end.
    """
    near = _StreamEnd(write, end)
    connect_in_memory(reactor, near, make_answer(reactor, answer))

    def receive(data: bytes | None) -> None:
        if data is None:
            near.transport.loseConnection()
        else:
            near.transport.write(data)

    return receive


__all__ = ["connect_stream", "make_answer"]
