"""Tests of L{kubetwist.client.responsehead}."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.client.errors import (
    Unreachable,
)
from kubetwist.client.responsehead import (
    MAX_HEAD,
    InvalidHead,
    body_length,
    parse_head,
)
from tests.client.streamingcase import OK, StreamingCase

BROKEN = "net/http: HTTP/1.x transport connection broken: "


class MalformedTests(StreamingCase):
    """Malformed and oversized heads, over a connection."""

    async def test_malformed(self) -> None:
        """A malformed or ambiguous response is refused."""
        start = b"HTTP/1.1 200 OK\r\n"
        for answer in (
            b"SSH-2.0-OpenSSH\r\n",
            b"HTTP/2.0 200 OK\r\n\r\n",
            b"HTTP/1.1 20 OK\r\n\r\n",
            b"HTTP/1.1 2000 OK\r\n\r\n",
            b"HTTP/1.1 099 OK\r\n\r\n",
            b"HTTP/1.1  200 OK\r\n\r\n",
            b"HTTP/1.1\t200 OK\r\n\r\n",
            b"HTTP/1.1 200 O\nK\r\n\r\n",
            b"\r\nHTTP/1.1 200 OK\r\n\r\n",
            start + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
            start + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
            start + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\n",
            start + b"Content-Length: 5, 5\r\n\r\n",
            start + b"Content-Length: +5\r\n\r\n",
            start + b"Content-Length: -5\r\n\r\n",
            start + b"Content-Length: 0x5\r\n\r\n",
            start + b"Content-Length: \r\n\r\n",
            start + b"Content-Length: 9999999999999999999\r\n\r\n",
            start + b"Transfer-Encoding: gzip, chunked\r\n\r\n",
            start + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
            start + b"Transfer-Encoding: identity\r\n\r\n",
            b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            start + b"A: b\r\n folded\r\n\r\n",
            start + b"A : b\r\n\r\n",
            start + b"A: b\nC: d\r\n\r\n",
            start + b"A: b\rC: d\r\n\r\n",
            start + b"A: b\0\r\n\r\n",
            start + b"no colon\r\n\r\n",
            start + b": no name\r\n\r\n",
            start + b"A: b\r\n" * 501 + b"\r\n",
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n",
        ):
            client, wire, error = await self.answered(answer)
            self.assertIsInstance(error, Unreachable, answer)
            self.assertTrue(str(error).startswith(BROKEN), error)
            await wire.end()
            self.assertEqual((client.idle, client.busy), (0, 0))

    async def test_oversized_head(self) -> None:
        """A head above the size limit fails the request."""
        for size in (MAX_HEAD, MAX_HEAD + 1000):
            _, wire, error = await self.answered(b"HTTP/1.1 200 OK\r\nA: " + b"b" * size)
            self.assertIn("server response headers exceeded", str(error))
            await wire.end()

    async def test_endless_interim(self) -> None:
        """Interim responses are skipped up to a limit."""
        interim = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
        _, _, response = await self.answered(interim * 5 + OK)
        self.assertEqual(await response.collect(10), b"ok")
        _, wire, error = await self.answered(interim * 6 + OK)
        self.assertEqual(str(error), f"{BROKEN}too many 1xx informational responses")
        await wire.end()


class HeadTests(SynchronousTestCase):
    """L{parse_head<kubetwist.client.responsehead.parse_head>} alone."""

    @given(data=st.binary(max_size=200) | st.text("HTP/1. 2043OK:\r\n\tab", max_size=60).map(str.encode))
    def test_arbitrary_data(self, data: bytes) -> None:
        """Arbitrary data are parsed or refused; parsed fields contain no line breaks or NUL."""
        for head_data in (data, b"HTTP/1.1 200 OK\r\n" + data):
            try:
                head = parse_head(head_data)
                body_length(head, b"GET")
            except InvalidHead:
                continue
            for name, value in head.fields:
                self.assertTrue(name)
                for forbidden_byte in b"\r\n\0":
                    self.assertNotIn(forbidden_byte, name + value)
