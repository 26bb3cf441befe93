"""Tests for L{kubetwist.http.http1.channel}: requests in turn on a connection, and its deadlines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.http.request import KubeRequest

from ..harness import GET, Client, echo, make_site


class ParsingTests(SynchronousTestCase):
    """How requests are found in what arrives."""

    def setUp(self) -> None:
        """A connection to a site that says what it got."""
        self.client = Client(make_site())

    def test_get(self) -> None:
        """A request without a body is answered when its head has arrived."""
        self.client.send(GET)
        (answer,) = self.client.answers()
        self.assertEqual((answer.code, answer.body), (200, b"GET /a "))
        self.assertFalse(self.client.transport.disconnecting)

    def test_pipelined(self) -> None:
        """Requests that arrive together are answered in their order."""
        self.client.send(GET + GET.replace(b"/a", b"/b") + GET.replace(b"/a", b"/c"))
        self.assertEqual([answer.body for answer in self.client.answers()], [b"GET /a ", b"GET /b ", b"GET /c "])

    def test_pipelined_behind_a_slow_one(self) -> None:
        """A request waits for the answer of the one before it on its connection."""
        waiting: list[KubeRequest] = []
        client = Client(make_site(waiting.append))
        client.send(GET + GET)
        self.assertEqual(len(waiting), 1)
        echo(waiting[0])
        self.assertEqual(len(waiting), 2)
        echo(waiting[1])
        self.assertEqual(len(client.answers()), 2)

    def test_thousands_pipelined(self) -> None:
        """The number of requests that arrive together is not limited by the depth of the stack."""
        self.client.send(GET * 3000)
        self.assertEqual(len(self.client.answers()), 3000)

    def test_unread_answers(self) -> None:
        """While a client does not take its answers it is given no more of them."""
        self.client.channel.pauseProducing()
        self.client.send(GET * 5)
        self.assertEqual(self.client.answers(), [])
        self.client.channel.resumeProducing()
        self.client.send(b"")
        self.assertEqual(len(self.client.answers()), 5)

    def test_pipelined_requests_take_turns(self) -> None:
        """Pipelined requests take turns with other connections: one request of each is served at a time."""
        served: list[bytes] = []
        site = make_site(lambda request: (served.append(request.path), echo(request))[1])
        greedy, other = Client(site), Client(site)
        greedy.channel.dataReceived(GET * 4)
        self.assertEqual(served, [b"/a"])
        other.channel.dataReceived(GET.replace(b"/a", b"/other") * 2)
        self.assertEqual(served, [b"/a", b"/other"])
        site.reactor.advance(0)
        self.assertEqual(served, [b"/a", b"/other", b"/a", b"/other", b"/a", b"/a"])

    def test_pipelined_and_gone(self) -> None:
        """Pipelined requests of a disconnected client are not served."""
        served: list[KubeRequest] = []
        client = Client(make_site(lambda request: (served.append(request), echo(request))[1]))
        client.channel.dataReceived(GET * 4)
        client.channel.connectionLost(None)
        client.site.reactor.advance(0)
        self.assertEqual(len(served), 1)

    @given(pieces=st.lists(st.integers(1, 40), min_size=1, max_size=12))
    def test_any_pieces(self, pieces: list[int]) -> None:
        """It makes no difference how the network cuts requests into pieces."""
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
    def test_noise(self, data: bytes) -> None:
        """Whatever arrives, the connection is served or refused, and nothing is raised."""
        client = Client(make_site())
        client.send(data + b"\r\n\r\n")
        client.send(b"\r\n\r\n")

    def test_connection_close(self) -> None:
        """A client that asks for it has its connection closed after the answer."""
        answer = self.client.request("GET", "/", Connection="close")
        self.assertEqual(answer.header("connection"), "close")
        self.assertTrue(self.client.transport.disconnecting)

    def test_http_1_0(self) -> None:
        """HTTP/1.0 gets one answer and the end of the connection."""
        self.client.send(b"GET / HTTP/1.0\r\n\r\n")
        (answer,) = self.client.answers()
        self.assertEqual(answer.code, 200)
        self.assertTrue(self.client.transport.disconnecting)

    def test_head(self) -> None:
        """The answer to HEAD tells the length of a body, and has none."""
        answer = self.client.request("HEAD", "/abc")
        self.assertEqual((answer.header("content-length"), answer.body), ("10", b""))


class PatienceTests(SynchronousTestCase):
    """How long a connection is waited for."""

    def setUp(self) -> None:
        """A connection to a site with a clock."""
        self.clock = Clock()
        self.site = make_site(clock=self.clock)
        self.client = Client(self.site)

    def advance(self, seconds: float) -> None:
        """Let time pass, second by second."""
        self.clock.pump([1.0] * int(seconds))

    def test_slow_head(self) -> None:
        """A head that is still not whole after 32 seconds is not waited for, however steadily it comes."""
        for _ in range(30):
            self.client.send(b"G")
            self.advance(1)
        self.assertEqual(self.client.answers(), [])
        self.advance(3)
        (answer,) = self.client.answers()
        self.assertEqual(answer.code, 408)
        self.assertTrue(self.client.transport.disconnecting)

    def test_nothing_sent(self) -> None:
        """A connection on which nothing is sent is closed."""
        self.advance(34)
        self.assertTrue(self.client.transport.disconnecting)
        self.assertEqual(self.client.answers(), [])

    def test_idle(self) -> None:
        """Between requests a connection may rest for 90 seconds."""
        self.client.request("GET", "/")
        self.advance(88)
        self.client.request("GET", "/")
        self.advance(88)
        self.assertFalse(self.client.transport.disconnecting)
        self.advance(4)
        self.assertTrue(self.client.transport.disconnecting)

    def test_not_closed_by_client(self) -> None:
        """A client that does not close its side is cut off."""
        self.client.request("GET", "/")
        self.advance(100)
        self.assertTrue(self.client.transport.disconnected or self.client.transport.aborting)

    def test_answering(self) -> None:
        """While a request is answered there is no hurry."""
        waiting: list[KubeRequest] = []
        client = Client(make_site(waiting.append, self.clock))
        client.send(GET)
        self.advance(1000)
        self.assertFalse(client.transport.disconnecting)

    def test_sends_ahead(self) -> None:
        """A client that sends much while it waits for an answer is read from no more until it has it."""
        waiting: list[KubeRequest] = []
        client = Client(make_site(waiting.append, self.clock))
        client.send(GET)
        client.send(b"G" * 70000)
        self.assertEqual(client.transport.producerState, "paused")
        echo(waiting[0])
        self.assertEqual(client.transport.producerState, "producing")
