"""Base of tests with a connection of HTTP/2 in memory, whose server is the test."""

from __future__ import annotations

from typing import Any

from hpack import Decoder

from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionDone
from twisted.internet.task import Clock
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.client.connection import PooledConnection, StreamingResponse, Upload
from kubetwist.client.errors import Unreachable
from kubetwist.client.http2.connection import Http2BackendConnection
from tests.client.streamingcase import Sink
from tests.http.http2 import frames as h2
from tests.http.http2.frames import Frame
from tests.http.http2.peer import Transport

OK = ((b":status", b"200"),)


class Pool:
    """
    An owner of connections.

    @ivar events: The names of the called methods.
    """

    def __init__(self) -> None:
        self.events: list[str] = []

    def made(self, connection: PooledConnection) -> None:
        """Record it."""
        self.events.append("made")

    def released(self, connection: PooledConnection) -> None:
        """Record it."""
        self.events.append("released")

    def lost(self, connection: PooledConnection) -> None:
        """Record it."""
        self.events.append("lost")


class Http2Case(SynchronousTestCase):
    """Base of tests of one connection."""

    def setUp(self) -> None:
        """Open a connection, and accept it with default settings."""
        self.start(h2.settings())

    def start(self, *frames: bytes) -> None:
        """Open a connection, and answer its preface with frames."""
        self.clock = Clock()
        self.pool = Pool()
        self.transport = Transport()
        self.connection = Http2BackendConnection(self.pool, self.clock, ("192.0.2.1", 443))
        self.connection.makeConnection(self.transport)  # type: ignore[no-untyped-call]
        self.preface = self.transport.value()
        self.transport.clear()
        self.decoder = Decoder()
        self.ready = self.connection.ready
        self.ready.addErrback(lambda failure: failure.trap(Unreachable) and None)
        self.receive(*frames)
        self.sent()

    def receive(self, *frames: bytes) -> None:
        """Deliver frames of the server."""
        data = b"".join(frames)
        if data:
            self.connection.dataReceived(data)

    def sent(self) -> list[Frame]:
        """Take the frames that the connection has sent."""
        frames, rest = h2.parse_frames(self.transport.value())
        self.assertEqual(rest, b"")
        self.transport.clear()
        return frames

    def send(
        self, method: bytes = b"GET", body: bytes | Upload | None = None, timeout: float | None = None, **fields: str
    ) -> Deferred[StreamingResponse]:
        """Send a request."""
        more = [(name.encode(), value.encode()) for name, value in fields.items()]
        return self.connection.round_trip(method, b"/a?b=c", [(b"Host", b"x:1"), *more], body, timeout, False)

    def head(self, frame: Frame) -> dict[str, str]:
        """Return the header fields of a frame."""
        self.assertEqual(frame.type, h2.HEADERS)
        return dict(self.decoder.decode(frame.payload))

    def answered(self, *frames: bytes, method: bytes = b"GET") -> StreamingResponse:
        """Return the response to a request that is answered with frames."""
        pending = self.send(method)
        self.receive(*frames)
        return self.successResultOf(pending)

    def refused(self, *frames: bytes, method: bytes = b"GET") -> str:
        """Return the error of a request that is answered with frames."""
        pending = self.send(method)
        self.receive(*frames)
        return str(self.failureResultOf(pending, Unreachable).value)

    def read(self, response: StreamingResponse) -> Sink:
        """Read a body."""
        sink = Sink()
        sink.done = response.deliver(sink)  # type: ignore[attr-defined]
        return sink

    def lose(self, reason: Exception | None = None) -> None:
        """Lose the connection."""
        self.connection.connectionLost(Failure(reason or ConnectionDone()))

    def goaway_code(self) -> int:
        """Return the code with which the connection was closed."""
        (frame,) = [frame for frame in self.sent() if frame.type == h2.GOAWAY]
        self.assertTrue(self.transport.disconnecting)
        return int.from_bytes(frame.payload[4:8], "big")


class Source:
    """A producer of an upload."""

    def __init__(self, length: int | None) -> None:
        self.consumer: Any = None
        self.paused = False
        self.cancelled = False
        self.done: Deferred[None] = Deferred(lambda _: setattr(self, "cancelled", True))
        self.upload = Upload(length, self._deliver)

    def _deliver(self, consumer: Any) -> Deferred[None]:
        self.consumer = consumer
        consumer.registerProducer(self, True)
        return self.done

    def finish(self) -> None:
        """End the body."""
        self.consumer.unregisterProducer()
        self.done.callback(None)

    def pauseProducing(self) -> None:
        """Pause."""
        self.paused = True

    def resumeProducing(self) -> None:
        """Resume."""
        self.paused = False

    def stopProducing(self) -> None:
        """Stop."""
