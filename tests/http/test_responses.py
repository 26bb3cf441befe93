"""Tests of L{kubetwist.http.responses}."""

from __future__ import annotations

import gzip
import random

import orjson
import yaml

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.errors import APIStatusError
from kubetwist.http import responses as respond
from kubetwist.http.request import KubeRequest
from kubetwist.http.responses import Body
from tests.http.harness import Client, make_site, parse_answers
from tests.http.pieces import ErrorTestCase


class ErrorTests(ErrorTestCase):
    """L{respond_error<respond.respond_error>}."""

    def test_forms(self) -> None:
        """A Status has the media type that the client accepts, or is indented JSON."""
        error = APIStatusError.bad_request("no")
        client = self.client(lambda request: respond.respond_error(request, error))
        plain = client.request("GET", "/", Accept="application/json")
        self.assertEqual((plain.code, orjson.loads(plain.body)["message"]), (400, "no"))
        self.assertEqual(plain.body.count(b"\n"), 1)
        self.assertEqual(yaml.safe_load(client.request("GET", "/", Accept="application/yaml").body)["code"], 400)
        odd = client.request("GET", "/", Accept="text/html")
        self.assertEqual((odd.code, odd.header("content-type")), (400, "application/json"))
        self.assertIn(b'\n  "kind"', odd.body)

    def test_retry_after(self) -> None:
        """The retry delay of an error is sent as Retry-After."""
        error = APIStatusError.too_many_requests("later", 7)
        answer = self.client(lambda request: respond.respond_error(request, error)).request("GET", "/")
        self.assertEqual(answer.header("retry-after"), "7")


class PacedBodyTests(SynchronousTestCase):
    """L{PacedBody<respond.PacedBody>}."""

    parts: tuple[bytes, ...] = tuple(b"%07d," % number for number in range(200_000))

    def setUp(self) -> None:
        """Create a server that answers with one large body."""
        self.patch(respond, "PACED_FROM", 1 << 20)
        self.requests: list[KubeRequest] = []

        def handle(request: KubeRequest) -> None:
            self.requests.append(request)
            respond.respond_body(request, 200, Body(self.parts), b"text/plain")

        self.client = Client(make_site(handle))

    def slow(self) -> None:
        """Pause the connection after each write."""
        write = self.client.transport.write

        def pause(data: bytes) -> None:
            write(data)
            self.client.channel.pauseProducing()

        self.client.transport.write = pause  # type: ignore[method-assign]

    def begin(self, **headers: str) -> None:
        """Send a request."""
        fields = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        self.client.send(f"GET / HTTP/1.1\r\nHost: x\r\n{fields}\r\n".encode())

    def test_whole(self) -> None:
        """A fast client gets the body at once."""
        answer = self.client.request("GET", "/")
        self.assertEqual(answer.body, b"".join(self.parts))
        self.assertEqual(answer.header("content-length"), str(len(answer.body)))

    def test_paced(self) -> None:
        """At most one piece is written to a slow client at a time."""
        self.slow()
        self.begin()
        received = b""
        turns = 0
        while len(received) < 1_600_000:
            data = self.client.transport.value()
            self.assertLessEqual(len(data), respond.PIECE + 1000)
            self.client.transport.clear()
            received += data
            turns += 1
            self.client.channel.resumeProducing()
        (answer,) = parse_answers(received + self.client.transport.value())
        self.assertEqual(answer.body, b"".join(self.parts))
        self.assertGreater(turns, 5)
        self.assertTrue(self.requests[0].finished)
        self.assertIsNone(self.requests[0].producer)

    def test_one_part(self) -> None:
        """A body of one large part is written in pieces, too, as it is and compressed."""
        self.parts = (b"start", random.Random(1).randbytes(1_200_000), b"end")
        for encoding in ("identity", "gzip"):
            client = self.client = Client(self.client.site)
            self.slow()
            self.begin(Accept_Encoding=encoding)
            received, turns = b"", 0
            while data := client.transport.value():
                # The compressor holds back a part of its result.
                self.assertLessEqual(len(data), respond.PIECE + 4096)
                client.transport.clear()
                received += data
                turns += 1
                client.channel.resumeProducing()
            (answer,) = parse_answers(received)
            body = gzip.decompress(answer.body) if encoding == "gzip" else answer.body
            self.assertEqual((body, turns > 7), (b"".join(self.parts), True))

    def test_compressed(self) -> None:
        """A compressed body is paced, too."""
        self.slow()
        self.begin(Accept_Encoding="gzip")
        while not self.requests[0].finished:
            self.client.channel.resumeProducing()
        (answer,) = self.client.answers()
        self.assertEqual(answer.header("content-encoding"), "gzip")
        self.assertEqual(gzip.decompress(answer.body), b"".join(self.parts))

    def test_disconnected(self) -> None:
        """Writing stops when the client disconnects."""
        self.slow()
        self.begin()
        written = len(self.client.transport.value())
        self.client.channel.connectionLost(RuntimeError("gone"))
        self.client.channel.resumeProducing()
        self.assertEqual(len(self.client.transport.value()), written)
        self.assertFalse(self.requests[0].finished)

    def test_two_in_a_row(self) -> None:
        """The connection serves the next request after a large body."""
        for _ in range(2):
            self.assertEqual(len(self.client.request("GET", "/").body), 1_600_000)
