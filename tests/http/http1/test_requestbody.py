"""Tests of L{kubetwist.http.http1.requestbody}: reading of bodies, their limits and minimum rate."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.errors import APIStatusError
from kubetwist.http.connection.bodyshares import BODY_GRACE, BODY_RATE, MAX_BODY
from kubetwist.http.request import KubeRequest

from ..harness import Client, RefusalCase, echo, make_site


def reading(request: KubeRequest) -> None:
    """Answer with the body, or with the error of reading it."""
    try:
        echo(request)
    except APIStatusError as error:
        request.respond(error.code, error.message.encode(), b"text/plain")


class FramingTests(RefusalCase):
    """Bodies in chunks and 100 Continue."""

    def test_expect(self) -> None:
        """A client that waits for 100 Continue receives it."""
        client = Client(make_site())
        client.send(b"PUT / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
        self.assertEqual(client.transport.value(), b"HTTP/1.1 100 Continue\r\n\r\n")
        client.send(b"ok")
        self.assertEqual(client.answers()[-1].body, b"PUT / ok")

    def test_bad_chunks(self) -> None:
        """A malformed chunk size is answered with 400."""
        head = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        self.assertEqual(self.refused(head + b"zz\r\nabc\r\n0\r\n\r\n"), 400)
        self.assertEqual(self.refused(head + b"-1\r\n"), 400)
        self.assertEqual(self.refused(head + b"3\r\nabcd\r\n0\r\n\r\n"), 400)


class BodyLimitTests(SynchronousTestCase):
    """Bodies above 3 MiB."""

    def setUp(self) -> None:
        """Create a connection to a site that reads bodies."""
        self.site = make_site(reading)
        self.client = Client(self.site)

    def assert_too_large(self) -> None:
        """Assert that the body was refused as too large."""
        (answer,) = self.client.answers()
        self.assertEqual(answer.code, 413)
        self.assertEqual(answer.body, b"Request entity too large: limit is 3145728")
        self.assertEqual(answer.header("connection"), "close")

    def test_at_the_limit(self) -> None:
        """A body of exactly 3 MiB is read."""
        answer = self.client.request("POST", "/", b"x" * MAX_BODY)
        self.assertEqual((answer.code, len(answer.body)), (200, MAX_BODY + 7))

    def test_announced(self) -> None:
        """A body whose declared length is too large is refused before it arrives."""
        self.client.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (MAX_BODY + 1))
        self.assert_too_large()

    def test_announced_without_continue(self) -> None:
        """A body whose declared length is too large gets no 100 Continue."""
        self.client.send(
            b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n" % (MAX_BODY + 1)
        )
        self.assertFalse(self.client.transport.value().startswith(b"HTTP/1.1 100"))

    def test_chunked(self) -> None:
        """A body in chunks is refused as soon as it is too large, and dropped."""
        self.client.send(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        chunk = b"80000\r\n" + b"x" * 0x80000 + b"\r\n"
        for _ in range(6):
            self.client.send(chunk)
        self.assertEqual(self.client.answers(), [])
        self.client.send(chunk)
        self.assert_too_large()
        self.assertEqual(self.client.channel._body, b"")

    def test_rest_is_discarded(self) -> None:
        """A client that continues to send a refused body can still read the response."""
        self.client.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (MAX_BODY + 10))
        self.assert_too_large()
        self.client.send(b"x" * MAX_BODY)
        self.assertFalse(self.client.transport.disconnecting)
        self.client.send(b"x" * 10)
        self.assertTrue(self.client.transport.disconnecting)
        self.assertEqual(self.client.answers(), [])

    def test_endless_rest(self) -> None:
        """A client that never stops sending is disconnected."""
        self.client.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % 10**12)
        self.assert_too_large()
        megabyte = b"x" * (1 << 20)
        for _ in range(33):
            self.client.send(megabyte)
        self.assertTrue(self.client.transport.disconnected or self.client.transport.aborting)

    def test_lost_with_half_a_body(self) -> None:
        """A client that disconnects within a body leaves no data."""
        self.client.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n" + b"x" * 500)
        self.client.channel.connectionLost(None)
        self.assertEqual(
            (self.client.channel._body, self.site.connections.channels, self.site.open_requests), (b"", set(), set())
        )


class PaceTests(SynchronousTestCase):
    """Minimum rates of bodies."""

    def setUp(self) -> None:
        """Create a connection to a site with a fake clock."""
        self.clock = Clock()
        self.client = Client(make_site(reading, self.clock))

    def test_slow_body(self) -> None:
        """A body that is incomplete after a minute is refused, whatever its rate."""
        self.client.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3000000\r\n\r\n")
        for _ in range(58):
            self.client.send(b"x" * BODY_RATE)
            self.clock.advance(1)
        self.assertEqual(self.client.answers(), [])
        self.client.send(b"x" * BODY_RATE)
        self.clock.pump([1.0] * 4)
        (answer,) = self.client.answers()
        self.assertEqual(answer.code, 408)
        self.assertEqual(self.client.channel._body, b"")

    def test_minimum_rate(self) -> None:
        """A body below the minimum transfer rate is refused."""
        self.client.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n")
        for _ in range(int(BODY_GRACE) - 1):
            self.client.send(b"x")
            self.clock.advance(1)
        self.assertEqual(self.client.answers(), [])
        self.clock.pump([1.0] * 2)
        (answer,) = self.client.answers()
        self.assertEqual(answer.code, 408)
