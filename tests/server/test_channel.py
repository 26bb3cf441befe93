"""Tests for L{kubetwist.server.channel}: HTTP/1.1 and its limits."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.errors import APIStatusError
from kubetwist.server.channel import BODY_GRACE, BODY_RATE, MAX_BODY, MAX_FIELDS, MAX_HEAD, MAX_LINE
from kubetwist.server.site import KubeRequest

from .harness import Client, echo, make_site

GET = b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n"


def reading(request: KubeRequest) -> None:
    """As a handler that reads the body, and tells what is wrong about it."""
    try:
        echo(request)
    except APIStatusError as error:
        request.respond(error.code, error.message.encode(), b"text/plain")


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
        """What a client has sent ahead is not served when it has gone."""
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

    def test_header_names_and_values(self) -> None:
        """Names of headers are compared without case, values are trimmed, and the first of several counts."""
        seen: list[KubeRequest] = []
        client = Client(make_site(seen.append))
        client.send(b"GET / HTTP/1.1\r\nhOST: x\r\nACCEPT:  a \r\nAccept: b\r\nX-Empty:\r\n\r\n")
        (request,) = seen
        self.assertEqual(request.header(b"accept"), b"a")
        self.assertEqual(request.getHeader(b"Accept"), b"a")
        self.assertEqual(request.getHeader("accept"), "a")
        self.assertEqual(request.header(b"x-empty"), b"")
        self.assertIsNone(request.header(b"x-none"))
        self.assertEqual(request.requestHeaders.getRawHeaders(b"Accept"), [b"a", b"b"])

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

    def test_absolute_target(self) -> None:
        """A target with scheme and host, as proxies are sent, is served by its path."""
        self.assertEqual(self.client.request("GET", "https://somewhere/a/b").body, b"GET /a/b ")
        self.assertEqual(self.client.request("GET", "https://somewhere").body, b"GET / ")

    def test_expect(self) -> None:
        """A client that waits for leave to send its body gets it."""
        self.client.send(b"PUT / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
        self.assertEqual(self.client.transport.value(), b"HTTP/1.1 100 Continue\r\n\r\n")
        self.client.send(b"ok")
        self.assertEqual(self.client.answers()[-1].body, b"PUT / ok")

    def test_head(self) -> None:
        """The answer to HEAD tells the length of a body, and has none."""
        answer = self.client.request("HEAD", "/abc")
        self.assertEqual((answer.header("content-length"), answer.body), ("10", b""))


class RefusalTests(SynchronousTestCase):
    """What is no request that we take."""

    def refused(self, data: bytes) -> int:
        """The code that C{data} is refused with, after which the connection ends."""
        client = Client(make_site())
        client.send(data)
        (answer,) = client.answers()
        self.assertTrue(client.transport.disconnecting)
        self.assertEqual(answer.header("content-type"), "text/plain; charset=utf-8")
        client.send(GET)
        self.assertEqual(client.answers(), [])
        return answer.code

    def test_malformed(self) -> None:
        """What breaks the grammar of HTTP is 400."""
        for data in (
            b"GET\r\n\r\n",
            b"GET /\r\n\r\n",
            b"GET / HTTP/1.1 x\r\nHost: x\r\n\r\n",
            b"GET  / HTTP/1.1\r\nHost: x\r\n\r\n",
            b"G\x01T / HTTP/1.1\r\nHost: x\r\n\r\n",
            b"GET /\x7f HTTP/1.1\r\nHost: x\r\n\r\n",
            b"GET relative HTTP/1.1\r\nHost: x\r\n\r\n",
            b"GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n",
            b"GET /%4 HTTP/1.1\r\nHost: x\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost : x\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: x\r\n folded: y\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: x\r\n: y\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: x\r\nA: b\0c\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: x\r\nA: b\nC: d\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: x\r\nA: b\rC: d\r\n\r\n",
            b"GET / HTTQ\r\nHost: x\r\n\r\n",
        ):
            self.assertEqual(self.refused(data), 400, data)

    def test_reference_text(self) -> None:
        """The text of a refusal is the reference's."""
        client = Client(make_site())
        self.assertEqual(client.request("GET", "/%zz").body, b"400 Bad Request")

    def test_host(self) -> None:
        """HTTP/1.1 demands exactly one Host, HTTP/1.0 takes one at most."""
        self.assertEqual(self.refused(b"GET / HTTP/1.0\r\nHost: x\r\nHost: y\r\n\r\n"), 400)
        self.assertEqual(self.refused(b"GET / HTTP/1.1\r\n\r\n"), 400)
        self.assertEqual(self.refused(b"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n"), 400)

    def test_malformed_host(self) -> None:
        """A Host with bytes that no host has is 400; an empty one and addresses are fine."""
        for host in (b"a b", b"a/b", b"a\\b", b"<x>", b"x#y", b"x?", b"user@x", b"\xc3\xa4", b'"x"', b"x{", b"^"):
            for version in (b"1.1", b"1.0"):
                self.assertEqual(self.refused(b"GET / HTTP/%b\r\nHost: %b\r\n\r\n" % (version, host)), 400, host)
        client = Client(make_site())
        for host in (b"", b"x", b"[::1]:6443", b"10.0.0.1:6443", b"a_b.c~d", b"x" * 1000):
            client.send(b"GET / HTTP/1.1\r\nHost: %b\r\n\r\n" % host)
            (answer,) = client.answers()
            self.assertEqual(answer.code, 200, host)

    def test_unknown_expectation(self) -> None:
        """An expectation other than 100-continue is 417, with a body or without one."""
        for fields in (b"Expect: a-miracle", b"Expect: a-miracle\r\nContent-Length: 2"):
            self.assertEqual(self.refused(b"PUT / HTTP/1.1\r\nHost: x\r\n" + fields + b"\r\n\r\n"), 417)

    def test_smuggling(self) -> None:
        """A body whose length can be read in two ways is refused."""
        for fields in (
            b"Content-Length: 3\r\nContent-Length: 4",
            b"Content-Length: 3\r\nContent-Length: 3",
            b"Content-Length: 3\r\nTransfer-Encoding: chunked",
            b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
            b"Content-Length: +3",
            b"Content-Length: -3",
            b"Content-Length: 0x3",
            b"Content-Length: 3, 3",
            b"Content-Length: ",
            b"Content-Length: " + b"9" * 30,
        ):
            self.assertEqual(self.refused(b"POST / HTTP/1.1\r\nHost: x\r\n" + fields + b"\r\n\r\n"), 400, fields)
        self.assertEqual(self.refused(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"), 501)

    def test_versions(self) -> None:
        """Other versions of HTTP are 505."""
        self.assertEqual(self.refused(b"GET / HTTP/2.0\r\nHost: x\r\n\r\n"), 505)

    def test_http2(self) -> None:
        """CVE-2019-9512, CVE-2019-9514, CVE-2023-44487: nobody speaks HTTP/2, whose floods so have no way in."""
        self.assertEqual(self.refused(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9)), 505)

    def test_bad_chunks(self) -> None:
        """A chunk whose size is none is 400."""
        head = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        self.assertEqual(self.refused(head + b"zz\r\nabc\r\n0\r\n\r\n"), 400)
        self.assertEqual(self.refused(head + b"-1\r\n"), 400)
        self.assertEqual(self.refused(head + b"3\r\nabcd\r\n0\r\n\r\n"), 400)

    def test_long_line(self) -> None:
        """A URL over the limit is 414, whether or not it ever ends."""
        line = b"GET /" + b"a" * MAX_LINE
        self.assertEqual(self.refused(line), 414)
        self.assertEqual(self.refused(line + b" HTTP/1.1\r\nHost: x\r\n\r\n"), 414)

    def test_url_within_limit(self) -> None:
        """A URL just below the limit is served."""
        client = Client(make_site())
        self.assertEqual(client.request("GET", "/" + "a" * (MAX_LINE - 20)).code, 200)

    def test_large_head(self) -> None:
        """Headers over the limit are 431, whether or not they ever end."""
        head = b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"a" * MAX_HEAD
        self.assertEqual(self.refused(head), 431)
        self.assertEqual(self.refused(head + b"\r\n\r\n"), 431)

    def test_many_headers(self) -> None:
        """More headers than anyone needs are 431."""
        self.assertEqual(self.refused(b"GET / HTTP/1.1\r\nHost: x\r\n" + b"A: b\r\n" * MAX_FIELDS + b"\r\n"), 431)


class BodyLimitTests(SynchronousTestCase):
    """Bodies over 3 MiB."""

    def setUp(self) -> None:
        """A connection to a site that reads bodies."""
        self.site = make_site(reading)
        self.client = Client(self.site)

    def assert_too_large(self) -> None:
        """Expect the answer to a body over the limit."""
        (answer,) = self.client.answers()
        self.assertEqual(answer.code, 413)
        self.assertEqual(answer.body, b"Request entity too large: limit is 3145728")
        self.assertEqual(answer.header("connection"), "close")

    def test_just_within(self) -> None:
        """A body of exactly 3 MiB is read."""
        answer = self.client.request("POST", "/", b"x" * MAX_BODY)
        self.assertEqual((answer.code, len(answer.body)), (200, MAX_BODY + 7))

    def test_announced(self) -> None:
        """A body announced to be too large is refused before it arrives."""
        self.client.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (MAX_BODY + 1))
        self.assert_too_large()

    def test_announced_does_not_get_leave(self) -> None:
        """Who asks before sending a body that is too large is not told to send it."""
        self.client.send(
            b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n" % (MAX_BODY + 1)
        )
        self.assertFalse(self.client.transport.value().startswith(b"HTTP/1.1 100"))

    def test_chunked(self) -> None:
        """A body in chunks is refused as soon as it is too large, and nothing of it is kept."""
        self.client.send(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        chunk = b"80000\r\n" + b"x" * 0x80000 + b"\r\n"
        for _ in range(6):
            self.client.send(chunk)
        self.assertEqual(self.client.answers(), [])
        self.client.send(chunk)
        self.assert_too_large()
        self.assertEqual(self.client.channel._body, b"")

    def test_rest_is_thrown_away(self) -> None:
        """What a client still sends of a refused body does not keep it from reading the answer."""
        self.client.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (MAX_BODY + 10))
        self.assert_too_large()
        self.client.send(b"x" * MAX_BODY)
        self.assertFalse(self.client.transport.disconnecting)
        self.client.send(b"x" * 10)
        self.assertTrue(self.client.transport.disconnecting)
        self.assertEqual(self.client.answers(), [])

    def test_endless_rest(self) -> None:
        """A client that sends without end is cut off."""
        self.client.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % 10**12)
        self.assert_too_large()
        megabyte = b"x" * (1 << 20)
        for _ in range(33):
            self.client.send(megabyte)
        self.assertTrue(self.client.transport.disconnected or self.client.transport.aborting)

    def test_lost_with_half_a_body(self) -> None:
        """A client that goes away in the middle of a body leaves nothing behind."""
        self.client.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n" + b"x" * 500)
        self.client.channel.connectionLost(None)
        self.assertEqual((self.client.channel._body, self.site.channels, self.site.open_requests), (b"", set(), set()))


class PatienceTests(SynchronousTestCase):
    """How long a connection is waited for."""

    def setUp(self) -> None:
        """A connection to a site with a clock."""
        self.clock = Clock()
        self.site = make_site(reading, self.clock)
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

    def test_slow_body(self) -> None:
        """A body that is still not whole after a minute is not waited for, however steadily it comes."""
        self.client.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3000000\r\n\r\n")
        for _ in range(58):
            self.client.send(b"x" * BODY_RATE)
            self.advance(1)
        self.assertEqual(self.client.answers(), [])
        self.client.send(b"x" * BODY_RATE)
        self.advance(4)
        (answer,) = self.client.answers()
        self.assertEqual(answer.code, 408)
        self.assertEqual(self.client.channel._body, b"")

    def test_minimum_rate(self) -> None:
        """A body that comes more slowly than the minimum transfer rate is not waited for."""
        self.client.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n")
        for _ in range(int(BODY_GRACE) - 1):
            self.client.send(b"x")
            self.advance(1)
        self.assertEqual(self.client.answers(), [])
        self.advance(2)
        (answer,) = self.client.answers()
        self.assertEqual(answer.code, 408)

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
