"""Tests of L{kubetwist.client.connection}."""

from __future__ import annotations

from twisted.internet.defer import Deferred
from twisted.internet.testing import StringTransport

from kubetwist.client.errors import (
    Unreachable,
)
from kubetwist.client.streaming import (
    Upload,
)
from kubetwist.http.connection.flow import BodyStream
from tests.client.streamingcase import OK, Sink, StreamingCase


class ResponseTests(StreamingCase):
    """Parsing of responses."""

    async def test_lengths(self) -> None:
        """The end of a body is given by Content-Length, the last chunk, or the end of the connection."""
        for answer, method, body in (
            (OK, b"GET", b"ok"),
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n1\r\no\r\n1;a=b\r\nk\r\n0\r\n\r\n", b"GET", b"ok"),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", b"HEAD", b""),
            (b"HTTP/1.1 204 No Content\r\n\r\n", b"GET", b""),
            (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 1000\r\n\r\n", b"GET", b""),
        ):
            client, _, response = await self.answered(answer, method=method)
            self.assertEqual(await response.collect(10), body)
            self.assertEqual((client.idle, client.busy), (1, 0))

    async def test_truncated(self) -> None:
        """A truncated body is delivered up to the break and fails with an error."""
        for answer in (
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nbody",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nbody",
        ):
            client, wire, response = await self.answered(answer)
            sink = Sink()
            done = response.deliver(sink)
            wire.close()
            self.assertEqual(str(await self.assertFailure(done, Unreachable)), "unexpected EOF")
            self.assertEqual(sink.data, b"body")
            self.assertIsNone(sink.producer)
            self.assertEqual((client.idle, client.busy), (0, 0))

    async def test_malformed_chunks(self) -> None:
        """Malformed chunks fail the response."""
        for chunk in (b"x\r\n", b"-1\r\n", b"4\r\nbodyno", b"1" * 5000):
            _, wire, response = await self.answered(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            done = response.deliver(Sink())
            wire.send(chunk)
            self.assertEqual(str(await self.assertFailure(done, Unreachable)), "malformed chunked encoding")
            await wire.end()

    async def test_chunk_overhead(self) -> None:
        """Chunks with small data and long extensions, or long trailers, fail the response."""
        head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        small, padded = b"1\r\nx\r\n", b"1;%b\r\nx\r\n" % (b"a" * 900)
        _, _, response = await self.answered(head + small * 50_000 + b"0\r\n\r\n")
        self.assertEqual(len(await response.collect(50_000)), 50_000)
        _, wire, response = await self.answered(head)
        done = response.deliver(Sink())
        wire.send(padded * 150)
        error = await self.assertFailure(done, Unreachable)
        self.assertEqual(str(error), "http: chunked encoding contains too much non-data")
        await wire.end()

    async def test_too_long(self) -> None:
        """Collecting a body longer than the limit fails."""
        _, wire, response = await self.answered(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + b"x" * 500)
        collecting = Deferred.fromCoroutine(response.collect(100))
        self.assertEqual(str(await self.assertFailure(collecting, Unreachable)), "the answer is longer than 100 bytes")
        await wire.end()

    async def test_paced(self) -> None:
        """A paused consumer receives no data until it resumes."""
        client, wire, response = await self.answered(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\none")
        sink = Sink()
        done = response.deliver(sink)
        self.assertEqual(sink.data, b"one")
        (connection,) = client._open
        sink.producer.pauseProducing()
        self.assertTrue(connection._paused)
        wire.send(b"two")
        sink.producer.resumeProducing()
        self.assertFalse(connection._paused)
        await done
        self.assertEqual(sink.data, b"onetwo")

    async def test_discarded(self) -> None:
        """Discarding an incomplete response closes its connection; discarding a complete one does not."""
        for stop in (lambda answer, sink: answer.abort(), lambda answer, sink: sink.producer.stopProducing()):
            _, wire, response = await self.answered(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\none")
            sink = Sink()
            response.deliver(sink).addErrback(lambda _: None)
            stop(response, sink)
            await wire.end()
        client, _, response = await self.answered(OK)
        response.abort()
        self.assertEqual(client.idle, 1)


class UploadTests(StreamingCase):
    """Bodies of requests."""

    async def test_small(self) -> None:
        """A body in memory is sent with its length; POST and PUT without a body send a length of 0."""
        backend = self.backend()
        client = self.client(backend)
        for method, body, line in (
            (b"POST", b"hello", b"\r\ncontent-length: 5\r\n"),
            (b"POST", None, b"\r\ncontent-length: 0\r\n"),
            (b"DELETE", b"", b"DELETE "),
        ):
            pending = self.get(client, method, body)
            wire = backend.wires[0] if backend.wires else await backend.connection()
            head = await wire.until(b"\r\n\r\n")
            self.assertIn(line, head)
            self.assertEqual(b"length" in head, method == b"POST")
            self.assertEqual(await wire.take(len(body or b"")), body or b"")
            wire.send(OK)
            await (await pending).collect(10)

    async def test_wrong_length(self) -> None:
        """A body whose length differs from the announced one fails the request and closes the connection."""
        for written in (b"abc", b"abcdefgh"):
            backend = self.backend()
            flow = BodyStream(None)  # type: ignore[arg-type]
            flow.received(written)
            flow.finish()
            pending = self.get(self.client(backend), b"POST", Upload(5, flow.deliver))
            await self.assertFailure(pending, Unreachable)
            self.assertNotIn(b"f", (await (await backend.connection()).end()).partition(b"\r\n\r\n")[2])

    async def test_broken(self) -> None:
        """A body that breaks off closes the connection without a final chunk."""
        backend = self.backend()
        client = self.client(backend)
        source = StringTransport()
        source.resume_reading = source.pause_reading = lambda: None  # type: ignore[attr-defined]
        flow = BodyStream(source)  # type: ignore[arg-type]
        pending = self.get(client, b"POST", Upload(None, flow.deliver))
        wire = await backend.connection()
        flow.received(b"abc")
        await wire.until(b"3\r\nabc\r\n")
        flow.stopProducing()
        self.assertEqual(await wire.end(), b"")
        await self.assertFailure(pending, Unreachable)
        self.assertEqual((client.idle, client.busy), (0, 0))
