"""
Members of etcd, and the way to each: calls of gRPC over HTTP/2, on Twisted's reactor.

It does not use grpcio, whose threads would make the reactor's thread wait for each call.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Final

from twisted.internet.abstract import isIPAddress, isIPv6Address
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import HostnameEndpoint, TCP4ClientEndpoint, TCP6ClientEndpoint
from twisted.internet.interfaces import IDelayedCall, IOpenSSLClientConnectionCreator, IProtocol, IReactorTime
from twisted.internet.protocol import Factory
from twisted.python.failure import Failure

from ._connection import (
    CONNECT_TIMEOUT,
    KEEPALIVE,
    Connection,
    Request,
    Stream,
    TimedCall,
)
from ._errors import (
    NoResponse,
    NotSent,
)
from ._http2 import Call
from ._metrics import EtcdMetrics
from .address import Address

#: Seconds until a member that gave no answer is tried again: the first time, and at most.
BACKOFF_FIRST: Final = 0.5
BACKOFF_MAX: Final = 10.0


class Channel:
    """
    The connection to a member: its replacement when it accepts no more calls, and the queue of waiting calls.

    @ivar member: Which one.
    @ivar waiting: Calls that there was no room for.
    """

    def __init__(self, member: Member) -> None:
        self.member = member
        self.waiting: deque[TimedCall] = deque()
        self._connection: Connection | None = None
        self._all: set[Connection] = set()
        self._opening = False
        #: How many calls had to wait.
        self._count = 0

    def send(self, call: TimedCall, prompt: bool = False) -> None:
        """
        Send a call, as soon as there is room.

        @param prompt: Whether the turn is over: then nothing else has to be waited for.
        """
        connection = self._connection
        if connection is not None and not self.waiting and connection.room:
            connection.begin(call, prompt)
            return
        if self.member.closed:
            call.failed(NotSent("the client is closed"))
            return
        self._count += 1
        call.number = self._count
        self.waiting.append(call)
        self._open()

    def repeat(self, call: Call) -> None:
        """A call was certainly not done: it is sent again, once."""
        assert isinstance(call, TimedCall), "a connection begins no others"
        if not call.wanted:
            return
        call.cancel_timeout()
        if call.repeated or self.member.closed:
            call.failed(NotSent("the member does not take it"))
            return
        call.repeated = True
        call.again()
        self.send(call)

    def send_waiting(self) -> None:
        """There may be room for those who wait."""
        connection = self._connection
        while self.waiting and connection is not None and connection is self._connection and connection.room:
            call = self.waiting.popleft()
            if call.wanted:
                connection.begin(call)

    def _open(self) -> None:
        if self._opening or self._connection is not None or not self.waiting or self.member.closed:
            return
        self._opening = True
        last = self._count
        # An established connection reports its own end.
        self.member.connect(lambda: Connection(self, last)).addErrback(self.failed, last)

    def opened(self, connection: Connection) -> None:
        """A connection has come about."""
        self._opening = False
        if self.member.closed:
            connection.drop(NotSent("the client is closed"))
            return
        self._all.add(connection)
        self._connection = connection
        self.send_waiting()

    def failed(self, failure: Failure, last: int) -> None:
        """
        A connection did not come about.

        @param last: The number of the last call that it was begun for.
        """
        self._opening = False
        later: deque[TimedCall] = deque()
        while self.waiting and self.waiting[-1].number > last:
            later.appendleft(self.waiting.pop())
        self.member.mark_unhealthy(f"{self.member.address.authority}: {failure.getErrorMessage() or failure.value!r}")
        if later:
            self.waiting.extend(later)
            self._open()

    def retire(self, connection: Connection) -> None:
        """Replace a connection that accepts no more calls."""
        if connection is self._connection:
            self._connection = None
            self._open()

    def lost(self, connection: Connection) -> None:
        """A connection is closed."""
        self._all.discard(connection)
        self.retire(connection)

    def fail_waiting(self, why: str) -> None:
        """Others can be asked what waits here."""
        waiting, self.waiting = self.waiting, deque()
        for call in waiting:
            call.failed(NotSent(why))

    def close(self) -> None:
        """Close all connections."""
        for connection in list(self._all):
            connection.drop(NoResponse("the client is closed"))
        self.fail_waiting("the client is closed")


class Member:
    """
    One member of etcd.

    Calls and watches share a connection: the answer to a write, and its event, come in one read then, and one write of
    etcd's; and etcd sends what is large in turns with all else.

    @ivar address: Where it is.
    @ivar unhealthy_since: When it failed to respond, or L{None} while it is healthy. Other members are preferred.
    @ivar keepalive: Seconds of silence after which it is asked for a sign of life.
    @ivar metrics: Where calls are counted.
    """

    def __init__(
        self,
        address: Address,
        reactor: IReactorTime,
        tls: Callable[[str], IOpenSSLClientConnectionCreator] | None = None,
        examine: Callable[[Member], object] | None = None,
        metrics: EtcdMetrics | None = None,
    ) -> None:
        """
        @param tls: Makes the options of a TLS connection from a host name; not used without TLS.
        @param examine: Called some time after it was suspected: asks it for something.
        """
        self.address = address
        self.reactor = reactor
        self.unhealthy_since: float | None = None
        self.keepalive = KEEPALIVE
        self.metrics = metrics or EtcdMetrics()
        self.closed = False
        self._check_health = examine
        self._examination: IDelayedCall | None = None
        self._backoff = BACKOFF_FIRST
        self._channel = Channel(self)
        # The resolving endpoint reports a failure a third of a second late, as it waits for more addresses.
        kind = (
            TCP4ClientEndpoint
            if isIPAddress(address.host)
            else TCP6ClientEndpoint
            if isIPv6Address(address.host)
            else HostnameEndpoint
        )
        self._endpoint = kind(reactor, address.host, address.port, timeout=CONNECT_TIMEOUT)
        self._tls = tls(address.host) if address.tls and tls is not None else None

    def connect(self, make: Callable[[], Connection]) -> Deferred[IProtocol]:
        """Begin a connection."""
        factory: Any = Factory.forProtocol(make)
        factory.noisy = False
        if self._tls is not None:
            from twisted.protocols.tls import TLSMemoryBIOFactory

            factory = TLSMemoryBIOFactory(self._tls, True, factory, self.reactor)
        return self._endpoint.connect(factory)

    def post(self, path: bytes, message: bytes, timeout: float, prompt: bool = False) -> Deferred[bytes]:
        """
        Ask for something.

        @param prompt: See L{Channel.send}.
        @return: Fires with the answer.
        @raise RPCError: The member refuses.
        @raise NotSent: The member cannot be reached.
        @raise NoResponse: It did not answer.
        @raise ProtocolError: The answer is malformed.
        """
        request = Request(path, message, timeout)
        request.counts = self.metrics.of(path)
        request.counts.begin()
        answer = request.answer
        assert answer is not None
        self._channel.send(request, prompt)
        return answer

    def stream(
        self,
        path: bytes,
        message: bytes,
        receive: Callable[[bytes], object],
        end: Callable[[Exception | None], object],
        timeout: float,
    ) -> Stream:
        """
        Ask for something that goes on.

        @param receive: Called with each answer.
        @param end: Called once when there are no more, perhaps before this returns: with what went wrong, as with
            L{post}, or L{None}.
        @param timeout: Seconds until the first answer.
        """
        stream = Stream(path, message, timeout, receive, end)
        stream.counts = self.metrics.of(path, "bidi_stream")
        stream.counts.begin()
        self._channel.send(stream)
        return stream

    def mark_unhealthy(self, why: str) -> None:
        """Mark the member as unhealthy: calls that wait for it go to other members."""
        if self.closed:
            return
        self.unhealthy_since = self.reactor.seconds()
        if self._check_health is not None and (self._examination is None or not self._examination.active()):
            self._examination = self.reactor.callLater(self._backoff, self._check_health, self)
            self._backoff = min(self._backoff * 2, BACKOFF_MAX)
        self._channel.fail_waiting(why)

    def good(self) -> None:
        """It has answered."""
        if self.unhealthy_since is not None:
            self.unhealthy_since = None
            self._backoff = BACKOFF_FIRST

    def close(self) -> None:
        """Close all connections; what is under way has no answer."""
        self.closed = True
        if self._examination is not None and self._examination.active():
            self._examination.cancel()
        self._channel.close()
