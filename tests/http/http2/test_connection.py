"""Tests of L{kubetwist.http.http2.connection}, with the library h2 as client."""

from __future__ import annotations

from twisted.internet.interfaces import IPushProducer
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer

from kubetwist.http.connection.bodyshares import MAX_UNSERVED, SMALL_BODY, UNSERVED_STEP
from kubetwist.http.http2.connection import (
    FRAME_TIMEOUT,
    IDLE_TIMEOUT,
    LINGER_TIMEOUT,
    MAX_BACKLOG,
    STALL_TIMEOUT,
    TURN_SECONDS,
)
from kubetwist.http.http2.frames import (
    CANCEL,
    DATA,
    ENHANCE_YOUR_CALM,
    HEADERS,
    NO_ERROR,
    REFUSED_STREAM,
    frame_header,
    goaway,
    ping_ack,
)
from kubetwist.http.http2.openstreams import REFUSED_BODY_TIMEOUT
from kubetwist.http.request import KubeRequest
from kubetwist.http.responses import Body, respond_body
from kubetwist.http.site import KubeSite

from ..harness import Client, make_site
from .peer import Peer


class ConnectionCase(SynchronousTestCase):
    """Base of tests with a server in memory."""

    def setUp(self) -> None:
        """Create a server that keeps some requests open."""
        self.clock = Clock()
        self.open: list[KubeRequest] = []
        self.site = make_site(self.handle, self.clock)

    def handle(self, request: KubeRequest) -> None:
        """Answer with the body, except C{/open}, which the test answers; C{/list} has a long response."""
        if request.path == b"/open":
            self.open.append(request)
        elif request.path.startswith(b"/list"):
            respond_body(request, 200, Body([b"x" * 1000] * int(request.path[5:])), b"text/plain")
        else:
            request.respond(200, request.read_body() or b"hello", b"text/plain")

    def pass_time(self, seconds: float) -> None:
        """Advance the clock, with the checks of each second."""
        for _ in range(int(seconds)):
            self.clock.advance(1)


class RequestTests(ConnectionCase):
    """Requests and responses."""

    def test_get(self) -> None:
        """A response has the header fields of HTTP/1.1 without connection fields."""
        peer = Peer(self.site)
        first, second = peer.request(), peer.request("GET", "/b")
        self.assertEqual((first.code, first.body, first.ended), (200, b"hello", True))
        self.assertEqual(second.headers["content-type"], "text/plain")
        self.assertEqual(second.headers["content-length"], "5")
        self.assertIn("date", second.headers)
        self.assertEqual(peer.server.streams, {})

    def test_body(self) -> None:
        """A body is collected, with and without a length."""
        peer = Peer(self.site)
        self.assertEqual(peer.request("POST", body=b"abc").body, b"abc")
        self.assertEqual(peer.request("POST", body=b"abcd", content_length="4").body, b"abcd")

    def test_large_body(self) -> None:
        """A large body is accepted by and by."""
        peer = Peer(self.site)
        body = bytes(range(256)) * 4000
        self.assertEqual(peer.request("POST", body=body).headers["content-length"], str(len(body)))

    def test_concurrent(self) -> None:
        """A later request is answered while an earlier one is open."""
        peer = Peer(self.site)
        waiting = peer.begin(path="/open")
        self.assertEqual(peer.request().body, b"hello")
        self.open[0].respond(200, b"late", b"text/plain")
        peer.exchange()
        self.assertEqual(peer.responses[waiting].body, b"late")

    def test_head(self) -> None:
        """The response to HEAD has a length and no body."""
        answer = Peer(self.site).request("HEAD")
        self.assertEqual((answer.headers["content-length"], answer.body, answer.ended), ("5", b"", True))

    def test_version(self) -> None:
        """A request has the version that Go's server gives it, and Host is the authority."""
        peer = Peer(self.site)
        peer.begin(path="/open")
        self.assertEqual(self.open[0].clientproto, b"HTTP/2.0")
        self.assertEqual(self.open[0].header(b"host"), b"x")

    def test_early_response(self) -> None:
        """A response before the end of the body asks the client to stop sending, but not at once."""
        self.site.handler = lambda request: request.respond(403, b"no", b"text/plain")
        self.site.heads_first = True
        peer = Peer(self.site)
        stream_id = peer.begin("POST", end=False, content_length="1000000")
        answer = peer.responses[stream_id]
        self.assertEqual((answer.code, answer.body, answer.reset), (403, b"no", None))
        peer.raw(frame_header(3, DATA, 0, stream_id) + b"abc")
        self.clock.advance(REFUSED_BODY_TIMEOUT)
        peer.exchange()
        self.assertEqual((answer.reset, peer.server.streams), (NO_ERROR, {}))

    def test_expectation(self) -> None:
        """A client that expects 100 Continue gets it when the body is requested; other expectations are 417."""
        peer = Peer(self.site)
        stream_id = peer.begin("POST", end=False, expect="100-continue")
        self.assertEqual(peer.informed, [stream_id])
        peer.send(stream_id, b"abc", True)
        self.assertEqual(peer.responses[stream_id].body, b"abc")
        self.assertEqual(peer.request(expect="cookies").code, 417)

    def test_unused_body(self) -> None:
        """A body that ends after its response ends the stream without a reset."""
        self.site.handler = lambda request: request.respond(403, b"no", b"text/plain")
        self.site.heads_first = True
        peer = Peer(self.site)
        stream_id = peer.begin("POST", end=False, content_length="70000")
        peer.raw((frame_header(10_000, DATA, 0, stream_id) + bytes(10_000)) * 6)
        peer.raw(frame_header(10_000, DATA, 1, stream_id) + bytes(10_000))
        self.clock.advance(REFUSED_BODY_TIMEOUT)
        peer.exchange()
        self.assertEqual((peer.responses[stream_id].reset, peer.server.streams), (None, {}))

    def test_truncated(self) -> None:
        """A truncated response resets the stream after its data, and the connection goes on."""
        peer = Peer(self.site)
        stream_id = peer.begin(path="/open")
        self.open[0].write(b"begin")
        self.open[0].truncate_response()
        peer.exchange()
        self.assertEqual((peer.responses[stream_id].body, peer.responses[stream_id].reset), (b"begin", 2))
        self.assertTrue(self.open[0].disconnected)
        self.assertEqual(peer.request().code, 200)

    def test_abort(self) -> None:
        """An aborted request resets its stream only."""
        peer = Peer(self.site)
        stream_id = peer.begin(path="/open")
        self.open[0].abort()
        peer.exchange()
        self.assertEqual(peer.responses[stream_id].reset, CANCEL)
        self.assertEqual(peer.request().code, 200)

    def test_cancelled(self) -> None:
        """A client that resets a stream disconnects its request."""
        peer = Peer(self.site)
        stream_id = peer.begin(path="/open")
        peer.client.reset_stream(stream_id)
        peer.exchange()
        self.assertTrue(self.open[0].disconnected)
        self.assertEqual(self.site.open_requests, set())

    def test_lost(self) -> None:
        """A lost connection disconnects its requests."""
        peer = Peer(self.site)
        peer.begin(path="/open")
        peer.begin(path="/open")
        peer.server.connectionLost()
        self.assertTrue(all(request.disconnected for request in self.open))
        self.assertEqual(self.site.connections.channels, set())

    def test_known_length(self) -> None:
        """The last bytes of a response of known length end its stream, before the request is finished."""
        peer = Peer(self.site)
        stream_id = peer.begin(path="/open")
        request = self.open[0]
        request.setHeader(b"content-length", b"10")
        request.write(b"begin")
        peer.exchange()
        self.assertFalse(peer.responses[stream_id].ended)
        request.write(b" last")
        peer.exchange()
        response = peer.responses[stream_id]
        self.assertEqual((response.ended, response.body), (True, b"begin last"))
        request.write(b"more")
        request.finish()
        peer.exchange()
        self.assertEqual((response.body, response.reset, self.site.open_requests), (b"begin last", None, set()))
        self.assertEqual(peer.request().code, 200)

    def test_lost_after_the_end(self) -> None:
        """A lost connection disconnects a request that has written its whole response, too."""
        peer = Peer(self.site)
        peer.begin(path="/open")
        self.open[0].setHeader(b"content-length", b"4")
        self.open[0].write(b"done")
        peer.exchange()
        self.assertFalse(self.open[0].disconnected)
        peer.server.connectionLost()
        self.assertTrue(self.open[0].disconnected)
        self.assertEqual(self.site.open_requests, set())

    def test_paused_at_the_end(self) -> None:
        """A producer that has written the whole body is resumed when the body is sent, so that it can finish."""
        peer = Peer(self.site, window=4)
        stream_id = peer.begin(path="/open")
        request = self.open[0]
        calls: list[str] = []

        @implementer(IPushProducer)
        class Producer:
            def pauseProducing(self) -> None:
                calls.append("pause")

            def resumeProducing(self) -> None:
                calls.append("resume")

            def stopProducing(self) -> None:
                calls.append("stop")

        request.setHeader(b"content-length", b"10")
        request.registerProducer(Producer(), True)
        request.write(b"0123456789")
        peer.exchange()
        self.assertEqual(calls, ["pause"])
        peer.client.increment_flow_control_window(10, stream_id)
        peer.exchange()
        self.assertEqual(calls, ["pause", "resume"])
        request.unregisterProducer()
        request.finish()
        self.assertEqual(self.site.open_requests, set())


class OrderTests(ConnectionCase):
    """Which requests are served when."""

    def test_turns(self) -> None:
        """Slow requests that arrive together alternate with the requests of other connections."""
        served = []

        def slow(request: KubeRequest) -> None:
            served.append(request.path)
            self.clock.rightNow += TURN_SECONDS * 2
            request.respond(200, b"", b"text/plain")

        first, second = Peer(self.site), Peer(self.site)
        self.site.handler = slow
        for peer, name in ((first, "a"), (second, "b")):
            for number in range(3):
                fields = [(":method", "GET"), (":scheme", "https"), (":path", f"/{name}{number}"), (":authority", "x")]
                peer.client.send_headers(2 * number + 1, fields, end_stream=True)
            peer.server.dataReceived(peer.client.data_to_send())
        for _ in range(5):
            self.clock.advance(0)
        self.assertEqual(served, [b"/a0", b"/b0", b"/a1", b"/b1", b"/a2", b"/b2"])

    def test_unread_responses(self) -> None:
        """A client that does not read its responses gets no further ones."""
        peer = Peer(self.site, window=0)
        streams = [peer.begin(path="/list200") for _ in range(20)]
        self.assertLess(peer.server.output.size, MAX_BACKLOG + 300_000)
        self.assertEqual(sum(peer.responses[one].code == 200 for one in streams if one in peer.responses), 6)
        for _ in range(30):
            for one in streams:
                if not peer.responses.get(one) or not peer.responses[one].ended:
                    peer.accept(one, 200_000)
        self.assertEqual({len(peer.responses[one].body) for one in streams}, {200_000})

    def test_blocked_transport(self) -> None:
        """No request is served while the transport accepts no data."""
        peer = Peer(self.site)
        peer.server.pauseProducing()
        stream_id = peer.begin()
        self.assertNotIn(stream_id, peer.responses)
        peer.server.resumeProducing()
        peer.exchange()
        self.assertEqual(peer.responses[stream_id].body, b"hello")


class LimitTests(ConnectionCase):
    """Limits of a connection."""

    def test_streams(self) -> None:
        """A client that ignores the number of streams gets REFUSED_STREAM."""
        self.site.max_streams = 2
        peer = Peer(self.site)
        self.assertEqual(peer.client.remote_settings.max_concurrent_streams, 2)
        peer.client.remote_settings.max_concurrent_streams = 10
        peer.client.remote_settings.acknowledge()
        streams = [peer.begin(path="/open") for _ in range(3)]
        self.assertEqual([peer.responses.get(one) and peer.responses[one].reset for one in streams], [None, None, 7])

    def test_unserved_bodies(self) -> None:
        """Incomplete bodies beyond a share are counted, and refused when there is no room."""
        self.site.connections.bodies.limit = 8 * UNSERVED_STEP
        peer = Peer(self.site)
        streams = [peer.begin("POST", end=False) for _ in range(10)]
        refused = []
        for one in streams:
            peer.send(one, b"x" * (SMALL_BODY - 1))
            if one in peer.responses and peer.responses[one].reset is not None:
                refused.append(peer.responses[one].reset)
        self.assertEqual(self.site.connections.bodies.used, UNSERVED_STEP)
        held = (MAX_UNSERVED + UNSERVED_STEP) // (SMALL_BODY - 1)
        self.assertEqual(refused, [REFUSED_STREAM] * (len(streams) - held))
        peer.server.connectionLost()
        self.assertEqual(self.site.connections.bodies.used, 0)


class DeadlineTests(ConnectionCase):
    """Time limits."""

    def test_idle(self) -> None:
        """A connection without requests is closed after a while."""
        peer = Peer(self.site)
        peer.request()
        self.pass_time(IDLE_TIMEOUT - 2)
        self.assertFalse(peer.transport.disconnecting)
        self.pass_time(3)
        peer.exchange()
        self.assertEqual(peer.goaway, [NO_ERROR])
        self.assertTrue(peer.transport.disconnecting)
        self.pass_time(LINGER_TIMEOUT + 1)
        self.assertTrue(peer.transport.aborted)

    def test_long_request(self) -> None:
        """A connection with an open request is not idle."""
        peer = Peer(self.site)
        peer.begin(path="/open")
        self.pass_time(3 * IDLE_TIMEOUT)
        self.assertFalse(peer.transport.disconnecting)

    def test_slow_frame(self) -> None:
        """A frame must arrive in time, even if its client sends further bytes of it."""
        peer = Peer(self.site)
        peer.raw(frame_header(1000, HEADERS, 0, 1))
        for _ in range(int(FRAME_TIMEOUT) + 1):
            self.pass_time(1)
            peer.raw(b"x")
        self.assertEqual(peer.goaway, [NO_ERROR])

    def test_slow_body(self) -> None:
        """A body that does not arrive is answered 408; the connection goes on."""
        peer = Peer(self.site)
        stream_id = peer.begin("POST", end=False)
        peer.send(stream_id, b"x")
        self.pass_time(25)
        peer.exchange()
        self.assertEqual(peer.responses[stream_id].code, 408)
        self.assertEqual(peer.request().code, 200)

    def test_stalled(self) -> None:
        """A stream whose client accepts nothing for a minute is reset, and the connection goes on."""
        peer = Peer(self.site, window=0)
        stream_id = peer.begin(path="/list100")
        self.pass_time(STALL_TIMEOUT / 2)
        peer.accept(stream_id, 10)
        self.pass_time(STALL_TIMEOUT - 1)
        self.assertIsNone(peer.responses[stream_id].reset)
        self.pass_time(2)
        peer.exchange()
        self.assertEqual(peer.responses[stream_id].reset, CANCEL)
        self.assertEqual(peer.server.output.size, 0)


class EndTests(ConnectionCase):
    """The end of a connection."""

    def test_graceful(self) -> None:
        """GOAWAY lets open requests finish, refuses new ones, and closes the connection then."""
        peer = Peer(self.site)
        stream_id = peer.begin(path="/open")
        self.site.connections.close_idle()
        self.assertFalse(peer.transport.disconnecting)
        peer.raw(frame_header(6, HEADERS, 5, 3) + b"\x82\x84\x87\x41\x01x")
        self.open[0].respond(200, b"done", b"text/plain")
        peer.exchange()
        self.assertEqual((peer.goaway, peer.responses[stream_id].body), ([NO_ERROR], b"done"))
        self.assertTrue(peer.transport.disconnecting)

    def test_idle_stop(self) -> None:
        """A stop closes a connection without requests after GOAWAY."""
        peer = Peer(self.site)
        self.site.connections.close_idle()
        peer.exchange()
        self.assertEqual(peer.goaway, [NO_ERROR])
        self.assertTrue(peer.transport.disconnecting)

    def test_last_request(self) -> None:
        """A handler that disables keep-alive sends GOAWAY with its response."""
        peer = Peer(self.site)
        stream_id = peer.begin(path="/open")
        self.open[0].connection.disable_keep_alive()
        peer.exchange()
        self.assertEqual(peer.goaway, [])
        self.open[0].respond(200, b"last", b"text/plain")
        peer.exchange()
        self.assertEqual((peer.goaway, peer.responses[stream_id].body), ([NO_ERROR], b"last"))

    def test_client_goes_away(self) -> None:
        """A client that sends GOAWAY gets its responses before the connection is closed."""
        peer = Peer(self.site)
        peer.begin(path="/open")
        peer.raw(goaway(0, NO_ERROR))
        self.assertFalse(peer.transport.disconnecting)
        self.open[0].respond(200, b"", b"text/plain")
        self.assertTrue(peer.transport.disconnecting)

    def test_flood(self) -> None:
        """A flood of control frames ends the connection, and its requests."""
        peer = Peer(self.site)
        peer.begin(path="/open")
        for _ in range(30):
            peer.raw(ping_ack(bytes(8)) * 100)
        self.assertEqual(peer.goaway, [ENHANCE_YOUR_CALM])
        self.assertTrue(self.open[0].disconnected)


class NegotiationTests(SynchronousTestCase):
    """The choice of the protocol."""

    def test_alpn(self) -> None:
        """A connection continues with HTTP/2 if the TLS handshake has chosen it."""
        for protocol, classes in ((b"h2", "Http2Connection"), (b"http/1.1", "KubeChannel"), (None, "KubeChannel")):
            client = Client(make_site())
            client.transport.negotiatedProtocol = protocol
            client.transport.wrappedProtocol = client.channel
            client.channel.handshakeCompleted()
            self.assertEqual(type(client.transport.wrappedProtocol).__name__, classes)
            self.assertEqual(list(client.site.connections.channels), [client.transport.wrappedProtocol])

    def test_offered(self) -> None:
        """HTTP/2 is offered first, unless it is disabled."""
        self.assertEqual(make_site().acceptableProtocols(), [b"h2", b"http/1.1"])
        self.assertEqual(KubeSite(lambda request: None, Clock(), max_streams=0).acceptableProtocols(), [b"http/1.1"])
