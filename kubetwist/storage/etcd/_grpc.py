"""
Members of etcd, and the connections to them: calls of gRPC over HTTP/2, on Twisted's reactor.

It does not use grpcio, whose threads would make the reactor's thread wait for each call.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from twisted.internet.abstract import isIPAddress, isIPv6Address
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import HostnameEndpoint, TCP4ClientEndpoint, TCP6ClientEndpoint
from twisted.internet.interfaces import IOpenSSLClientConnectionCreator, IProtocol, IReactorTime
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
from ._health import MemberHealth
from ._http2 import Call
from ._metrics import EtcdMetrics
from .address import Address


class Channel:
    """
    The connection to a member: its replacement when it accepts no more calls, and the queue of waiting calls.

    @ivar member: The member.
    @ivar waiting: The calls that wait for a free stream.
    """

    def __init__(self, member: Member) -> None:
        self.member = member
        self.waiting: deque[TimedCall] = deque()
        self._connection: Connection | None = None
        self._all: set[Connection] = set()
        self._opening = False
        #: The number of calls that had to wait.
        self._count = 0

    def send(self, call: TimedCall, flush: bool = False) -> None:
        """
        Send a call as soon as a stream is free.

        @param flush: Whether to write it at once, without waiting for more calls of this turn.
        """
        connection = self._connection
        if connection is not None and not self.waiting and connection.has_capacity:
            connection.begin(call, flush)
            return
        if self.member.closed:
            call.failed(NotSent("the client is closed"))
            return
        self._count += 1
        call.number = self._count
        self.waiting.append(call)
        self._open()

    def retry(self, call: Call) -> None:
        """Send a call again, once, that was certainly not processed."""
        assert isinstance(call, TimedCall), "connections only begin TimedCalls"
        if not call.has_waiter:
            return
        call.cancel_timeout()
        if call.retried or self.member.closed:
            call.failed(NotSent("the member refused the call twice"))
            return
        call.retried = True
        call.reset_for_retry()
        self.send(call)

    def send_waiting(self) -> None:
        """Begin waiting calls, as far as streams are free."""
        connection = self._connection
        while self.waiting and connection is not None and connection is self._connection and connection.has_capacity:
            call = self.waiting.popleft()
            if call.has_waiter:
                connection.begin(call)

    def _open(self) -> None:
        if self._opening or self._connection is not None or not self.waiting or self.member.closed:
            return
        self._opening = True
        last = self._count
        # An established connection reports its end itself.
        self.member.connect(lambda: Connection(self, last)).addErrback(self.failed, last)

    def opened(self, connection: Connection) -> None:
        """Use a new connection."""
        self._opening = False
        if self.member.closed:
            connection.drop(NotSent("the client is closed"))
            return
        self._all.add(connection)
        self._connection = connection
        self.send_waiting()

    def failed(self, failure: Failure, last: int) -> None:
        """
        Handle a connection that could not be opened.

        @param last: The number of the last call that the attempt is for.
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
        """Handle a closed connection."""
        self._all.discard(connection)
        self.retire(connection)

    def fail_waiting(self, reason: str) -> None:
        """Fail the waiting calls, so that other members get them."""
        waiting, self.waiting = self.waiting, deque()
        for call in waiting:
            call.failed(NotSent(reason))

    def close(self) -> None:
        """Close all connections."""
        for connection in list(self._all):
            connection.drop(NoResponse("the client is closed"))
        self.fail_waiting("the client is closed")


class Member(MemberHealth):
    """
    A member of etcd.

    Calls and watches share a connection: the response to a write and its event are often written together by etcd and
    read together. Etcd interleaves large messages with other messages.

    @ivar keepalive: The keepalive interval in seconds.
    """

    def __init__(
        self,
        address: Address,
        reactor: IReactorTime,
        tls: Callable[[str], IOpenSSLClientConnectionCreator] | None = None,
        check_health: Callable[[Any], object] | None = None,
        metrics: EtcdMetrics | None = None,
    ) -> None:
        """
        @param address: The host and port.
        @param reactor: The reactor of its connections.
        @param tls: Returns the options of a TLS connection for a host name; not used without TLS.
        @param check_health: See L{MemberHealth}.
        @param metrics: The metrics of the calls.
        """
        super().__init__(address, reactor, check_health, metrics)
        self.keepalive = KEEPALIVE
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
        """Open a connection."""
        factory: Any = Factory.forProtocol(make)
        factory.noisy = False
        if self._tls is not None:
            from twisted.protocols.tls import TLSMemoryBIOFactory

            factory = TLSMemoryBIOFactory(self._tls, True, factory, self.reactor)
        return self._endpoint.connect(factory)

    def call_unary(self, path: bytes, message: bytes, timeout: float, flush: bool = False) -> Deferred[bytes]:
        """
        Send a request with a single response.

        @param flush: See L{Channel.send}.
        @return: Fires with the response.
        @raise RPCError: The member refuses the request.
        @raise NotSent: The member cannot be reached.
        @raise NoResponse: The member did not respond.
        @raise ProtocolError: The response is malformed.
        """
        request = Request(path, message, timeout)
        request.counts = self.metrics.of(path)
        request.counts.begin()
        response = request.response
        assert response is not None
        self._channel.send(request, flush)
        return response

    def stream(
        self,
        path: bytes,
        message: bytes,
        receive: Callable[[bytes], object],
        end: Callable[[Exception | None], object],
        timeout: float,
    ) -> Stream:
        """
        Send a request with a stream of responses.

        @param receive: Called with each response.
        @param end: Called once at the end of the stream, perhaps before this returns: with the error, as with
            L{call_unary}, or L{None}.
        @param timeout: Seconds until the first response.
        """
        stream = Stream(path, message, timeout, receive, end)
        stream.counts = self.metrics.of(path, "bidi_stream")
        stream.counts.begin()
        self._channel.send(stream)
        return stream

    def mark_unhealthy(self, reason: str) -> None:
        """See L{MemberHealth.mark_unhealthy}."""
        super().mark_unhealthy(reason)
        if not self.closed:
            self._channel.fail_waiting(reason)

    def close(self) -> None:
        """See L{MemberHealth.close}."""
        super().close()
        self._channel.close()
