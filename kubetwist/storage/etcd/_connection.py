"""
One connection to a member of etcd, with its socket and its calls.

The protocol HTTP/2 is in L{kubetwist.storage.etcd._http2}; this module adds timeouts, reads and writes.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sized
from typing import Any, Final
from typing import Protocol as TypingProtocol

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IHandshakeListener, IPullProducer, IPushProducer, IReactorTime
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure
from zope.interface import implementer

from ._errors import (
    NoResponse,
    NotSent,
    ProtocolError,
    ResponseTimeout,
)
from ._http2 import (
    Call,
    Session,
)
from ._interfaces import IEtcdStream
from ._metrics import UNCOUNTED
from .address import Address

#: Seconds for the connection to open, and then for the start of HTTP/2.
CONNECT_TIMEOUT: Final = 3.0
#: Maximum size in bytes of one response, and of one message of a stream; etcd splits those much larger than a request.
MAX_RESPONSE_BYTES: Final = 1 << 30
MAX_WATCH_MESSAGE_BYTES: Final = 256 << 20
#: Seconds of silence with calls under way after which a keepalive ping is sent, and the timeout for its response.
#: etcd rejects pings at intervals of less than five seconds (--grpc-keepalive-min-time).
KEEPALIVE: Final = 10.0
#: The longest keepalive interval, for members that report too many pings.
KEEPALIVE_MAX: Final = 640.0
#: Seconds until a ping is answered. etcd sends one with each request, to measure the round trip time, unless one is
#: pending: immediate replies would cost both sides more than the requests.
PING_ACK_DELAY: Final = 0.1


class Peer(TypingProtocol):
    """The member at the other end of a connection: L{kubetwist.storage.etcd._grpc.Member}."""

    #: The keepalive interval in seconds.
    keepalive: float

    @property
    def address(self) -> Address:
        """The host and port of the member."""

    @property
    def reactor(self) -> IReactorTime:
        """The reactor of its connections."""


class ConnectionOwner(TypingProtocol):
    """The receiver of a connection's reports: L{kubetwist.storage.etcd._grpc.Channel}."""

    @property
    def member(self) -> Peer:
        """The member that the connection is for."""

    @property
    def waiting(self) -> Sized:
        """The calls that wait for a free stream."""

    def opened(self, connection: Connection) -> None:
        """Add a connection that speaks HTTP/2."""

    def failed(self, failure: Failure, last: int) -> None:
        """
        Handle a connection that could not be opened.

        @param last: The number of the last call that this attempt is for.
        """

    def retire(self, connection: Connection) -> None:
        """Stop new calls on a connection."""

    def lost(self, connection: Connection) -> None:
        """Remove a closed connection."""

    def retry(self, call: Call) -> None:
        """Send a call again that the member did not process."""

    def send_waiting(self) -> None:
        """Begin waiting calls, as far as streams are free."""


class TimedCall(Call):
    """
    A call with a timeout for its response.

    @ivar number: Counts the calls that had to wait for a connection.
    @ivar connection: The connection it was sent over; L{None} while it waits.
    @ivar retried: Whether an earlier connection refused it.
    @ivar seconds: See L{__init__}.
    @ivar counts: The metrics of the method.
    """

    __slots__ = ("_timeout", "connection", "counts", "number", "retried", "seconds")

    def __init__(self, path: bytes, message: bytes, seconds: float, limit: int, **how: bool) -> None:
        """
        @param seconds: The timeout of the response, from the time that the request is sent.
        """
        super().__init__(path, message, limit, **how)
        self.number = 0
        self.connection: Connection | None = None
        self.retried = False
        self.seconds = seconds
        self.counts = UNCOUNTED
        self._timeout: IDelayedCall | None = None

    def sent(self, connection: Connection) -> None:
        """Note that the call is sent."""
        self.connection = connection
        self._timeout = connection.channel.member.reactor.callLater(self.seconds, self._timed_out)

    def _timed_out(self) -> None:
        connection = self.connection
        assert connection is not None, "it was sent"
        self._timeout = None
        connection.timed_out(self)
        self.failed(ResponseTimeout(f"no response in {self.seconds:g} seconds"))

    def cancel_timeout(self) -> None:
        """Stop the timeout."""
        timeout, self._timeout = self._timeout, None
        if timeout is not None:
            timeout.cancel()

    @property
    @abstractmethod
    def has_waiter(self) -> bool:
        """Return whether a caller still waits for the result."""


class Request(TimedCall):
    """
    A call with a single response.

    @ivar response: Fires with the response; L{None} afterwards.
    """

    __slots__ = ("_found", "response")

    def __init__(self, path: bytes, message: bytes, seconds: float) -> None:
        super().__init__(path, message, seconds, MAX_RESPONSE_BYTES)
        self.response: Deferred[bytes] | None = Deferred()
        self._found: bytes | None = None

    @property
    def has_waiter(self) -> bool:
        """See L{TimedCall.has_waiter}."""
        return self.response is not None

    def received(self, message: bytes) -> None:
        """See L{Call.received}."""
        if self._found is not None:
            raise ProtocolError("etcd sent more than one response")
        self.counts.received += 1
        self._found = message

    def ended(self) -> None:
        """See L{Call.ended}."""
        if self._found is None:
            self.failed(ProtocolError("etcd sent status OK without a response message"))
            return
        self.cancel_timeout()
        response, self.response = self.response, None
        if response is not None:
            self.counts.end()
            response.callback(self._found)

    def failed(self, error: Exception) -> None:
        """See L{Call.failed}."""
        self.cancel_timeout()
        response, self.response = self.response, None
        if response is not None:
            self.counts.end(error)
            response.errback(error)


@implementer(IEtcdStream)
class Stream(TimedCall):
    """
    A call with a stream of responses.

    @ivar end: Called at the end of the stream, unless L{stop} was: with the error, or L{None}.
    """

    __slots__ = ("_receive", "end")

    def __init__(
        self,
        path: bytes,
        message: bytes,
        seconds: float,
        receive: Callable[[bytes], object],
        end: Callable[[Exception | None], object],
    ) -> None:
        """
        @param seconds: The timeout of the first response.
        """
        super().__init__(path, message, seconds, MAX_WATCH_MESSAGE_BYTES, streaming=True, require_leader=True)
        self._receive = receive
        self.end: Callable[[Exception | None], object] | None = end

    @property
    def has_waiter(self) -> bool:
        """See L{TimedCall.has_waiter}."""
        return self.end is not None

    def received(self, message: bytes) -> None:
        """See L{Call.received}."""
        if self._timeout is not None:
            self.cancel_timeout()
        if self.end is not None:
            self.counts.received += 1
            self._receive(message)

    def ended(self) -> None:
        """See L{Call.ended}."""
        self._finish(None)

    def failed(self, error: Exception) -> None:
        """See L{Call.failed}."""
        self._finish(error)

    def _finish(self, error: Exception | None) -> None:
        self.cancel_timeout()
        end, self.end = self.end, None
        if end is not None:
            self.counts.end(error)
            end(error)

    def stop(self) -> None:
        """Cancel the stream."""
        self.cancel_timeout()
        if self.end is not None:
            self.counts.cancel()
        self.end = None
        if self.connection is not None:
            self.connection.cancel(self)


@implementer(IHandshakeListener, IPullProducer, IPushProducer)
class Connection(Protocol):
    """
    A connection to a member.

    @ivar channel: The owner of the connection.
    """

    #: A transport of TCP or TLS.
    transport: Any

    def __init__(self, channel: ConnectionOwner, last: int) -> None:
        """
        @param last: The number of the newest call when this connection was begun.
        """
        self.channel = channel
        self.session = Session(
            channel.member.address.authority,
            "https" if channel.member.address.tls else "http",
            channel.retry,
            self._schedule_ping_ack,
        )
        self._last = last
        #: Writes as much as possible now and returns the number of bytes; L{None} where that is not possible.
        self._write_now: Callable[[bytes], Any] | None = None
        #: Whether the transport's buffer is full.
        self._write_paused = False
        self._closed = False
        self._opened = False
        #: The reason for closing it from this side.
        self._error: Exception | None = None
        #: The timeout for the start of HTTP/2.
        self._connect_timeout: IDelayedCall | None = None
        self._keepalive: IDelayedCall | None = None
        self._keepalive_ping_sent = False
        self._pings: IDelayedCall | None = None
        #: The calls begun whose requests are not written yet.
        self._begun: list[TimedCall] = []
        #: The end of this turn of the reactor. All calls of a turn are written together: separate writes cost etcd a
        #: third more, since each of them wakes up a thread.
        self._flush_call: IDelayedCall | None = None
        self._seconds: Callable[[], float] = channel.member.reactor.seconds
        self._last_received_at = 0.0

    # --- start and stop

    def connectionMade(self) -> None:
        """See L{Protocol.connectionMade}."""
        transport, tls = self.transport, self.channel.member.address.tls
        transport.setTcpNoDelay(True)
        transport.setTcpKeepAlive(True)
        if not tls:
            self._write_now = getattr(transport, "writeSomeData", None)
        # Without TLS, the transport reports when all is written; over TLS, when its buffer is too full.
        transport.registerProducer(self, tls or self._write_now is None)
        self._connect_timeout = self.channel.member.reactor.callLater(
            CONNECT_TIMEOUT, self.drop, NotSent(f"no HTTP/2 in {CONNECT_TIMEOUT:g} seconds")
        )
        if not tls:
            self._write(self.session.connection_preface())

    def handshakeCompleted(self) -> None:
        """See L{IHandshakeListener.handshakeCompleted}."""
        if self.transport.negotiatedProtocol == b"h2":
            self._write(self.session.connection_preface())
        else:
            self.drop(ProtocolError("tls: etcd does not speak HTTP/2"))

    def dataReceived(self, data: bytes) -> None:
        """See L{Protocol.dataReceived}."""
        if self._closed:
            return
        self._last_received_at = self._seconds()
        self._keepalive_ping_sent = False
        session = self.session
        try:
            session.feed(data)
        except ProtocolError as error:
            self.drop(error)
            return
        if session.pending and self._flush_call is None:
            self._flush()
        if session.ready and not self._opened and not self._closed:
            self._open()
        if not session.usable:
            self._retire()
        elif self.channel.waiting:
            self.channel.send_waiting()

    def _open(self) -> None:
        self._opened = True
        if self._connect_timeout is not None:
            self._connect_timeout.cancel()
        self._keepalive = self.channel.member.reactor.callLater(self.channel.member.keepalive, self._check_keepalive)
        self.channel.opened(self)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """See L{Protocol.connectionLost}."""
        if self._closed:
            return
        self._closed = True
        for call in (self._connect_timeout, self._keepalive, self._pings, self._flush_call):
            if call is not None and call.active():
                call.cancel()
        begun, self._begun = self._begun, []
        for unsent in begun:
            self.session.calls.pop(unsent.stream, None)
        error = self._error or NoResponse(reason.getErrorMessage())
        if self._opened:
            self.channel.lost(self)
            self.session.lost(error)
        else:
            self.channel.failed(Failure(self._error) if self._error is not None else reason, self._last)
        # The member has received nothing of these.
        for unsent in begun:
            self.channel.retry(unsent)

    def drop(self, reason: Exception) -> None:
        """Close the connection at once; calls under way fail with the error."""
        if self._error is None:
            self._error = reason
        self.session.usable = False
        if self.transport is not None:
            self.transport.abortConnection()
        # The transport reports it later; the calls must not wait for that.
        self.connectionLost(Failure(reason))

    def _retire(self) -> None:
        """Accept no new calls; those under way go on."""
        if self.session.too_many_pings:
            self.session.too_many_pings = False
            member = self.channel.member
            member.keepalive = min(member.keepalive * 2, KEEPALIVE_MAX)
        self.channel.retire(self)
        if not self.session.calls and not self._closed:
            self.drop(NotSent("the connection accepts no more calls"))

    # --- calls

    @property
    def has_capacity(self) -> bool:
        """Return whether a call can be sent now."""
        return not self._write_paused and self.session.has_capacity

    def begin(self, call: TimedCall, flush: bool = False) -> None:
        """
        Send a call at the end of this turn; requires L{has_capacity}.

        @param flush: Whether to send it at once instead.
        """
        self.session.begin(call)
        call.sent(self)
        self._begun.append(call)
        if self._flush_call is None:
            if flush:
                self._flush()
            else:
                self._flush_call = self.channel.member.reactor.callLater(0, self._flush_turn)

    def _flush_turn(self) -> None:
        self._flush_call = None
        if self.session.pending:
            self._flush()

    def cancel(self, call: TimedCall) -> None:
        """Cancel a call."""
        self.session.cancel(call)
        if self._flush_call is None:
            self._flush()
        if not self.session.usable:
            self._retire()
        elif self.channel.waiting:
            self.channel.send_waiting()

    def timed_out(self, call: TimedCall) -> None:
        """Handle the timeout of a call."""
        self.session.cancel(call)
        if self._seconds() - self._last_received_at >= call.seconds:
            # The whole connection is silent: new calls are better sent over another one.
            self.session.usable = False
            self._retire()
            return
        self._flush()
        if self.channel.waiting:
            self.channel.send_waiting()

    # --- writing

    def _write(self, data: bytes) -> bool:
        """Write, immediately if that is possible; return whether the connection is open."""
        if self._write_now is not None:
            # The kernel takes the data now, so that the reactor need not poll the socket first.
            done = self._write_now(data)
            if not isinstance(done, int):
                return False
            if done < len(data):
                self._write_paused = True
                self.transport.write(data[done:])
        else:
            self.transport.write(data)
        return True

    def _flush(self) -> None:
        if self._closed or self._write_paused:
            return
        if self._write(self.session.data_to_send()):
            self._begun.clear()
        else:
            self.drop(NoResponse("the connection was closed"))

    def pauseProducing(self) -> None:
        """See L{IPushProducer.pauseProducing}."""
        self._write_paused = True

    def resumeProducing(self) -> None:
        """See L{IPullProducer.resumeProducing}."""
        if not self._write_paused:
            return
        self._write_paused = False
        if self.session.pending:
            self._flush()
        if self.channel.waiting:
            self.channel.send_waiting()

    def stopProducing(self) -> None:
        """See L{IPullProducer.stopProducing}."""

    # --- pings

    def _schedule_ping_ack(self) -> None:
        if not self._closed and (self._pings is None or not self._pings.active()):
            self._pings = self.channel.member.reactor.callLater(PING_ACK_DELAY, self._send_ping_ack)

    def _send_ping_ack(self) -> None:
        self.session.acknowledge()
        self._flush()

    def _check_keepalive(self) -> None:
        member = self.channel.member
        if self.session.calls and self._seconds() - self._last_received_at >= member.keepalive:
            if self._keepalive_ping_sent:
                self.drop(NoResponse("keepalive ping timed out"))
                return
            self._keepalive_ping_sent = True
            self.session.ping()
            self._flush()
        self._keepalive = member.reactor.callLater(member.keepalive, self._check_keepalive)
