"""Stream bytes between connections: request bodies read as they arrive, and connections switched to other protocols."""

from __future__ import annotations

import contextlib
import select
import socket
from collections.abc import Iterable
from typing import Final, Protocol, cast

from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import IAddress, IConsumer, IProducer, IPushProducer, ITransport
from twisted.python.failure import Failure
from zope.interface import implementer

#: Unsent bytes of a connection that the kernel buffers.
MAX_UNSENT: Final = 128 * 1024
_UNSENT_OPTION: Final = getattr(socket, "TCP_NOTSENT_LOWAT", 0)
#: The poll event for a peer that has closed its side; 0 on systems without it.
_PEER_CLOSED: Final = getattr(select, "POLLRDHUP", 0)


class Source(Protocol):
    """The source of the bytes of a body stream."""

    def resume_reading(self) -> None:
        """Resume reading."""

    def pause_reading(self) -> None:
        """Pause reading, so that data wait in the network."""


class SocketTransport(Protocol):
    """A TCP connection of Twisted, with or without TLS."""

    socket: socket.socket

    def setTcpNoDelay(self, enabled: bool) -> None:
        """Send small data at once."""

    def setTcpKeepAlive(self, enabled: bool) -> None:
        """Enable TCP keepalive, which detects a lost peer."""

    def fileno(self) -> int:
        """Return the descriptor of the socket; -1 after the end of the connection."""


class StreamTransport(Protocol):
    """A connection that is written to at the pace of its reader."""

    def write(self, data: bytes) -> None:
        """As L{ITransport.write<twisted.internet.interfaces.ITransport.write>}."""

    def getPeer(self) -> IAddress:
        """Return the address of the other end."""

    def getHost(self) -> IAddress:
        """Return the address of this end."""

    def registerProducer(self, producer: IPushProducer, streaming: bool) -> None:
        """As L{IConsumer.registerProducer<twisted.internet.interfaces.IConsumer.registerProducer>}."""

    def unregisterProducer(self) -> None:
        """As L{IConsumer.unregisterProducer<twisted.internet.interfaces.IConsumer.unregisterProducer>}."""


class SwitchedConnection(Source, Protocol):
    """A connection that was switched to another protocol."""

    @property
    def transport(self) -> StreamTransport:
        """The transport."""

    def close_gracefully(self) -> None:
        """Close the connection when the peer has read the written data, or after a timeout."""

    def abort(self) -> None:
        """Close the connection now."""


@implementer(IPushProducer)
class BodyStream:
    """
    A streamed body: it is read from its connection as fast as its consumer accepts it.

    @ivar finished: The last byte has arrived.
    @ivar consumed: A consumer has started to read it.
    """

    finished = False
    consumed = False
    _consumer: IConsumer | None = None
    _done: Deferred[None] | None = None
    _failure: Failure | None = None
    _paused = False

    def __init__(self, source: Source | None) -> None:
        """
        @param source: The connection; L{None} for a body that has arrived already.
        """
        self._source = source
        self._waiting: list[bytes] = []

    def deliver(self, consumer: IConsumer) -> Deferred[None]:
        """
        Write the body to C{consumer}. May be called once.

        @param consumer: L{IConsumer}; a push producer is registered with it until the end of an incomplete body.
        @return: Fires when all was written; fails if the rest will not arrive.
        """
        if self.consumed:
            raise RuntimeError("the body is already consumed")
        self.consumed = True
        done = self._done = Deferred(lambda _: self.stopProducing())
        if self.finished or self._failure is not None:
            waiting, self._waiting = self._waiting, []
            for piece in waiting:
                consumer.write(piece)
            self._end(self._failure)
            return done
        self._begin()
        self._consumer = consumer
        consumer.registerProducer(self, True)
        if not self._paused:
            # Register before writing: the consumer may pause.
            self.resumeProducing()
        waiting, self._waiting = self._waiting, []
        for piece in waiting:
            self.received(piece)
        return done

    def _begin(self) -> None:
        """Mark the body as read by a consumer."""

    def buffered_body(self) -> bytes | None:
        """Return the whole body if it has arrived and no consumer has read from it."""
        if not self.finished or self.consumed:
            return None
        return b"".join(self._waiting)

    # The source reports a lost connection.

    def received(self, piece: bytes) -> None:
        """Handle a received piece."""
        if self._consumer is not None:
            self._consumer.write(piece)
        elif not self.consumed:
            self._waiting.append(piece)

    def finish(self) -> None:
        """Handle the end of the body."""
        self.finished = True
        self._source = None
        if self.consumed:
            self._end(None)

    def lost(self, reason: Failure) -> None:
        """Handle a lost connection: the rest of the body will not arrive."""
        self._source = None
        if not self.finished:
            self._failure = reason
            self._end(reason)

    def _end(self, reason: Failure | None) -> None:
        consumer, self._consumer = self._consumer, None
        done, self._done = self._done, None
        if consumer is not None:
            consumer.unregisterProducer()
        if done is not None and not done.called:
            if reason is None:
                done.callback(None)
            else:
                done.errback(reason)

    # IPushProducer

    def pauseProducing(self) -> None:
        """Pause: the consumer accepts no data for now."""
        self._paused = True
        if self._source is not None:
            self._source.pause_reading()

    def resumeProducing(self) -> None:
        """Resume: the consumer accepts more data."""
        self._paused = False
        if self._source is not None and self._consumer is not None:
            self._source.resume_reading()

    def stopProducing(self) -> None:
        """Stop: the consumer accepts no more data."""
        self._consumer = None
        self.pauseProducing()
        self._end(Failure(ConnectionDone()))


@implementer(IPushProducer)
class TLSCloseAwareProducer:
    """
    A producer that is unregistered when the peer has sent TLS close_notify, so that the connection can close.

    TLS then closes the connection below it, which waits for a paused producer and is not read.
    """

    def __init__(self, producer: IPushProducer, transport: StreamTransport) -> None:
        self._producer = producer
        self._transport = transport

    def pauseProducing(self) -> None:
        """@see: L{IPushProducer}."""
        self._producer.pauseProducing()

    def resumeProducing(self) -> None:
        """@see: L{IPushProducer}."""
        self._producer.resumeProducing()
        if is_tls_closing(self._transport):
            self._transport.unregisterProducer()

    def stopProducing(self) -> None:
        """@see: L{IPushProducer}."""
        self._producer.stopProducing()


@implementer(ITransport, IConsumer, IPushProducer)
class RawTransport:
    """The transport of a protocol that a connection was switched to."""

    disconnecting = False
    _produced = False

    def __init__(self, connection: SwitchedConnection) -> None:
        self._connection = connection
        self._transport = connection.transport

    def write(self, data: bytes) -> None:
        """@see: L{ITransport.write}."""
        self._transport.write(data)

    def writeSequence(self, data: Iterable[bytes]) -> None:
        """@see: L{ITransport.writeSequence}."""
        self._transport.write(b"".join(data))

    def loseConnection(self) -> None:
        """
        @see: L{ITransport.loseConnection}; a peer that does not read the written data is disconnected after a timeout.
        """
        if not self.disconnecting:
            self.disconnecting = True
            self._connection.close_gracefully()

    def unregister_and_close(self) -> None:
        """Close as L{loseConnection} does, without waiting for a registered producer."""
        if self._produced:
            self.unregisterProducer()
        self.loseConnection()

    def abortConnection(self) -> None:
        """Close the connection now."""
        self._connection.abort()

    def getPeer(self) -> IAddress:
        """@see: L{ITransport.getPeer}."""
        return self._transport.getPeer()

    def getHost(self) -> IAddress:
        """@see: L{ITransport.getHost}."""
        return self._transport.getHost()

    def registerProducer(self, producer: IProducer, streaming: bool) -> None:
        """@see: L{IConsumer.registerProducer}; only push producers are supported."""
        self._produced = True
        self._transport.registerProducer(
            TLSCloseAwareProducer(cast(IPushProducer, producer), self._transport), streaming
        )

    def unregisterProducer(self) -> None:
        """@see: L{IConsumer.unregisterProducer}."""
        self._produced = False
        self._transport.unregisterProducer()

    def pauseProducing(self) -> None:
        """@see: L{IPushProducer.pauseProducing}."""
        self._connection.pause_reading()

    def resumeProducing(self) -> None:
        """@see: L{IPushProducer.resumeProducing}."""
        self._connection.resume_reading()

    def stopProducing(self) -> None:
        """@see: L{IPushProducer.stopProducing}."""
        self.loseConnection()


def is_tls_closing(transport: object) -> bool:
    """Return whether the peer of a TLS connection has closed its side, and all written data are sent."""
    return getattr(getattr(transport, "transport", None), "disconnecting", False)


def enable_tcp_keepalive(transport: SocketTransport) -> None:
    """Enable keepalive, so that the system detects a lost peer within minutes."""
    try:
        transport.setTcpNoDelay(True)
        transport.setTcpKeepAlive(True)
        handle = transport.socket
    except AttributeError:
        # Tests use transports that are not sockets.
        return
    if getattr(handle, "family", None) == socket.AF_UNIX:
        # The peer is a process of this machine, whose end closes the connection.
        return
    for option, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4)):
        if hasattr(socket, option):
            handle.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


def bound_unsent(transport: SocketTransport) -> None:
    """
    Limit the unsent bytes in the kernel's send buffer to L{MAX_UNSENT}.

    Otherwise the buffer of each connection whose peer reads nothing grows to some megabytes. Bytes in flight are not
    limited, so that the throughput to distant clients does not change.
    """
    handle = getattr(transport, "socket", None)
    if handle is not None and _UNSENT_OPTION:
        with contextlib.suppress(OSError):
            handle.setsockopt(socket.IPPROTO_TCP, _UNSENT_OPTION, MAX_UNSENT)


def is_peer_closed(transport: SocketTransport) -> bool:
    """Return whether the peer has closed its side of a connection with paused reading."""
    if not _PEER_CLOSED:
        return False
    try:
        descriptor = transport.fileno()
    except AttributeError:
        # Tests use transports that are not sockets.
        return False
    if descriptor < 0:
        return False
    poller = select.poll()
    poller.register(descriptor, _PEER_CLOSED)
    return bool(poller.poll(0))
