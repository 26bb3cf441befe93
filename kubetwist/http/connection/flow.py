"""What passes through: bytes that somebody takes as they arrive, and connections that belong to another protocol."""

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
UNSENT: Final = 128 * 1024
_UNSENT_OPTION: Final = getattr(socket, "TCP_NOTSENT_LOWAT", 0)
#: How the system is asked whether the other end has hung up; 0 where it does not tell.
_HUNG_UP: Final = getattr(select, "POLLRDHUP", 0)


class Source(Protocol):
    """Where the bytes of a flow are read from."""

    def resume_reading(self) -> None:
        """Read."""

    def pause_reading(self) -> None:
        """Leave in the network what comes."""


class SocketTransport(Protocol):
    """A TCP connection of Twisted's, with or without TLS."""

    socket: socket.socket

    def setTcpNoDelay(self, enabled: bool) -> None:
        """Send small data at once."""

    def setTcpKeepAlive(self, enabled: bool) -> None:
        """Have the system check that the other end is there."""

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


class Switched(Source, Protocol):
    """A connection that belongs to another protocol now."""

    @property
    def transport(self) -> StreamTransport:
        """The transport."""

    def part(self) -> None:
        """Close the connection when the other end has read what was written, or does not read it."""

    def abort(self) -> None:
        """Close the connection now."""


@implementer(IPushProducer)
class Flow:
    """
    A body that nobody collects: it is read from its connection as fast as somebody takes it.

    @ivar finished: The last byte has arrived.
    @ivar taken: Somebody has begun to take it.
    """

    finished = False
    taken = False
    _consumer: IConsumer | None = None
    _done: Deferred[None] | None = None
    _failure: Failure | None = None
    _held = False

    def __init__(self, source: Source | None) -> None:
        """
        @param source: L{None} for a body that is there already.
        """
        self._source = source
        self._waiting: list[bytes] = []

    def deliver(self, consumer: IConsumer) -> Deferred[None]:
        """
        Write it to C{consumer}; once.

        @param consumer: L{IConsumer}; a push producer is registered with it until the end, if there is one to wait for.
        @return: Fires when all was written; fails when no more will come.
        """
        if self.taken:
            raise RuntimeError("the body is taken already")
        self.taken = True
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
        if not self._held:
            # Before what waits is written: the consumer may have enough with it.
            self.resumeProducing()
        waiting, self._waiting = self._waiting, []
        for piece in waiting:
            self.received(piece)
        return done

    def _begin(self) -> None:
        """Somebody takes it now."""

    def collected(self) -> bytes | None:
        """All of it, when it is there and nobody has taken it."""
        if not self.finished or self.taken:
            return None
        return b"".join(self._waiting)

    # The source tells.

    def received(self, piece: bytes) -> None:
        """A piece has arrived."""
        if self._consumer is not None:
            self._consumer.write(piece)
        elif not self.taken:
            self._waiting.append(piece)

    def finish(self) -> None:
        """All of it has arrived."""
        self.finished = True
        self._source = None
        if self.taken:
            self._end(None)

    def lost(self, reason: Failure) -> None:
        """No more of it will come."""
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
        """The consumer has enough for now."""
        self._held = True
        if self._source is not None:
            self._source.pause_reading()

    def resumeProducing(self) -> None:
        """The consumer takes more."""
        self._held = False
        if self._source is not None and self._consumer is not None:
            self._source.resume_reading()

    def stopProducing(self) -> None:
        """The consumer wants no more."""
        self._consumer = None
        self.pauseProducing()
        self._end(Failure(ConnectionDone()))


@implementer(IPushProducer)
class Leaving:
    """
    A producer that does not keep a connection open whose other side has said goodbye.

    TLS closes the connection below it then, which waits for a producer that is paused, and is not read meanwhile.
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
        if is_left(self._transport):
            self._transport.unregisterProducer()

    def stopProducing(self) -> None:
        """@see: L{IPushProducer}."""
        self._producer.stopProducing()


@implementer(ITransport, IConsumer, IPushProducer)
class RawTransport:
    """What a connection is to the protocol that it was switched to."""

    disconnecting = False
    _produced = False

    def __init__(self, connection: Switched) -> None:
        self._connection = connection
        self._transport = connection.transport

    def write(self, data: bytes) -> None:
        """@see: L{ITransport.write}."""
        self._transport.write(data)

    def writeSequence(self, data: Iterable[bytes]) -> None:
        """@see: L{ITransport.writeSequence}."""
        self._transport.write(b"".join(data))

    def loseConnection(self) -> None:
        """@see: L{ITransport.loseConnection}; who does not take what was written is cut off after a while."""
        if not self.disconnecting:
            self.disconnecting = True
            self._connection.part()

    def hang_up(self) -> None:
        """As L{loseConnection}, whether or not a producer is not done yet."""
        if self._produced:
            self.unregisterProducer()
        self.loseConnection()

    def abortConnection(self) -> None:
        """End it now."""
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
        self._transport.registerProducer(Leaving(cast(IPushProducer, producer), self._transport), streaming)

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


def is_left(transport: object) -> bool:
    """Whether the other side of a connection over TLS has said goodbye, and what was written to it is sent."""
    return getattr(getattr(transport, "transport", None), "disconnecting", False)


def keep_alive(transport: SocketTransport) -> None:
    """Have the system notice within minutes that the machine at the other end is gone."""
    try:
        transport.setTcpNoDelay(True)
        transport.setTcpKeepAlive(True)
        handle = transport.socket
    except AttributeError:
        # Not a socket: in tests.
        return
    for option, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4)):
        if hasattr(socket, option):
            handle.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


def bound_unsent(transport: SocketTransport) -> None:
    """
    Limit the unsent bytes in the kernel's send buffer to L{UNSENT}.

    Otherwise the buffer of each connection whose peer reads nothing grows to some megabytes. Bytes in flight are not
    limited, so that the throughput to distant clients does not change.
    """
    handle = getattr(transport, "socket", None)
    if handle is not None and _UNSENT_OPTION:
        with contextlib.suppress(OSError):
            handle.setsockopt(socket.IPPROTO_TCP, _UNSENT_OPTION, UNSENT)


def has_hung_up(transport: SocketTransport) -> bool:
    """Whether the other end sends no more, of a connection that is not read from, and so does not notice."""
    if not _HUNG_UP:
        return False
    try:
        descriptor = transport.fileno()
    except AttributeError:
        # Not a socket: in tests.
        return False
    if descriptor < 0:
        return False
    asked = select.poll()
    asked.register(descriptor, _HUNG_UP)
    return bool(asked.poll(0))
