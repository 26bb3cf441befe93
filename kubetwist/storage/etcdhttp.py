"""
Connections to one member of etcd: HTTP/1.1 that is kept alive, and nothing that the gateway of etcd does not need.

Why not twisted.web's Agent: every write of the server is a request here, and this takes a tenth of its time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlsplit

from attrs import frozen

from twisted.internet.defer import Deferred
from twisted.internet.endpoints import HostnameEndpoint
from twisted.internet.interfaces import IDelayedCall, IHandshakeListener
from twisted.internet.protocol import Factory, Protocol
from twisted.python.failure import Failure
from zope.interface import implementer

from .etcdwire import BadAnswer, ResponseReader

#: Requests that one member is asked at a time; what comes beyond that waits.
MOST_CONNECTIONS: Final = 64
#: Seconds that a connection may take to come about.
CONNECT_TIMEOUT: Final = 3.0
#: Seconds until a member that gave no answer is tried again: the first time, and at most.
BACKOFF_FIRST: Final = 0.5
BACKOFF_MOST: Final = 10.0
#: The most bytes of one answer that is not streamed.
MOST_ANSWER: Final = 1 << 30


class NotSent(Exception):
    """The member can not be reached: it knows nothing of the request."""


class NoAnswer(Exception):
    """The request was sent, but no answer came: it may have been done."""


class TooLate(NoAnswer):
    """No answer came in time."""


@frozen
class Address:
    """
    Where a member is.

    @ivar url: As it was given.
    @ivar tls: Whether it is spoken to over TLS.
    """

    url: str
    host: str
    port: int
    tls: bool

    @classmethod
    def parse(cls, url: str) -> Address:
        """
        Read one of --etcd-servers.

        @raise ValueError: It is none; the text says why.
        """
        full = url if "://" in url else f"http://{url}"
        try:
            parts = urlsplit(full)
            host, port = parts.hostname, parts.port
        except ValueError as error:
            raise ValueError(f"{url!r} is not the URL of an etcd server: {error}") from None
        if parts.scheme not in ("http", "https") or not host or parts.path not in ("", "/") or parts.query:
            raise ValueError(f"{url!r} is not the URL of an etcd server: http://host:port or https://host:port is")
        return cls(full.rstrip("/"), host, port or 2379, parts.scheme == "https")

    @property
    def authority(self) -> str:
        """Host and port, as they stand in a request."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@implementer(IHandshakeListener)
class Connection(Protocol):
    """
    One connection; it has one request at a time.

    @ivar usable: Whether requests can be sent.
    """

    def __init__(self, member: Member, last: int) -> None:
        """
        @param last: The number of the last request that there was when this connection was begun.
        """
        self.member = member
        self.last = last
        #: Before its end, a TLS connection may turn out to be none; nothing is sent until then.
        self._shaking_hands = member.address.tls
        #: Writes what can be written now, and tells how much that was; L{None} where that is not possible.
        self._at_once: Callable[[bytes], Any] | None = None
        self._reader: ResponseReader | None = None
        self._request: Request | None = None
        self.usable = True

    #: Has what TCP and TLS have.
    transport: Any

    def connectionMade(self) -> None:
        """See L{Protocol.connectionMade}."""
        self.transport.setTcpNoDelay(True)
        self.transport.setTcpKeepAlive(True)
        if not self.member.address.tls:
            self._at_once = getattr(self.transport, "writeSomeData", None)
        if not self._shaking_hands:
            self.member.opened(self)

    def handshakeCompleted(self) -> None:
        """See L{IHandshakeListener.handshakeCompleted}."""
        self._shaking_hands = False
        self.member.opened(self)

    def send(self, request: Request) -> None:
        """Send a request; the connection is idle."""
        self._request = request
        self._reader = ResponseReader()
        request.sent(self)
        message = request.message
        if self._at_once is not None:
            # Without waiting for the reactor to find that there is room: nothing else is on its way.
            done = self._at_once(message)
            if not isinstance(done, int):
                # Of a first piece that can not be sent nothing has arrived.
                self._fail(NotSent("the connection was closed"))
                return
            message = message[done:]
        if message:
            self.transport.write(message)

    def dataReceived(self, data: bytes) -> None:
        """See L{Protocol.dataReceived}."""
        request, reader = self._request, self._reader
        if request is None or reader is None:
            self.drop()  # Nobody has asked for anything.
            return
        try:
            body = reader.feed(data)
            if body or reader.done:
                request.received(reader.status, body)
        except Exception as error:
            self._fail(error if isinstance(error, BadAnswer) else NoAnswer(f"its answer broke the client: {error!r}"))
            return
        if reader.done and self._request is request:
            self._request = self._reader = None
            if reader.keep_alive and self.usable:
                self.member.freed(self)
            else:
                self.drop()
            request.finished(reader.status)

    def connectionLost(self, reason: Failure = Failure(Exception())) -> None:  # noqa: B008
        """See L{Protocol.connectionLost}."""
        self.usable = False
        if self._shaking_hands:
            self.member.failed(reason, self.last)
            return
        self.member.lost(self)
        request, reader = self._request, self._reader
        self._request = None
        if request is not None:
            if reader is not None and reader.lost():
                request.finished(reader.status)
            else:
                request.failed(NoAnswer(reason.getErrorMessage()))

    def drop(self) -> None:
        """Close it at once."""
        self.usable = False
        if self.transport is not None:
            self.transport.abortConnection()

    def _fail(self, error: Exception) -> None:
        request, self._request = self._request, None
        self.drop()
        if request is not None:
            request.failed(error)


class Request:
    """
    A request and what becomes of it.

    @ivar message: As it goes over the wire.
    @ivar connection: Over which it was sent; L{None} while it waits.
    """

    __slots__ = ("_parts", "_seconds", "_size", "_timeout", "answer", "connection", "message", "number")

    def __init__(self, message: bytes, seconds: float) -> None:
        """
        @param seconds: That there are for the answer, from the time that the request is sent.
        """
        self.message = message
        self.number = 0
        self.connection: Connection | None = None
        self._seconds = seconds
        #: Fires with status and body.
        self.answer: Deferred[tuple[int, bytes]] | None = Deferred()
        self._parts: list[bytes] = []
        self._size = 0
        self._timeout: IDelayedCall | None = None

    def sent(self, connection: Connection) -> None:
        """It is on its way."""
        self.connection = connection
        self._timeout = connection.member.reactor.callLater(self._seconds, self._timed_out)

    def _timed_out(self) -> None:
        assert self.connection is not None
        self.connection._fail(TooLate(f"no answer in {self._seconds:g} seconds"))

    def received(self, status: int, data: bytes) -> None:
        """A piece of the answer's body."""
        self._size += len(data)
        if self._size > MOST_ANSWER:
            raise BadAnswer("etcd sent an answer that is too large")
        self._parts.append(data)

    def finished(self, status: int) -> None:
        """The answer is complete."""
        answer = self._done()
        if answer is not None:
            answer.callback((status, self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)))

    def failed(self, error: Exception) -> None:
        """There is no answer."""
        answer = self._done()
        if answer is not None:
            answer.errback(error)

    def _done(self) -> Deferred[tuple[int, bytes]] | None:
        if self._timeout is not None and self._timeout.active():
            self._timeout.cancel()
        answer, self.answer = self.answer, None
        return answer


class StreamRequest(Request):
    """
    A request with an answer that goes on.

    C{answer} fires at the end, with the status, and the body if that is not 200; what comes before is handed over.
    """

    __slots__ = ("_receive",)

    def __init__(self, message: bytes, seconds: float, receive: Callable[[bytes], object]) -> None:
        super().__init__(message, seconds)
        self._receive = receive

    def received(self, status: int, data: bytes) -> None:
        """See L{Request.received}."""
        if status == 200:
            if self._timeout is not None and self._timeout.active():
                self._timeout.cancel()
            self._receive(data)
        else:
            super().received(status, data)

    def stop(self) -> None:
        """Listen no more; C{answer} does not fire."""
        self._done()
        if self.connection is not None:
            self.connection._request = None
            self.connection.drop()


class Member:
    """
    One member of etcd.

    @ivar address: Where it is.
    @ivar suspected: When it gave no answer, and has not since; others are asked rather then. L{None} while it is well.
    """

    def __init__(
        self, address: Address, reactor: Any, tls: Any = None, examine: Callable[[Member], object] | None = None
    ) -> None:
        """
        @param tls: Makes the options of a TLS connection from a host name; not used without TLS.
        @param examine: Called some time after it was suspected: asks it for something.
        """
        self.address = address
        self.reactor = reactor
        self.suspected: float | None = None
        self._examine = examine
        self._examination: IDelayedCall | None = None
        self._backoff = BACKOFF_FIRST
        self._idle: list[Connection] = []
        self._all: set[Connection] = set()
        self._opening = 0
        self._waiting: deque[Request] = deque()
        #: How many requests had to wait for a connection.
        self._count = 0
        self._closed = False
        self._head = (
            f" HTTP/1.1\r\nHost: {address.authority}\r\nContent-Type: application/json\r\nContent-Length: "
        ).encode("ascii")
        self._endpoint = HostnameEndpoint(reactor, address.host, address.port, timeout=CONNECT_TIMEOUT)
        self._tls = tls(address.host) if address.tls else None

    def post(self, path: bytes, body: bytes, timeout: float) -> Deferred[tuple[int, bytes]]:
        """
        Ask for something.

        @return: Fires with the status and the body.
        @raise NotSent: The member can not be reached.
        @raise NoAnswer: It did not answer.
        @raise BadAnswer: What it answered makes no sense.
        """
        request = Request(self._message(path, body), timeout)
        answer = request.answer
        assert answer is not None
        self._send(request)
        return answer

    def stream(self, path: bytes, body: bytes, receive: Callable[[bytes], object], timeout: float) -> StreamRequest:
        """
        Ask for something that goes on.

        @param receive: Called with each piece of the answer.
        @param timeout: Seconds until the first piece.
        @return: Without C{answer}, if it is over already.
        """
        request = StreamRequest(self._message(path, body), timeout, receive)
        answer = request.answer
        assert answer is not None
        self._send(request)
        if request.answer is None:
            # That is how the caller learns that it is over already: nobody has the answer.
            answer.addErrback(lambda failure: None)
        return request

    def _message(self, path: bytes, body: bytes) -> bytes:
        return b"POST %b%b%d\r\n\r\n%b" % (path, self._head, len(body), body)

    def _send(self, request: Request) -> None:
        while self._idle:
            connection = self._idle.pop()
            if connection.usable:
                connection.send(request)
                return
        self._count += 1
        request.number = self._count
        self._waiting.append(request)
        self._open()

    def _open(self) -> None:
        if self._closed or len(self._all) + self._opening >= MOST_CONNECTIONS or self._opening >= len(self._waiting):
            return
        self._opening += 1
        last = self._count
        factory: Any = Factory.forProtocol(lambda: Connection(self, last))
        factory.noisy = False
        if self._tls is not None:
            from twisted.protocols.tls import TLSMemoryBIOFactory

            factory = TLSMemoryBIOFactory(self._tls, True, factory, self.reactor)
        # What becomes of a connection that has come about it tells itself.
        self._endpoint.connect(factory).addErrback(self.failed, last)

    def opened(self, connection: Connection) -> None:
        """A connection has come about."""
        self._opening -= 1
        if self._closed:
            connection.drop()
            return
        self._all.add(connection)
        self.freed(connection)

    def failed(self, failure: Failure, last: int) -> None:
        """
        A connection did not come about.

        @param last: The number of the last request that it was begun for.
        """
        self._opening -= 1
        later: deque[Request] = deque()
        while self._waiting and self._waiting[-1].number > last:
            later.appendleft(self._waiting.pop())
        self.suspect(f"{self.address.authority}: {failure.getErrorMessage() or failure.value!r}")
        if later:
            self._waiting.extend(later)
            self._open()

    def suspect(self, why: str) -> None:
        """It gave no answer: what waits to be sent, others can be asked."""
        if self._closed:
            return
        self.suspected = self.reactor.seconds()
        if self._examine is not None and (self._examination is None or not self._examination.active()):
            self._examination = self.reactor.callLater(self._backoff, self._examine, self)
            self._backoff = min(self._backoff * 2, BACKOFF_MOST)
        waiting, self._waiting = self._waiting, deque()
        for request in waiting:
            request.failed(NotSent(why))

    def good(self) -> None:
        """It has answered."""
        if self.suspected is not None:
            self.suspected = None
            self._backoff = BACKOFF_FIRST

    def freed(self, connection: Connection) -> None:
        """A connection is idle."""
        while self._waiting:
            request = self._waiting.popleft()
            if request.answer is not None:
                connection.send(request)
                return
        self._idle.append(connection)

    def lost(self, connection: Connection) -> None:
        """A connection is closed."""
        self._all.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)
        if self._waiting:
            self._open()

    def close(self) -> None:
        """Close all connections; what is under way has no answer."""
        self._closed = True
        if self._examination is not None and self._examination.active():
            self._examination.cancel()
        for connection in list(self._all):
            connection.drop()
        waiting, self._waiting = self._waiting, deque()
        for request in waiting:
            request.failed(NotSent("the client is closed"))
