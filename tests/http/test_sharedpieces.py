"""Tests for L{kubetwist.http.sharedpieces}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.http.request import KubeRequest
from kubetwist.http.sharedpieces import SharedPiece
from tests.http.harness import GET, Client, make_site
from tests.http.http2 import frames as h2
from tests.http.http2.client import Client as Http2Client
from tests.http.http2.client import get


class SharedPieceTests(SynchronousTestCase):
    """Tests for L{SharedPiece}, over connections in memory."""

    def test_chunk(self) -> None:
        """The chunk has the length in hexadecimal."""
        piece = SharedPiece(b"x" * 30)
        self.assertEqual(piece.chunk, b"1e\r\n" + b"x" * 30 + b"\r\n")

    def test_responses(self) -> None:
        """Clients of any version and method receive shared pieces like other pieces."""
        piece = SharedPiece(b"shared")

        def respond(request: KubeRequest) -> None:
            request.write(b"first ")
            write = request.shared_writer().send
            write(piece)
            request.finish()
            write(piece)
            sizes.append(request.sentLength)

        sizes: list[int] = []
        site = make_site(respond)
        client = Client(site)
        client.send(GET)
        (answer,) = client.answers()
        self.assertEqual(answer.body, b"first shared")
        client.send(GET.replace(b"GET", b"HEAD"))
        (answer,) = client.answers(bodiless=True)
        self.assertEqual(answer.body, b"")
        older = Client(site)
        older.send(GET.replace(b"HTTP/1.1", b"HTTP/1.0"))
        self.assertTrue(older.transport.value().endswith(b"\r\n\r\nfirst shared"))
        self.assertEqual(sizes, [12, 0, 12])

    def test_http2(self) -> None:
        """Streams of HTTP/2 receive the pieces as data."""
        piece = SharedPiece(b"shared")

        def respond(request: KubeRequest) -> None:
            request.write(b"first ")
            write = request.shared_writer().send
            write(piece)
            request.finish()
            write(piece)

        client = Http2Client(make_site(respond))
        client.send(h2.headers(1, get(b"/a")) + h2.headers(3, get(b"/b")))
        self.assertEqual([bytes(client.stream(number).data) for number in (1, 3)], [b"first shared"] * 2)

    def test_disconnected(self) -> None:
        """A piece for a client that has disconnected is dropped."""
        requests: list[KubeRequest] = []
        client = Client(make_site(requests.append))
        client.send(GET)
        requests[0].write(b"1")
        write = requests[0].shared_writer().send
        client.transport.clear()
        requests[0].connectionLost(RuntimeError("closed"))  # type: ignore[arg-type]
        write(SharedPiece(b"2"))
        self.assertEqual(client.transport.value(), b"")
