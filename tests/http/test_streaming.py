"""Tests of L{kubetwist.http.streaming} and of switched connections."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionDone
from twisted.internet.protocol import Protocol
from twisted.internet.task import Clock
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.errors import APIStatusError
from kubetwist.http.connection.bodyshares import MAX_BODY
from kubetwist.http.http1.channel import GRACEFUL_CLOSE_TIMEOUT, LINGER_TIMEOUT
from kubetwist.http.http1.requestbody import MAX_DISCARDED
from kubetwist.http.request import KubeRequest

from .harness import Client, echo, make_site

GET = b"GET /next HTTP/1.1\r\nHost: x\r\n\r\n"
PUT = b"PUT /s HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n"
CHUNKED = b"PUT /s HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"


class Sink:
    """A consumer that collects data and pauses its producer after some bytes."""

    def __init__(self, most: int = 1 << 30) -> None:
        self.pieces: list[bytes] = []
        self.producer: Any = None
        self._most = most

    @property
    def data(self) -> bytes:
        """Return all collected data."""
        return b"".join(self.pieces)

    def registerProducer(self, producer: Any, streaming: bool) -> None:
        """Register the only producer."""
        assert self.producer is None
        assert streaming
        self.producer = producer

    def unregisterProducer(self) -> None:
        """Unregister the producer."""
        self.producer = None

    def write(self, data: bytes) -> None:
        """Collect data, and pause the producer at the limit."""
        self.pieces.append(data)
        if len(self.data) >= self._most:
            self.producer.pauseProducing()


class StreamedCase(SynchronousTestCase):
    """Base of tests with a site that streams the bodies for C{/s}."""

    def setUp(self) -> None:
        """Create a connection."""
        self.clock = Clock()
        self.site = make_site(self.handle, self.clock)
        self.site.streams.append(lambda request: request.path == b"/s")
        self.requests: list[KubeRequest] = []
        self.client = Client(self.site)
        self.transport = self.client.transport

    def handle(self, request: KubeRequest) -> None:
        """Record streamed requests for the test, and answer others."""
        if request.body_too_large:
            request.fail(APIStatusError.too_large("too large"))
        elif request.streamed is None and not request.fields.get(b"upgrade"):
            echo(request)
        else:
            self.requests.append(request)

    @property
    def reading(self) -> bool:
        """Return whether the connection is read."""
        return self.transport.producerState == "producing"

    def begin(self, data: bytes, sink: Sink | None = None) -> tuple[KubeRequest, Sink, Deferred[None]]:
        """Send the beginning of a request, and consume its body."""
        self.client.send(data)
        request = self.requests[-1]
        sink = sink or Sink()
        done = request.deliver_body(sink)
        done.addErrback(lambda reason: reason)
        return request, sink, done


class BodyTests(StreamedCase):
    """Streamed bodies."""

    def test_pieces(self) -> None:
        """A body is delivered as it arrives; the next request follows on the connection."""
        request, sink, done = self.begin(PUT + b"hel")
        self.assertEqual((request.body_length, sink.data), (10, b"hel"))
        self.client.send(b"lo w")
        self.assertEqual(sink.data, b"hello w")
        self.assertNoResult(done)
        self.client.send(b"rld" + GET)
        self.successResultOf(done)
        self.assertEqual((sink.data, sink.producer), (b"hello wrld", None))
        request.respond(200, b"ok", b"text/plain")
        first, second = self.client.answers()
        self.assertEqual((first.body, first.header("connection")), (b"ok", None))
        self.assertEqual(second.body, b"GET /next ")

    def test_chunks(self) -> None:
        """A body in chunks has no length, and is delivered without framing."""
        request, sink, done = self.begin(CHUNKED + b"5\r\nhello\r\n3\r\nwo")
        self.assertIsNone(request.body_length)
        self.client.send(b"r\r\n0\r\nTrailer: x\r\n\r\n" + GET)
        self.successResultOf(done)
        self.assertEqual(sink.data, b"hellowor")
        request.respond(200, b"ok", b"text/plain")
        self.assertEqual(len(self.client.answers()), 2)

    @given(sizes=st.lists(st.integers(1, 30), min_size=1, max_size=20), chunked=st.booleans(), late=st.booleans())
    def test_any_pieces(self, sizes: list[int], chunked: bool, late: bool) -> None:
        """A body is delivered independently of the segmentation and of the time at which it is consumed."""
        self.setUp()
        data = (CHUNKED + b"6\r\nhello \r\n5\r\nworld\r\n0\r\n\r\n" if chunked else PUT + b"hello worl") + GET
        sink = Sink()
        dones = []
        for size in [*sizes, len(data)]:
            piece, data = data[:size], data[size:]
            if piece:
                self.client.send(piece)
            if self.requests and not dones and not (late and data):
                dones.append(self.requests[0].deliver_body(sink))
        self.successResultOf(dones[0])
        self.assertEqual(sink.data, b"hello world" if chunked else b"hello worl")
        self.requests[0].respond(200, b"ok", b"text/plain")
        self.assertEqual(len(self.client.answers()), 2)

    def test_no_limit(self) -> None:
        """A streamed body has no size limit and uses no memory."""
        size = MAX_BODY * 3
        _, sink, done = self.begin(PUT.replace(b"10", b"%d" % size))
        for _ in range(size // 65536):
            self.client.send(b"x" * 65536)
        self.successResultOf(done)
        self.assertEqual(sum(map(len, sink.pieces)), size)
        self.assertEqual(self.site.connections.bodies.used, 0)

    def test_collected_body_limit(self) -> None:
        """A body that is not streamed has the usual limit."""
        self.client.send(PUT.replace(b"/s", b"/t").replace(b"10", b"%d" % (MAX_BODY + 1)))
        (answer,) = self.client.answers()
        self.assertEqual(answer.code, 413)

    def test_no_consumer(self) -> None:
        """The body is not read before it has a consumer."""
        self.client.send(PUT + b"hel")
        self.assertFalse(self.reading)
        sink = Sink()
        done = self.requests[0].deliver_body(sink)
        self.assertTrue(self.reading)
        self.client.send(b"lo worl")
        self.successResultOf(done)
        self.assertEqual(sink.data, b"hello worl")

    def test_paced(self) -> None:
        """A paused consumer pauses reading."""
        _, sink, done = self.begin(PUT + b"hel", Sink(3))
        self.assertFalse(self.reading)
        sink.producer.resumeProducing()
        self.assertTrue(self.reading)
        self.client.send(b"lo")
        self.assertFalse(self.reading)
        # TLS may have decrypted more already.
        self.client.send(b" worl")
        self.successResultOf(done)
        self.assertTrue(self.reading)

    def test_paced_response(self) -> None:
        """A producer that registers while the client does not read is paused at once."""
        self.client.send(PUT)
        self.client.channel.pauseProducing()
        calls: list[str] = []

        class Producer:
            def pauseProducing(self) -> None:
                calls.append("pause")

            def resumeProducing(self) -> None:
                calls.append("resume")

        self.requests[0].registerProducer(Producer(), True)
        self.assertEqual(calls, ["pause"])
        self.client.channel.resumeProducing()
        self.assertEqual(calls, ["pause", "resume"])
        self.requests[0].unregisterProducer()

    def test_continue(self) -> None:
        """100 Continue is sent when the body is consumed."""
        self.client.send(PUT.replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n"))
        self.assertEqual(self.transport.value(), b"")
        self.requests[0].deliver_body(Sink())
        self.assertEqual(self.transport.value(), b"HTTP/1.1 100 Continue\r\n\r\n")

    def test_not_consumed(self) -> None:
        """A request that is answered without its body closes the connection; the body is discarded."""
        self.client.send(PUT.replace(b"10", b"%d" % (1 << 40)) + b"x" * 100)
        self.requests[0].fail(APIStatusError.unauthorized())
        (answer,) = self.client.answers()
        self.assertEqual((answer.code, answer.header("connection")), (401, "close"))
        self.assertTrue(self.reading)
        self.client.send(b"x" * 1000)
        self.assertFalse(self.transport.disconnecting)
        self.clock.pump([1.0] * (int(LINGER_TIMEOUT) + 2))
        self.assertTrue(self.transport.disconnecting)

    def test_discard_limit(self) -> None:
        """The connection is aborted if too much is discarded."""
        self.client.send(PUT.replace(b"10", b"%d" % (1 << 40)))
        self.requests[0].fail(APIStatusError.unauthorized())
        for _ in range(MAX_DISCARDED // (1 << 20) + 1):
            self.client.send(b"x" * (1 << 20))
        self.assertTrue(self.transport.disconnected)

    def test_answered_before_the_end(self) -> None:
        """Delivery fails when the request is answered before the end of the body."""
        request, sink, done = self.begin(PUT + b"hel")
        request.respond(200, b"ok", b"text/plain")
        self.failureResultOf(done, ConnectionDone)
        self.client.send(b"lo")
        self.assertEqual((sink.data, sink.producer), (b"hel", None))
        self.client.send(b" worl" + GET)
        (answer,) = self.client.answers()
        self.assertEqual(answer.header("connection"), "close")
        self.assertTrue(self.transport.disconnecting)

    def test_disconnected(self) -> None:
        """Delivery fails when the client disconnects."""
        _, sink, done = self.begin(PUT + b"hel")
        self.client.channel.connectionLost(Failure(ConnectionDone()))
        self.failureResultOf(done, ConnectionDone)
        self.assertIsNone(sink.producer)
        self.assertEqual(self.site.open_requests, set())

    def test_consumed_too_late(self) -> None:
        """Delivery fails if the client has disconnected before."""
        self.client.send(PUT + b"hel")
        self.client.channel.connectionLost(Failure(ConnectionDone()))
        sink = Sink()
        self.failureResultOf(self.requests[0].deliver_body(sink), ConnectionDone)
        self.assertEqual(sink.data, b"")

    def test_stopped(self) -> None:
        """Reading stops when the consumer stops the producer."""
        _, sink, done = self.begin(PUT + b"hel")
        sink.producer.stopProducing()
        self.failureResultOf(done, ConnectionDone)
        self.assertFalse(self.reading)

    def test_malformed(self) -> None:
        """A malformed body fails the delivery and closes the connection."""
        for response_started in (False, True):
            self.setUp()
            request, _, done = self.begin(CHUNKED + b"5\r\nhello\r\n")
            if response_started:
                request.write(b"so far")
            self.client.send(b"nonsense\r\n")
            if response_started:
                self.assertTrue(self.transport.disconnected)
            else:
                self.failureResultOf(done, ConnectionDone)
                self.assertIn(b"HTTP/1.1 400 ", self.transport.value())
                self.assertTrue(self.transport.disconnecting)

    def test_ambiguous_length(self) -> None:
        """SECURITY, smuggling: a streamed body with length and chunks is refused."""
        self.client.send(CHUNKED.replace(b"\r\n\r\n", b"\r\nContent-Length: 3\r\n\r\n"))
        self.assertIn(b"HTTP/1.1 400 ", self.transport.value())
        self.assertEqual(self.requests, [])

    def test_no_timeout(self) -> None:
        """A streamed body has no timeout."""
        _, sink, done = self.begin(PUT + b"hel")
        self.clock.pump([60.0] * 10)
        self.client.send(b"lo worl")
        self.successResultOf(done)
        self.assertEqual(sink.data, b"hello worl")

    def test_read(self) -> None:
        """A complete body can be read at once; an incomplete one cannot."""
        self.client.send(PUT + b"hello worl")
        self.assertEqual(self.requests[0].read_body(), b"hello worl")
        self.requests[0].respond(200, b"", b"")
        self.client.send(PUT + b"hel")
        self.assertEqual(self.assertRaises(APIStatusError, self.requests[1].read_body).code, 503)

    def test_collected(self) -> None:
        """A collected body can be delivered to a consumer."""
        sinks = []

        def handle(request: KubeRequest) -> None:
            sinks.append(Sink())
            self.successResultOf(request.deliver_body(sinks[0]))
            self.assertEqual(request.body_length, 10)

        Client(make_site(handle)).send(PUT + b"hello worl")
        self.assertEqual(sinks[0].data, b"hello worl")

    def test_stop(self) -> None:
        """When the site stops, the request is finished and its connection closed."""
        request, _, done = self.begin(PUT + b"hel")
        self.site.connections.close_idle()
        self.client.send(b"lo worl")
        self.successResultOf(done)
        request.respond(200, b"ok", b"text/plain")
        (answer,) = self.client.answers()
        self.assertEqual(answer.header("connection"), "close")
        self.assertTrue(self.transport.disconnecting)


UPGRADE = b"GET /u HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"


class RecordingProtocol(Protocol):
    """The protocol of a switched connection."""

    def __init__(self) -> None:
        self.data = b""
        self.lost = False

    def dataReceived(self, data: bytes) -> None:
        """Collect data."""
        self.data += data

    def connectionLost(self, reason: Failure = Failure(ConnectionDone())) -> None:  # noqa: B008
        """Record the loss."""
        self.lost = True


class SwitchTests(StreamedCase):
    """Switched connections."""

    def switch(self, ahead: bytes = b"") -> tuple[KubeRequest, RecordingProtocol]:
        """Return a switched request and its protocol."""
        self.client.send(UPGRADE + ahead)
        request, protocol = self.requests[-1], RecordingProtocol()
        self.assertTrue(request.switch_protocols([(b"Upgrade", b"websocket"), (b"X-Odd", b"a\r\nb: c")], protocol))
        return request, protocol

    def test_head(self) -> None:
        """The client receives one 101 head without injected lines."""
        self.switch()
        head = self.transport.value()
        self.assertTrue(head.startswith(b"HTTP/1.1 101 Switching Protocols\r\n"))
        self.assertTrue(head.endswith(b"\r\n\r\n"))
        lines = head.lower().split(b"\r\n")
        self.assertIn(b"upgrade: websocket", lines)
        self.assertIn(b"connection: upgrade", lines)
        self.assertNotIn(b"b: c", lines)

    def test_data(self) -> None:
        """Data after the switch belong to the other protocol, including data sent ahead."""
        request, protocol = self.switch(GET)
        self.assertEqual(protocol.data, GET)
        self.client.send(GET)
        self.assertEqual(protocol.data, GET * 2)
        self.transport.clear()
        assert protocol.transport is not None
        protocol.transport.write(b"words")
        protocol.transport.writeSequence([b"mo", b"re"])
        self.assertEqual(self.transport.value(), b"wordsmore")
        self.assertEqual(len(self.requests), 1)
        self.assertTrue(request.switched)

    def test_late_response(self) -> None:
        """A response after the switch is dropped."""
        request, protocol = self.switch()
        self.transport.clear()
        request.respond(200, b"late", b"text/plain")
        request.fail(APIStatusError.unauthorized())
        request.write(b"late")
        request.finish()
        self.assertEqual(self.transport.value(), b"")
        self.assertFalse(protocol.lost)

    def test_not_twice(self) -> None:
        """A request that is answered or disconnected is not switched."""
        self.client.send(UPGRADE)
        self.requests[0].respond(200, b"ok", b"text/plain")
        self.assertFalse(self.requests[0].switch_protocols([], RecordingProtocol()))
        self.client.send(UPGRADE)
        self.client.channel.connectionLost(Failure(ConnectionDone()))
        protocol = RecordingProtocol()
        self.assertFalse(self.requests[1].switch_protocols([], protocol))
        self.assertIsNone(protocol.transport)

    def test_failing_protocol(self) -> None:
        """An exception of the protocol when its connection is lost does not keep the request open."""
        request, protocol = self.switch()
        ended = request.notifyFinish()
        self.patch(protocol, "connectionLost", lambda reason: 1 / 0)
        with self.assertRaises(ZeroDivisionError):
            self.client.channel.connectionLost(Failure(ConnectionDone()))
        self.failureResultOf(ended, ConnectionDone)
        self.assertEqual(self.site.open_requests, set())

    def test_failing_callbacks(self) -> None:
        """Exceptions at the end of requests affect neither connections nor other requests."""
        self.patch(self.site, "ended", lambda request: 1 / 0)
        self.client.send(GET + GET)
        self.assertEqual([answer.code for answer in self.client.answers()], [200, 200])
        ended: list[int] = []

        def end(number: int) -> None:
            ended.append(number)
            raise ZeroDivisionError

        for number in range(2):
            self.client.send(UPGRADE)
            self.requests[-1].register_long_running(lambda number=number: end(number))  # type: ignore[misc]
            self.client = Client(self.site)
        self.site.end_long_running()
        self.assertEqual(ended, [0, 1])
        self.assertEqual(len(self.flushLoggedErrors(ZeroDivisionError)), 4)

    def test_disconnected(self) -> None:
        """The protocol and the request are notified when the client disconnects."""
        request, protocol = self.switch()
        ended = request.notifyFinish()
        self.client.channel.connectionLost(Failure(ConnectionDone()))
        self.failureResultOf(ended, ConnectionDone)
        self.assertTrue(protocol.lost)
        self.assertEqual(
            (self.site.open_requests, self.site.long_running_requests, self.site.connections.channels),
            (set(), {}, set()),
        )

    def test_ended_twice(self) -> None:
        """A lost connection is not aborted by its protocol."""
        _, protocol = self.switch()
        self.client.channel.connectionLost(Failure(ConnectionDone()))
        assert protocol.transport is not None
        protocol.transport.abortConnection()  # type: ignore[attr-defined]
        self.assertFalse(self.transport.disconnected)

    def test_no_deadline(self) -> None:
        """A switched connection has no deadline."""
        _, protocol = self.switch()
        self.clock.pump([60.0] * 60)
        self.assertFalse(self.transport.disconnecting or self.transport.disconnected)
        self.client.send(b"still there")
        self.assertEqual(protocol.data, b"still there")

    def test_close_timeout(self) -> None:
        """A client that does not read the last data is disconnected after a timeout."""
        _, protocol = self.switch()
        assert protocol.transport is not None
        protocol.transport.loseConnection()
        self.assertTrue(self.transport.disconnecting)
        self.assertFalse(self.transport.disconnected)
        self.clock.pump([1.0] * (int(GRACEFUL_CLOSE_TIMEOUT) + 2))
        self.assertTrue(self.transport.disconnected)

    def test_stop(self) -> None:
        """When the site stops, switched connections are ended by their functions, without being awaited."""
        self.switch()
        self.successResultOf(self.site.requests_finished())
        self.site.connections.close_idle()
        self.assertFalse(self.transport.disconnecting)
        self.site.end_long_running()
        self.assertTrue(self.transport.disconnecting)
        self.setUp()
        self.client.send(UPGRADE)
        ended: list[bool] = []
        self.requests[0].switch_protocols([], RecordingProtocol(), lambda: ended.append(True))
        self.site.end_long_running()
        self.assertEqual(ended, [True])

    def test_paced(self) -> None:
        """Flow control applies to the protocol and to its client."""
        _, protocol = self.switch()
        assert protocol.transport is not None
        calls: list[str] = []

        class Producer:
            def pauseProducing(self) -> None:
                calls.append("pause")

            def resumeProducing(self) -> None:
                calls.append("resume")

            def stopProducing(self) -> None:
                calls.append("stop")

        protocol.transport.registerProducer(Producer(), True)  # type: ignore[attr-defined]
        self.transport.producer.pauseProducing()
        self.transport.producer.resumeProducing()
        self.assertEqual(calls, ["pause", "resume"])
        protocol.transport.unregisterProducer()  # type: ignore[attr-defined]
        protocol.transport.pauseProducing()  # type: ignore[attr-defined]
        self.assertFalse(self.reading)
        protocol.transport.resumeProducing()  # type: ignore[attr-defined]
        self.assertTrue(self.reading)

    def test_exception(self) -> None:
        """An exception of the handler closes a switched connection."""
        request, _ = self.switch()
        request.handle_failure(Failure(ValueError("bug")))
        self.assertEqual(len(self.flushLoggedErrors(ValueError)), 1)
        self.assertTrue(self.transport.disconnected)
