"""Tests for L{kubetwist.http.streaming}, and for connections that become another protocol's."""

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
from kubetwist.http.http1.channel import GRACEFUL_CLOSE_TIMEOUT, LINGER
from kubetwist.http.http1.requestbody import MAX_DISCARDED
from kubetwist.http.request import KubeRequest

from .harness import Client, echo, make_site

GET = b"GET /next HTTP/1.1\r\nHost: x\r\n\r\n"
PUT = b"PUT /s HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n"
CHUNKED = b"PUT /s HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"


class Sink:
    """Takes what is delivered, and can have enough."""

    def __init__(self, most: int = 1 << 30) -> None:
        self.pieces: list[bytes] = []
        self.producer: Any = None
        self._most = most

    @property
    def data(self) -> bytes:
        """All of it."""
        return b"".join(self.pieces)

    def registerProducer(self, producer: Any, streaming: bool) -> None:
        """One at a time."""
        assert self.producer is None
        assert streaming
        self.producer = producer

    def unregisterProducer(self) -> None:
        """It is done."""
        self.producer = None

    def write(self, data: bytes) -> None:
        """Keep it, and say when it is enough."""
        self.pieces.append(data)
        if len(self.data) >= self._most:
            self.producer.pauseProducing()


class StreamedCase(SynchronousTestCase):
    """A site that streams what comes for C{/s}."""

    def setUp(self) -> None:
        """A connection to it."""
        self.clock = Clock()
        self.site = make_site(self.handle, self.clock)
        self.site.streams.append(lambda request: request.path == b"/s")
        self.requests: list[KubeRequest] = []
        self.client = Client(self.site)
        self.transport = self.client.transport

    def handle(self, request: KubeRequest) -> None:
        """Leave the streamed ones to the test."""
        if request.body_too_large:
            request.fail(APIStatusError.too_large("too large"))
        elif request.streamed is None and not request.fields.get(b"upgrade"):
            echo(request)
        else:
            self.requests.append(request)

    @property
    def reading(self) -> bool:
        """Whether the connection is read from."""
        return self.transport.producerState == "producing"

    def begin(self, data: bytes, sink: Sink | None = None) -> tuple[KubeRequest, Sink, Deferred[None]]:
        """Send the beginning of a request, and take its body."""
        self.client.send(data)
        request = self.requests[-1]
        sink = sink or Sink()
        done = request.deliver_body(sink)
        done.addErrback(lambda reason: reason)
        return request, sink, done


class BodyTests(StreamedCase):
    """Bodies that are passed on while they arrive."""

    def test_pieces(self) -> None:
        """A body is written as it comes; the next request follows on the same connection."""
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
        """A body in chunks has no length, and comes without its chunks."""
        request, sink, done = self.begin(CHUNKED + b"5\r\nhello\r\n3\r\nwo")
        self.assertIsNone(request.body_length)
        self.client.send(b"r\r\n0\r\nTrailer: x\r\n\r\n" + GET)
        self.successResultOf(done)
        self.assertEqual(sink.data, b"hellowor")
        request.respond(200, b"ok", b"text/plain")
        self.assertEqual(len(self.client.answers()), 2)

    @given(sizes=st.lists(st.integers(1, 30), min_size=1, max_size=20), chunked=st.booleans(), late=st.booleans())
    def test_any_pieces(self, sizes: list[int], chunked: bool, late: bool) -> None:
        """It makes no difference how the network cuts a body into pieces, or when somebody takes it."""
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
        """A body that is passed on may be larger than one that is kept, and nothing of it is kept."""
        size = MAX_BODY * 3
        _, sink, done = self.begin(PUT.replace(b"10", b"%d" % size))
        for _ in range(size // 65536):
            self.client.send(b"x" * 65536)
        self.successResultOf(done)
        self.assertEqual(sum(map(len, sink.pieces)), size)
        self.assertEqual(self.site.connections.bodies.used, 0)

    def test_others_keep_their_limit(self) -> None:
        """What nobody wants streamed is limited as ever."""
        self.client.send(PUT.replace(b"/s", b"/t").replace(b"10", b"%d" % (MAX_BODY + 1)))
        (answer,) = self.client.answers()
        self.assertEqual(answer.code, 413)

    def test_nobody_takes_it_yet(self) -> None:
        """Nothing more is read before somebody takes the body."""
        self.client.send(PUT + b"hel")
        self.assertFalse(self.reading)
        sink = Sink()
        done = self.requests[0].deliver_body(sink)
        self.assertTrue(self.reading)
        self.client.send(b"lo worl")
        self.successResultOf(done)
        self.assertEqual(sink.data, b"hello worl")

    def test_paced(self) -> None:
        """A consumer that has enough stops the reading, and starts it."""
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

    def test_paced_answers(self) -> None:
        """Whoever begins to answer while the client does not read is told to wait at once."""
        self.client.send(PUT)
        self.client.channel.pauseProducing()
        told: list[str] = []

        class Producer:
            def pauseProducing(self) -> None:
                told.append("pause")

            def resumeProducing(self) -> None:
                told.append("resume")

        self.requests[0].registerProducer(Producer(), True)
        self.assertEqual(told, ["pause"])
        self.client.channel.resumeProducing()
        self.assertEqual(told, ["pause", "resume"])
        self.requests[0].unregisterProducer()

    def test_continue(self) -> None:
        """A client that waits to be told is told when its body is wanted, not before."""
        self.client.send(PUT.replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n"))
        self.assertEqual(self.transport.value(), b"")
        self.requests[0].deliver_body(Sink())
        self.assertEqual(self.transport.value(), b"HTTP/1.1 100 Continue\r\n\r\n")

    def test_not_wanted(self) -> None:
        """A request that is answered without its body says so; what comes is thrown away, for a while."""
        self.client.send(PUT.replace(b"10", b"%d" % (1 << 40)) + b"x" * 100)
        self.requests[0].fail(APIStatusError.unauthorized())
        (answer,) = self.client.answers()
        self.assertEqual((answer.code, answer.header("connection")), (401, "close"))
        self.assertTrue(self.reading)
        self.client.send(b"x" * 1000)
        self.assertFalse(self.transport.disconnecting)
        self.clock.pump([1.0] * (int(LINGER) + 2))
        self.assertTrue(self.transport.disconnecting)

    def test_much_that_is_not_wanted(self) -> None:
        """Not even for a while is more thrown away than what is reasonable."""
        self.client.send(PUT.replace(b"10", b"%d" % (1 << 40)))
        self.requests[0].fail(APIStatusError.unauthorized())
        for _ in range(MAX_DISCARDED // (1 << 20) + 1):
            self.client.send(b"x" * (1 << 20))
        self.assertTrue(self.transport.disconnected)

    def test_answered_before_the_end(self) -> None:
        """Whoever takes a body is told when its request is answered, and gets no more of it."""
        request, sink, done = self.begin(PUT + b"hel")
        request.respond(200, b"ok", b"text/plain")
        self.failureResultOf(done, ConnectionDone)
        self.client.send(b"lo")
        self.assertEqual((sink.data, sink.producer), (b"hel", None))
        self.client.send(b" worl" + GET)
        (answer,) = self.client.answers()
        self.assertEqual(answer.header("connection"), "close")
        self.assertTrue(self.transport.disconnecting)

    def test_client_gone(self) -> None:
        """Whoever takes a body is told when its client goes."""
        _, sink, done = self.begin(PUT + b"hel")
        self.client.channel.connectionLost(Failure(ConnectionDone()))
        self.failureResultOf(done, ConnectionDone)
        self.assertIsNone(sink.producer)
        self.assertEqual(self.site.open_requests, set())

    def test_taken_too_late(self) -> None:
        """A body can not be had any more when its client has gone."""
        self.client.send(PUT + b"hel")
        self.client.channel.connectionLost(Failure(ConnectionDone()))
        sink = Sink()
        self.failureResultOf(self.requests[0].deliver_body(sink), ConnectionDone)
        self.assertEqual(sink.data, b"")

    def test_given_up(self) -> None:
        """Whoever wants no more of a body stops the reading of it."""
        _, sink, done = self.begin(PUT + b"hel")
        sink.producer.stopProducing()
        self.failureResultOf(done, ConnectionDone)
        self.assertFalse(self.reading)

    def test_malformed(self) -> None:
        """A body that turns out to be malformed ends the connection; it does not end as if it were whole."""
        for begun in (False, True):
            self.setUp()
            request, _, done = self.begin(CHUNKED + b"5\r\nhello\r\n")
            if begun:
                request.write(b"so far")
            self.client.send(b"nonsense\r\n")
            if begun:
                self.assertTrue(self.transport.disconnected)
            else:
                self.failureResultOf(done, ConnectionDone)
                self.assertIn(b"HTTP/1.1 400 ", self.transport.value())
                self.assertTrue(self.transport.disconnecting)

    def test_both_at_once(self) -> None:
        """SECURITY, smuggling: a length and chunks at once are refused, whether or not the body is streamed."""
        self.client.send(CHUNKED.replace(b"\r\n\r\n", b"\r\nContent-Length: 3\r\n\r\n"))
        self.assertIn(b"HTTP/1.1 400 ", self.transport.value())
        self.assertEqual(self.requests, [])

    def test_no_patience_needed(self) -> None:
        """While a request is answered it is not the connection's business how long its body takes."""
        _, sink, done = self.begin(PUT + b"hel")
        self.clock.pump([60.0] * 10)
        self.client.send(b"lo worl")
        self.successResultOf(done)
        self.assertEqual(sink.data, b"hello worl")

    def test_read(self) -> None:
        """A small body that came with its head can be read like any other; one that has not come can not."""
        self.client.send(PUT + b"hello worl")
        self.assertEqual(self.requests[0].read_body(), b"hello worl")
        self.requests[0].respond(200, b"", b"")
        self.client.send(PUT + b"hel")
        self.assertEqual(self.assertRaises(APIStatusError, self.requests[1].read_body).code, 503)

    def test_collected(self) -> None:
        """A body that was collected can be had in the same way."""
        sinks = []

        def handle(request: KubeRequest) -> None:
            sinks.append(Sink())
            self.successResultOf(request.deliver_body(sinks[0]))
            self.assertEqual(request.body_length, 10)

        Client(make_site(handle)).send(PUT + b"hello worl")
        self.assertEqual(sinks[0].data, b"hello worl")

    def test_stop(self) -> None:
        """A site that stops lets the request be finished, and ends its connection then."""
        request, _, done = self.begin(PUT + b"hel")
        self.site.connections.close_idle()
        self.client.send(b"lo worl")
        self.successResultOf(done)
        request.respond(200, b"ok", b"text/plain")
        (answer,) = self.client.answers()
        self.assertEqual(answer.header("connection"), "close")
        self.assertTrue(self.transport.disconnecting)


UPGRADE = b"GET /u HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"


class Other(Protocol):
    """What a connection is switched to."""

    def __init__(self) -> None:
        self.data = b""
        self.lost = False

    def dataReceived(self, data: bytes) -> None:
        """Keep it."""
        self.data += data

    def connectionLost(self, reason: Failure = Failure(ConnectionDone())) -> None:  # noqa: B008
        """It is over."""
        self.lost = True


class SwitchTests(StreamedCase):
    """Connections that become another protocol's."""

    def switch(self, ahead: bytes = b"") -> tuple[KubeRequest, Other]:
        """A connection that has become one."""
        self.client.send(UPGRADE + ahead)
        request, other = self.requests[-1], Other()
        self.assertTrue(request.switch_protocols([(b"Upgrade", b"websocket"), (b"X-Odd", b"a\r\nb: c")], other))
        return request, other

    def test_head(self) -> None:
        """The client is told, in one head, with no line in it that nobody has put there."""
        self.switch()
        head = self.transport.value()
        self.assertTrue(head.startswith(b"HTTP/1.1 101 Switching Protocols\r\n"))
        self.assertTrue(head.endswith(b"\r\n\r\n"))
        lines = head.lower().split(b"\r\n")
        self.assertIn(b"upgrade: websocket", lines)
        self.assertIn(b"connection: upgrade", lines)
        self.assertNotIn(b"b: c", lines)

    def test_data(self) -> None:
        """From then on everything belongs to the other protocol, also what was sent ahead and looks like a request."""
        request, other = self.switch(GET)
        self.assertEqual(other.data, GET)
        self.client.send(GET)
        self.assertEqual(other.data, GET * 2)
        self.transport.clear()
        assert other.transport is not None
        other.transport.write(b"words")
        other.transport.writeSequence([b"mo", b"re"])
        self.assertEqual(self.transport.value(), b"wordsmore")
        self.assertEqual(len(self.requests), 1)
        self.assertTrue(request.switched)

    def test_answers_come_too_late(self) -> None:
        """Nothing that is answered after that reaches the client."""
        request, other = self.switch()
        self.transport.clear()
        request.respond(200, b"late", b"text/plain")
        request.fail(APIStatusError.unauthorized())
        request.write(b"late")
        request.finish()
        self.assertEqual(self.transport.value(), b"")
        self.assertFalse(other.lost)

    def test_not_twice(self) -> None:
        """What was answered, or whose client has gone, is not switched."""
        self.client.send(UPGRADE)
        self.requests[0].respond(200, b"ok", b"text/plain")
        self.assertFalse(self.requests[0].switch_protocols([], Other()))
        self.client.send(UPGRADE)
        self.client.channel.connectionLost(Failure(ConnectionDone()))
        other = Other()
        self.assertFalse(self.requests[1].switch_protocols([], other))
        self.assertIsNone(other.transport)

    def test_failing_protocol(self) -> None:
        """A protocol that fails when it is told that the client has gone keeps the request from nothing."""
        request, other = self.switch()
        gone = request.notifyFinish()
        self.patch(other, "connectionLost", lambda reason: 1 / 0)
        with self.assertRaises(ZeroDivisionError):
            self.client.channel.connectionLost(Failure(ConnectionDone()))
        self.failureResultOf(gone, ConnectionDone)
        self.assertEqual(self.site.open_requests, set())

    def test_failing_observers(self) -> None:
        """Whoever fails when a request is over, or is to end, keeps no connection and no other request waiting."""
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

    def test_client_gone(self) -> None:
        """When the client goes the other protocol and the request are told."""
        request, other = self.switch()
        gone = request.notifyFinish()
        self.client.channel.connectionLost(Failure(ConnectionDone()))
        self.failureResultOf(gone, ConnectionDone)
        self.assertTrue(other.lost)
        self.assertEqual(
            (self.site.open_requests, self.site.long_running_requests, self.site.connections.channels),
            (set(), {}, set()),
        )

    def test_ended_twice(self) -> None:
        """A connection that is gone is not ended again, whatever the other protocol still does."""
        _, other = self.switch()
        self.client.channel.connectionLost(Failure(ConnectionDone()))
        assert other.transport is not None
        other.transport.abortConnection()  # type: ignore[attr-defined]
        self.assertFalse(self.transport.disconnected)

    def test_no_deadline(self) -> None:
        """No patience of HTTP ends another protocol."""
        _, other = self.switch()
        self.clock.pump([60.0] * 60)
        self.assertFalse(self.transport.disconnecting or self.transport.disconnected)
        self.client.send(b"still there")
        self.assertEqual(other.data, b"still there")

    def test_parting(self) -> None:
        """A client that does not take the last words is cut off after a while."""
        _, other = self.switch()
        assert other.transport is not None
        other.transport.loseConnection()
        self.assertTrue(self.transport.disconnecting)
        self.assertFalse(self.transport.disconnected)
        self.clock.pump([1.0] * (int(GRACEFUL_CLOSE_TIMEOUT) + 2))
        self.assertTrue(self.transport.disconnected)

    def test_stop(self) -> None:
        """A site that stops ends other protocols, as they wish, and does not wait for them."""
        self.switch()
        self.successResultOf(self.site.requests_finished())
        self.site.connections.close_idle()
        self.assertFalse(self.transport.disconnecting)
        self.site.end_long_running()
        self.assertTrue(self.transport.disconnecting)
        self.setUp()
        self.client.send(UPGRADE)
        ended: list[bool] = []
        self.requests[0].switch_protocols([], Other(), lambda: ended.append(True))
        self.site.end_long_running()
        self.assertEqual(ended, [True])

    def test_paced(self) -> None:
        """The other protocol is the one that is told to wait, and can have its client wait."""
        _, other = self.switch()
        assert other.transport is not None
        told: list[str] = []

        class Producer:
            def pauseProducing(self) -> None:
                told.append("pause")

            def resumeProducing(self) -> None:
                told.append("resume")

            def stopProducing(self) -> None:
                told.append("stop")

        other.transport.registerProducer(Producer(), True)  # type: ignore[attr-defined]
        self.transport.producer.pauseProducing()
        self.transport.producer.resumeProducing()
        self.assertEqual(told, ["pause", "resume"])
        other.transport.unregisterProducer()  # type: ignore[attr-defined]
        other.transport.pauseProducing()  # type: ignore[attr-defined]
        self.assertFalse(self.reading)
        other.transport.resumeProducing()  # type: ignore[attr-defined]
        self.assertTrue(self.reading)

    def test_crash(self) -> None:
        """A bug in what answers ends the connection."""
        request, _ = self.switch()
        request.handle_failure(Failure(ValueError("bug")))
        self.assertEqual(len(self.flushLoggedErrors(ValueError)), 1)
        self.assertTrue(self.transport.disconnected)
