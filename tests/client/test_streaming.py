"""Tests for L{kubetwist.client.streaming}: answers that are passed on as they come, from whoever gives them."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from twisted.internet import reactor as installed_reactor
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.testing import StringTransport
from twisted.trial.unittest import SynchronousTestCase, TestCase

from kubetwist.client.errors import (
    AddressNotAllowed,
    BadSettings,
    Unreachable,
)
from kubetwist.client.factory import Outgoing
from kubetwist.client.responsehead import (
    MAX_HEAD,
    BadHead,
    body_length,
    parse_head,
)
from kubetwist.client.restconfig import CallSettings
from kubetwist.client.streaming import (
    IDLE,
    StreamedAnswer,
    StreamingClient,
    Upload,
)
from kubetwist.http.connection.flow import Flow
from tests.wires import Backend, Wire

reactor: Any = installed_reactor

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
BROKEN = "net/http: HTTP/1.x transport connection broken: "


class Sink:
    """Takes what is delivered, and can have enough."""

    def __init__(self) -> None:
        self.data = b""
        self.producer: Any = None

    def registerProducer(self, producer: Any, streaming: bool) -> None:
        """One at a time."""
        assert self.producer is None
        assert streaming
        self.producer = producer

    def unregisterProducer(self) -> None:
        """It is done."""
        self.producer = None

    def write(self, data: bytes) -> None:
        """Keep it."""
        self.data += data


class StreamingCase(TestCase):
    """A client and what it calls."""

    timeout = 20

    async def setUp(self) -> None:
        """Both."""
        self.outgoing = Outgoing(reactor, lambda namespace, name: None)
        self.backends: list[Backend] = []

    async def tearDown(self) -> None:
        """Nothing may be left."""
        await self.outgoing.close()
        for backend in self.backends:
            await backend.stop()

    def backend(self, *, tls: bool = False, require_client: bool = False, names: Any = ("127.0.0.1",)) -> Backend:
        """One that listens."""
        backend = Backend(reactor, tls=tls, names=names).start(require_client=require_client)
        self.backends.append(backend)
        return backend

    def client(self, backend: Backend, **others: Any) -> StreamingClient:
        """A client of it."""
        return self.outgoing.stream_client(CallSettings(**{"url": backend.url, "ca": backend.ca, **others}))

    def get(self, client: StreamingClient, method: bytes = b"GET", body: Any = None) -> Deferred[StreamedAnswer]:
        """Ask for something."""
        return Deferred.fromCoroutine(client.request(method, b"/x", [], body))

    async def answered(self, *pieces: bytes, method: bytes = b"GET") -> tuple[StreamingClient, Wire, Any]:
        """The client, the backend and the answer, or the error, to a request that is answered by C{pieces}."""
        backend = self.backend()
        client = self.client(backend)
        asked = self.get(client, method)
        there = await backend.connection()
        await there.until(b"\r\n\r\n")
        for piece in pieces:
            there.send(piece)
        try:
            return client, there, await asked
        except Unreachable as error:
            return client, there, error


class ConnectionTests(StreamingCase):
    """How connections are made, kept and ended."""

    async def test_kept(self) -> None:
        """A connection is used again when the answer before is through, and another is made while it is not."""
        backend = self.backend()
        client = self.client(backend)
        first, second = self.get(client), self.get(client)
        one, other = await backend.connection(), await backend.connection()
        self.assertEqual((client.idle, client.busy), (0, 2))
        for there in (one, other):
            there.send(OK)
        for asked in (first, second):
            self.assertEqual(await (await asked).collect(10), b"ok")
        self.assertEqual((client.idle, client.busy), (2, 0))
        third = self.get(client)
        there = await self.whoever((one, other), 2)
        there.send(OK)
        await (await third).collect(10)
        self.assertEqual(len(backend.wires), 2)

    async def whoever(self, wires: tuple[Wire, ...], count: int) -> Wire:
        """Which of them has got so many requests."""
        while True:
            for wire in wires:
                if wire.data.count(b"GET /x ") >= count:
                    return wire
            turn: Deferred[None] = Deferred()
            reactor.callLater(0, turn.callback, None)
            await turn

    async def test_not_kept(self) -> None:
        """A connection is not used again when its other side, or what it sent, says so."""
        for answer in (
            OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"),
            OK.replace(b"1.1", b"1.0"),
            OK + b"more",
        ):
            client, there, got = await self.answered(answer)
            self.assertEqual(await got.collect(10), b"ok")
            await there.end()
            self.assertEqual((client.idle, client.busy), (0, 0))

    async def test_unasked(self) -> None:
        """What comes on a connection that is kept is nobody's answer: it ends."""
        client, there, got = await self.answered(OK)
        await got.collect(10)
        there.send(OK)
        await there.end()
        self.assertEqual((client.idle, client.busy), (0, 0))

    async def test_stale(self) -> None:
        """A connection that ends just as it is used again does not fail what can be asked twice."""
        backend = self.backend()
        client = self.client(backend)
        for method, repeated in ((b"GET", True), (b"POST", False)):
            asked = self.get(client)
            there = await backend.connection()
            there.send(OK)
            await (await asked).collect(10)
            there.data.clear()
            again = self.get(client, method)
            await there.until(b"\r\n\r\n")
            there.kill()
            if not repeated:
                error = await self.assertFailure(again, Unreachable)
                self.assertIn("connection reset by peer", str(error))
                continue
            anew = await backend.connection()
            await anew.until(b"\r\n\r\n")
            anew.send(OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
            self.assertEqual(await (await again).collect(10), b"ok")

    async def test_closed_before_the_answer(self) -> None:
        """On a new connection that is an error at once."""
        backend = self.backend()
        asked = self.get(self.client(backend))
        (await backend.connection()).close()
        self.assertEqual(str(await self.assertFailure(asked, Unreachable)), "EOF")
        self.assertEqual(len(backend.wires), 1)

    async def test_lost_meanwhile(self) -> None:
        """Nothing is sent on a connection that is gone."""
        client, there, got = await self.answered(OK)
        await got.collect(10)
        (connection,) = client._open
        there.kill()
        await there.end()
        while client._open:
            turn: Deferred[None] = Deferred()
            reactor.callLater(0, turn.callback, None)
            await turn
        await self.assertFailure(connection.exchange(b"GET", b"/", [], None, None, False), Unreachable)

    async def test_refused(self) -> None:
        """Where nobody listens the text is Go's."""
        backend = self.backend()
        client = self.client(backend)
        port = backend.port
        await backend.stop()
        error = await self.assertFailure(self.get(client), Unreachable)
        self.assertEqual(str(error), f"dial tcp 127.0.0.1:{port}: connect: connection refused")
        self.assertEqual(client.busy, 0)

    async def test_guarded(self) -> None:
        """SECURITY, CVE-2020-8562: the address that was checked is dialled; those of this machine are not allowed."""
        backend = self.backend()
        client = self.client(backend, guarded=True)
        error = await self.assertFailure(self.get(client), AddressNotAllowed)
        self.assertEqual(str(error), f"dial tcp 127.0.0.1:{backend.port}: address not allowed")
        self.assertEqual(backend.wires, [])
        self.outgoing.diversions[("10.0.0.7", 80)] = ("127.0.0.1", backend.port)
        asked = self.get(self.client(backend, url="http://10.0.0.7", guarded=True))
        there = await backend.connection()
        self.assertIn(b"host: 10.0.0.7\r\n", await there.until(b"\r\n\r\n"))
        asked.cancel()
        await self.assertFailure(asked, CancelledError)

    async def test_moved(self) -> None:
        """A service that has moved is not asked where it was, even though there is a connection."""
        old, new = self.backend(), self.backend()
        places = [("127.0.0.1", old.port), ("127.0.0.1", new.port)]
        client = self.client(old, dial=lambda: places.pop(0))
        for backend in (old, new):
            asked = self.get(client)
            (await backend.connection()).send(OK)
            self.assertEqual(await (await asked).collect(10), b"ok")
        self.assertEqual(client.idle, 2)

    async def test_cancelled(self) -> None:
        """Who waits no longer for an answer ends the connection with it."""
        backend = self.backend()
        client = self.client(backend)
        asked = self.get(client)
        there = await backend.connection()
        await there.until(b"\r\n\r\n")
        asked.cancel()
        await self.assertFailure(asked, CancelledError)
        await there.end()
        self.assertEqual((client.idle, client.busy), (0, 0))

    async def test_close(self) -> None:
        """Closed, a client ends whatever is under way, and does nothing any more."""
        backend = self.backend()
        client = self.client(backend)
        asked = self.get(client)
        there = await backend.connection()
        await there.until(b"\r\n\r\n")
        closing = client.close()
        await self.assertFailure(asked, Unreachable)
        await closing
        await there.end()
        self.assertEqual((client.idle, client.busy), (0, 0))
        self.assertEqual(str(await self.assertFailure(self.get(client), Unreachable)), "context canceled")

    async def test_retire(self) -> None:
        """Retired, a client finishes what is under way first."""
        backend = self.backend()
        client = self.client(backend)
        asked = self.get(client)
        there = await backend.connection()
        await there.until(b"\r\n\r\n")
        client.retire()
        there.send(OK)
        self.assertEqual(await (await asked).collect(10), b"ok")
        await there.end()
        await self.assertFailure(self.get(client), Unreachable)

    async def test_idle(self) -> None:
        """Connections that are not used are closed after a while."""
        client, there, got = await self.answered(OK)
        await got.collect(10)
        self.assertEqual(client.idle, 1)
        (sweep,) = [call for call in reactor.getDelayedCalls() if call.func == client._close_idle]
        client._kept[0].idle_since -= IDLE
        sweep.reset(0)
        await there.end()
        self.assertEqual((client.idle, client.busy), (0, 0))

    def test_bad_settings(self) -> None:
        """What can not be called is told when the client is made."""
        for url in ("ftp://x", "https://", "http://x:99999999", "nonsense", "http://[127.0.0.1:80]:443", "http://[x"):
            self.assertRaises(BadSettings, self.outgoing.stream_client, CallSettings(url=url))

    async def test_odd_request(self) -> None:
        """SECURITY, twisted#12754: nothing that breaks a head apart is sent."""
        backend = self.backend()
        client = self.client(backend)
        for target, fields in (
            (b"/x HTTP/1.1\r\nA: b", []),
            (b"/x", [(b"a", b"b\r\nc: d")]),
            (b"/x", [(b"a", b"b\n")]),
            (b"/x", [(b"a\r", b"b")]),
            (b"/x", [(b"a", b"\0")]),
        ):
            asked = Deferred.fromCoroutine(client.request(b"GET", target, fields))
            self.assertIn("invalid header", str(await self.assertFailure(asked, Unreachable)))
            self.assertEqual(await (await backend.connection()).end(), b"")


class TLSTests(StreamingCase):
    """Who is trusted, and what is shown."""

    async def tls_answer(self, backend: Backend, **settings: Any) -> bytes:
        """What is answered over TLS."""
        asked = self.get(self.client(backend, **settings))
        asked.addErrback(lambda failure: failure)
        waiting = backend.connection()
        waiting.addCallback(lambda there: there.when(lambda: there.data or there.lost))
        waiting.addCallbacks(lambda _: backend.wires[-1].send(OK), lambda _: None)
        answer = await asked
        return await answer.collect(10)

    async def test_trusted(self) -> None:
        """A certificate of the right authority for the right name is good; for another name, with that name."""
        self.assertEqual(await self.tls_answer(self.backend(tls=True)), b"ok")
        elsewhere = self.backend(tls=True, names=("a.b.svc",))
        self.assertEqual(await self.tls_answer(elsewhere, server_name="a.b.svc"), b"ok")

    async def test_not_trusted(self) -> None:
        """Other certificates are not."""
        for backend, settings, text in (
            (self.backend(tls=True), {"ca": Backend(reactor, tls=True).ca}, "signed by unknown authority"),
            (self.backend(tls=True, names=("a.b.svc",)), {}, "cannot validate certificate for 127.0.0.1"),
            (self.backend(tls=True), {"server_name": "c.d.svc"}, "certificate is"),
        ):
            client = self.client(backend, **settings)
            error = await self.assertFailure(self.get(client), Unreachable)
            self.assertIn("tls: failed to verify certificate: x509: ", str(error))
            self.assertIn(text, str(error))
            self.assertEqual(client.busy, 0)

    async def test_insecure(self) -> None:
        """Where any certificate will do, any will."""
        backend = self.backend(tls=True, names=("other",))
        self.assertEqual(await self.tls_answer(backend, ca=b"", insecure=True), b"ok")

    async def test_client_certificate(self) -> None:
        """The client shows its certificate to whoever asks."""
        backend = self.backend(tls=True, require_client=True)
        pair = backend.client_pair("front-proxy")
        self.assertEqual(await self.tls_answer(backend, certificate=pair.certificate, key=pair.key), b"ok")

    async def test_no_handshake(self) -> None:
        """Somebody who takes connections and does not shake hands is given up in time."""
        backend = self.backend()
        asked = self.get(self.client(backend, url=backend.url.replace("http:", "https:"), patience=0.05))
        there = await backend.connection()
        self.assertEqual(str(await self.assertFailure(asked, Unreachable)), "net/http: TLS handshake timeout")
        await there.end()

    async def test_no_tls(self) -> None:
        """Somebody who speaks plain HTTP is told so."""
        backend = self.backend()
        asked = self.get(self.client(backend, url=backend.url.replace("http:", "https:")))
        (await backend.connection()).send(OK)
        error = await self.assertFailure(asked, Unreachable)
        self.assertEqual(str(error), "http: server gave HTTP response to HTTPS client")

    async def test_truncated(self) -> None:
        """An answer until the end of the connection is whole only when TLS says goodbye."""
        for end, whole in (("close", True), ("kill", False)):
            backend = self.backend(tls=True)
            asked = self.get(self.client(backend))
            there = await backend.connection()
            await there.until(b"\r\n\r\n")
            there.send(b"HTTP/1.1 200 OK\r\n\r\nall")
            answer = await asked
            sink = Sink()
            done = answer.deliver(sink)
            if end == "kill":
                # The plain connection ends below TLS.
                there.transport.transport.loseConnection()
            else:
                there.close()
            if whole:
                await done
            else:
                await self.assertFailure(done, Unreachable)
            self.assertEqual(sink.data, b"all")


class AnswerTests(StreamingCase):
    """What is taken for an answer; SECURITY, smuggling: what could be read in two ways is none."""

    async def test_malformed(self) -> None:
        """What is no answer, or one that two readers could understand differently, is an error."""
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
            client, there, error = await self.answered(answer)
            self.assertIsInstance(error, Unreachable, answer)
            self.assertTrue(str(error).startswith(BROKEN), error)
            await there.end()
            self.assertEqual((client.idle, client.busy), (0, 0))

    async def test_oversized_head(self) -> None:
        """A head without an end is given up when it is too large."""
        for size in (MAX_HEAD, MAX_HEAD + 1000):
            _, there, error = await self.answered(b"HTTP/1.1 200 OK\r\nA: " + b"b" * size)
            self.assertIn("server response headers exceeded", str(error))
            await there.end()

    async def test_endless_interim(self) -> None:
        """Interim answers are read over, but not without end."""
        interim = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
        _, _, got = await self.answered(interim * 5 + OK)
        self.assertEqual(await got.collect(10), b"ok")
        _, there, error = await self.answered(interim * 6 + OK)
        self.assertEqual(str(error), f"{BROKEN}too many 1xx informational responses")
        await there.end()

    async def test_lengths(self) -> None:
        """A body has the length that its head says, or ends with a chunk of none, or with the connection."""
        for answer, method, body in (
            (OK, b"GET", b"ok"),
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n1\r\no\r\n1;a=b\r\nk\r\n0\r\n\r\n", b"GET", b"ok"),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", b"HEAD", b""),
            (b"HTTP/1.1 204 No Content\r\n\r\n", b"GET", b""),
            (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 1000\r\n\r\n", b"GET", b""),
        ):
            client, _, got = await self.answered(answer, method=method)
            self.assertEqual(await got.collect(10), body)
            self.assertEqual((client.idle, client.busy), (1, 0))

    async def test_truncated(self) -> None:
        """A body that ends too early is an error, after what has come of it."""
        for answer in (
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nbody",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nbody",
        ):
            client, there, got = await self.answered(answer)
            sink = Sink()
            done = got.deliver(sink)
            there.close()
            self.assertEqual(str(await self.assertFailure(done, Unreachable)), "unexpected EOF")
            self.assertEqual(sink.data, b"body")
            self.assertIsNone(sink.producer)
            self.assertEqual((client.idle, client.busy), (0, 0))

    async def test_malformed_chunks(self) -> None:
        """Chunks that are none are an error."""
        for chunk in (b"x\r\n", b"-1\r\n", b"4\r\nbodyno", b"1" * 5000):
            _, there, got = await self.answered(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            done = got.deliver(Sink())
            there.send(chunk)
            self.assertEqual(str(await self.assertFailure(done, Unreachable)), "malformed chunked encoding")
            await there.end()

    async def test_too_long(self) -> None:
        """Who collects a body says how long it may be."""
        _, there, got = await self.answered(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + b"x" * 500)
        collecting = Deferred.fromCoroutine(got.collect(100))
        self.assertEqual(str(await self.assertFailure(collecting, Unreachable)), "the answer is longer than 100 bytes")
        await there.end()

    async def test_paced(self) -> None:
        """A consumer that has enough is given nothing until it wants more."""
        client, there, got = await self.answered(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\none")
        sink = Sink()
        done = got.deliver(sink)
        self.assertEqual(sink.data, b"one")
        (connection,) = client._open
        sink.producer.pauseProducing()
        self.assertTrue(connection._paused)
        there.send(b"two")
        sink.producer.resumeProducing()
        self.assertFalse(connection._paused)
        await done
        self.assertEqual(sink.data, b"onetwo")

    async def test_unwanted(self) -> None:
        """An answer that nobody wants ends its connection; one that is there whole does not."""
        for stop in (lambda answer, sink: answer.abort(), lambda answer, sink: sink.producer.stopProducing()):
            _, there, got = await self.answered(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\none")
            sink = Sink()
            got.deliver(sink).addErrback(lambda _: None)
            stop(got, sink)
            await there.end()
        client, _, got = await self.answered(OK)
        got.abort()
        self.assertEqual(client.idle, 1)


class UploadTests(StreamingCase):
    """Bodies of requests."""

    async def test_small(self) -> None:
        """A body that is there is sent with its length; requests that could have one say so when they have none."""
        backend = self.backend()
        client = self.client(backend)
        for method, body, line in (
            (b"POST", b"hello", b"\r\ncontent-length: 5\r\n"),
            (b"POST", None, b"\r\ncontent-length: 0\r\n"),
            (b"DELETE", b"", b"DELETE "),
        ):
            asked = self.get(client, method, body)
            there = backend.wires[0] if backend.wires else await backend.connection()
            head = await there.until(b"\r\n\r\n")
            self.assertIn(line, head)
            self.assertEqual(b"length" in head, method == b"POST")
            self.assertEqual(await there.take(len(body or b"")), body or b"")
            there.send(OK)
            await (await asked).collect(10)

    async def test_wrong_length(self) -> None:
        """A body that is shorter, or longer, than announced does not leave the connection to be misunderstood."""
        for written in (b"abc", b"abcdefgh"):
            backend = self.backend()
            flow = Flow(None)  # type: ignore[arg-type]
            flow.received(written)
            flow.finish()
            asked = self.get(self.client(backend), b"POST", Upload(5, flow.deliver))
            await self.assertFailure(asked, Unreachable)
            self.assertNotIn(b"f", (await (await backend.connection()).end()).partition(b"\r\n\r\n")[2])

    async def test_broken(self) -> None:
        """A body that breaks off breaks the connection off, and has no end there."""
        backend = self.backend()
        client = self.client(backend)
        source = StringTransport()
        source.read_on = source.read_no_further = lambda: None  # type: ignore[attr-defined]
        flow = Flow(source)  # type: ignore[arg-type]
        asked = self.get(client, b"POST", Upload(None, flow.deliver))
        there = await backend.connection()
        flow.received(b"abc")
        await there.until(b"3\r\nabc\r\n")
        flow.stopProducing()
        self.assertEqual(await there.end(), b"")
        await self.assertFailure(asked, Unreachable)
        self.assertEqual((client.idle, client.busy), (0, 0))


class HeadTests(SynchronousTestCase):
    """Heads alone."""

    @given(data=st.binary(max_size=200) | st.text("HTP/1. 2043OK:\r\n\tab", max_size=60).map(str.encode))
    def test_any(self, data: bytes) -> None:
        """Whatever comes is a head or an error; of a head nothing could be taken for the end of a line."""
        for head_data in (data, b"HTTP/1.1 200 OK\r\n" + data):
            try:
                head = parse_head(head_data)
                body_length(head, b"GET")
            except BadHead:
                continue
            for name, value in head.fields:
                self.assertTrue(name)
                for odd in b"\r\n\0":
                    self.assertNotIn(odd, name + value)
