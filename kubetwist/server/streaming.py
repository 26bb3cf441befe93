"""
Requests that are more than a head and a small body: bodies that are passed on while they arrive, and connections that
become another protocol's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import IConsumer, IPushProducer, ITransport
from twisted.python.failure import Failure
from zope.interface import implementer

if TYPE_CHECKING:
    from .channel import KubeChannel


@implementer(IPushProducer)
class StreamedBody:
    """
    A body that nobody collects: it is read from its connection as fast as somebody takes it.

    @ivar length: As the head says; L{None} for a body in chunks.
    @ivar finished: The last byte has arrived.
    @ivar taken: Somebody has begun to take it.
    """

    finished = False
    taken = False

    def __init__(self, channel: KubeChannel, length: int | None, expected: bool) -> None:
        """
        @param expected: The client waits to be told that it shall send.
        """
        self.length = length
        self._channel: KubeChannel | None = channel
        self._expected = expected
        self._waiting: list[bytes] = []
        self._consumer: Any = None
        self._done: Deferred[None] | None = None
        self._held = False

    def deliver(self, consumer: Any) -> Deferred[None]:
        """@see: L{kubetwist.server.site.KubeRequest.deliver_body}."""
        if self.taken:
            raise RuntimeError("the body is taken already")
        self.taken = True
        done = self._done = Deferred(lambda _: self.stopProducing())
        channel = self._channel
        if channel is None and not self.finished:
            self._done = None
            done.errback(Failure(ConnectionDone()))
            return done
        if self._expected and not self.finished and channel is not None:
            channel.tell_to_send()
        self._consumer = consumer
        consumer.registerProducer(self, True)
        if not self._held:
            # Before what waits is written: the consumer may have enough with it.
            self.resumeProducing()
        waiting, self._waiting = self._waiting, []
        for piece in waiting:
            self.received(piece)
        if self.finished:
            self._end(None)
        return done

    def collected(self) -> bytes | None:
        """The whole body, when all of it is there and nobody has taken it."""
        if not self.finished or self.taken:
            return None
        return b"".join(self._waiting)

    # The connection tells.

    def received(self, piece: bytes) -> None:
        """A piece of the body has arrived."""
        if self._consumer is not None:
            self._consumer.write(piece)
        elif not self.taken:
            self._waiting.append(piece)

    def finish(self) -> None:
        """The whole body has arrived."""
        self.finished = True
        self._channel = None
        if self.taken:
            self._end(None)

    def lost(self, reason: Failure) -> None:
        """No more of it will come, or is of use: the client has gone, or its request is answered."""
        self._channel = None
        if not self.finished:
            self._waiting = []
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
        if self._channel is not None:
            self._channel.read_no_further()

    def resumeProducing(self) -> None:
        """The consumer takes more."""
        self._held = False
        if self._channel is not None and self._consumer is not None:
            self._channel.read_on()

    def stopProducing(self) -> None:
        """The consumer wants no more: what is left is not read before the request is answered."""
        self._consumer = None
        self.pauseProducing()
        self._end(Failure(ConnectionDone()))


@implementer(ITransport, IConsumer, IPushProducer)
class SwitchedTransport:
    """What a connection is to the protocol that it was switched to."""

    disconnecting = False

    def __init__(self, channel: KubeChannel) -> None:
        self._channel = channel
        self._transport: Any = channel.transport

    def write(self, data: bytes) -> None:
        """@see: L{ITransport.write}."""
        self._transport.write(data)

    def writeSequence(self, data: Any) -> None:
        """@see: L{ITransport.writeSequence}."""
        self._transport.write(b"".join(data))

    def loseConnection(self) -> None:
        """@see: L{ITransport.loseConnection}; a client that does not take what was written is cut off after a while."""
        if not self.disconnecting:
            self.disconnecting = True
            self._channel.part()

    def abortConnection(self) -> None:
        """End it now."""
        self._channel.abort()

    def getPeer(self) -> Any:
        """@see: L{ITransport.getPeer}."""
        return self._transport.getPeer()

    def getHost(self) -> Any:
        """@see: L{ITransport.getHost}."""
        return self._transport.getHost()

    def registerProducer(self, producer: Any, streaming: bool) -> None:
        """@see: L{IConsumer.registerProducer}."""
        self._transport.registerProducer(producer, streaming)

    def unregisterProducer(self) -> None:
        """@see: L{IConsumer.unregisterProducer}."""
        self._transport.unregisterProducer()

    def pauseProducing(self) -> None:
        """@see: L{IPushProducer.pauseProducing}."""
        self._transport.pauseProducing()

    def resumeProducing(self) -> None:
        """@see: L{IPushProducer.resumeProducing}."""
        self._transport.resumeProducing()

    def stopProducing(self) -> None:
        """@see: L{IPushProducer.stopProducing}."""
        self.loseConnection()
