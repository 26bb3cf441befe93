"""Tests of L{kubetwist.http.http1.channel}: order of requests on a connection, and its deadlines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.http.request import KubeRequest

from ..harness import GET, Client, echo, make_site


class ParsingTests(SynchronousTestCase):
    """Parsing of requests."""

    def setUp(self) -> None:
        """Create a connection to a site that echoes requests."""
        self.client = Client(make_site())

    def test_get(self) -> None:
        """A request without a body is answered when its head has arrived."""
        self.client.send(GET)
        (answer,) = self.client.answers()
        self.assertEqual((answer.code, answer.body), (200, b"GET /a "))
        self.assertFalse(self.client.transport.disconnecting)

    def test_pipelined(self) -> None:
        """Pipelined requests are answered in order."""
        self.client.send(GET + GET.replace(b"/a", b"/b") + GET.replace(b"/a", b"/c"))
        self.assertEqual([answer.body for answer in self.client.answers()], [b"GET /a ", b"GET /b ", b"GET /c "])

    def test_upgrade_to_http2(self) -> None:
        """C{Upgrade: h2c} has no effect: what follows is HTTP/1.1, in which the preface of HTTP/2 is refused."""
        upgrade = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n"
        self.client.send(GET.replace(b"\r\n\r\n", b"\r\n" + upgrade))
        self.client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9))
        self.assertEqual([answer.code for answer in self.client.answers()], [200, 505])
        self.assertTrue(self.client.transport.disconnecting)

    def test_pipelined_behind_a_slow_one(self) -> None:
        """A pipelined request waits for the response to the previous one."""
        waiting: list[KubeRequest] = []
        client = Client(make_site(waiting.append))
        client.send(GET + GET)
        self.assertEqual(len(waiting), 1)
        echo(waiting[0])
        self.assertEqual(len(waiting), 2)
        echo(waiting[1])
        self.assertEqual(len(client.answers()), 2)

    def test_thousands_pipelined(self) -> None:
        """Thousands of pipelined requests do not exhaust the stack."""
        self.client.send(GET * 3000)
        self.assertEqual(len(self.client.answers()), 3000)

    def test_unread_responses(self) -> None:
        """A client that does not read responses gets no further ones."""
        self.client.channel.pauseProducing()
        self.client.send(GET * 5)
        self.assertEqual(self.client.answers(), [])
        self.client.channel.resumeProducing()
        self.client.send(b"")
        self.assertEqual(len(self.client.answers()), 5)

    def test_pipelined_requests_alternate(self) -> None:
        """Pipelined requests alternate with other connections."""
        served: list[bytes] = []
        site = make_site(lambda request: (served.append(request.path), echo(request))[1])
        greedy, other = Client(site), Client(site)
        greedy.channel.dataReceived(GET * 4)
        self.assertEqual(served, [b"/a"])
        other.channel.dataReceived(GET.replace(b"/a", b"/other") * 2)
        self.assertEqual(served, [b"/a", b"/other"])
        site.reactor.advance(0)
        self.assertEqual(served, [b"/a", b"/other", b"/a", b"/other", b"/a", b"/a"])

    def test_pipelined_and_disconnected(self) -> None:
        """Pipelined requests of a disconnected client are not served."""
        served: list[KubeRequest] = []
        client = Client(make_site(lambda request: (served.append(request), echo(request))[1]))
        client.channel.dataReceived(GET * 4)
        client.channel.connectionLost(None)
        client.site.reactor.advance(0)
        self.assertEqual(len(served), 1)

    @given(pieces=st.lists(st.integers(1, 40), min_size=1, max_size=12))
    def test_any_pieces(self, pieces: list[int]) -> None:
        """Requests are parsed independently of the segmentation."""
        client = Client(make_site())
        data = (
            GET
            + b"POST /b HTTP/1.1\r\nHost: x\r\nContent-Length: 11\r\n\r\nhello world"
            + b"PUT /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n5;x=y\r\ndefgh\r\n0\r\n\r\n"
            + GET
        )
        number = 0
        while data:
            size = pieces[number % len(pieces)]
            client.send(data[:size])
            data = data[size:]
            number += 1
        self.assertEqual(
            [answer.body for answer in client.answers()],
            [b"GET /a ", b"POST /b hello world", b"PUT /c abcdefgh", b"GET /a "],
        )

    @given(data=st.binary(max_size=200))
    def test_arbitrary_data(self, data: bytes) -> None:
        """Arbitrary data are served or refused without an exception."""
        client = Client(make_site())
        client.send(data + b"\r\n\r\n")
        client.send(b"\r\n\r\n")

    def test_connection_close(self) -> None:
        """C{Connection: close} closes the connection after the response."""
        answer = self.client.request("GET", "/", Connection="close")
        self.assertEqual(answer.header("connection"), "close")
        self.assertTrue(self.client.transport.disconnecting)

    def test_http_1_0(self) -> None:
        """An HTTP/1.0 connection is closed after one response."""
        self.client.send(b"GET / HTTP/1.0\r\n\r\n")
        (answer,) = self.client.answers()
        self.assertEqual(answer.code, 200)
        self.assertTrue(self.client.transport.disconnecting)

    def test_head(self) -> None:
        """The response to HEAD has the length of the body, and no body."""
        answer = self.client.request("HEAD", "/abc")
        self.assertEqual((answer.header("content-length"), answer.body), ("10", b""))


class TimeoutTests(SynchronousTestCase):
    """Timeouts of connections."""

    def setUp(self) -> None:
        """Create a connection to a site with a fake clock."""
        self.clock = Clock()
        self.site = make_site(clock=self.clock)
        self.client = Client(self.site)

    def advance(self, seconds: float) -> None:
        """Advance the clock in steps of a second."""
        self.clock.pump([1.0] * int(seconds))

    def test_slow_head(self) -> None:
        """A head that is incomplete after 32 seconds is refused, whatever its rate."""
        for _ in range(30):
            self.client.send(b"G")
            self.advance(1)
        self.assertEqual(self.client.answers(), [])
        self.advance(3)
        (answer,) = self.client.answers()
        self.assertEqual(answer.code, 408)
        self.assertTrue(self.client.transport.disconnecting)

    def test_nothing_sent(self) -> None:
        """A connection without data is closed."""
        self.advance(34)
        self.assertTrue(self.client.transport.disconnecting)
        self.assertEqual(self.client.answers(), [])

    def test_idle(self) -> None:
        """An idle connection is closed after 90 seconds."""
        self.client.request("GET", "/")
        self.advance(88)
        self.client.request("GET", "/")
        self.advance(88)
        self.assertFalse(self.client.transport.disconnecting)
        self.advance(4)
        self.assertTrue(self.client.transport.disconnecting)

    def test_not_closed_by_client(self) -> None:
        """A client that does not close its side is disconnected."""
        self.client.request("GET", "/")
        self.advance(100)
        self.assertTrue(self.client.transport.disconnected or self.client.transport.aborting)

    def test_answering(self) -> None:
        """There is no timeout while a request is answered."""
        waiting: list[KubeRequest] = []
        client = Client(make_site(waiting.append, self.clock))
        client.send(GET)
        self.advance(1000)
        self.assertFalse(client.transport.disconnecting)

    def test_sends_ahead(self) -> None:
        """Reading is paused if a client sends much before it gets its response."""
        waiting: list[KubeRequest] = []
        client = Client(make_site(waiting.append, self.clock))
        client.send(GET)
        client.send(b"G" * 70000)
        self.assertEqual(client.transport.producerState, "paused")
        echo(waiting[0])
        self.assertEqual(client.transport.producerState, "producing")
