"""Tests of L{kubetwist.http.request}, with a transport that is not HTTP/1.1."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from OpenSSL.crypto import X509

from twisted.internet.address import IPv4Address
from twisted.internet.interfaces import IProducer, IProtocol
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.errors import APIStatusError
from kubetwist.http.connection.flow import RawTransport
from kubetwist.http.request import Handler, KubeRequest, Transport
from kubetwist.http.site import KubeSite

from .harness import echo


class Stream:
    """A fake transport that receives header fields and data separately; a L{Transport}."""

    def __init__(self, site: KubeSite) -> None:
        self.site = site
        self.remembered: dict[object, Any] = {}
        self.calls: list[str] = []
        self.status = 0
        self.fields: dict[bytes, list[bytes]] = {}
        self.data = b""
        self.room = True

    def getPeer(self) -> IPv4Address:
        """Return the address of the client."""
        return IPv4Address("TCP", "192.0.2.1", 50000)

    def getHost(self) -> IPv4Address:
        """Return the address of the server."""
        return IPv4Address("TCP", "192.0.2.2", 6443)

    def peer_certificates(self) -> list[X509]:
        """Return no certificate."""
        return []

    def collect(self, request: KubeRequest) -> bool:
        """Deliver the body if there is room."""
        if self.room:
            request.body_arrived(b"late")
        return self.room

    def _begin(self, request: KubeRequest, content_type: bytes = b"", length: int | None = None) -> None:
        self.status = request.code
        self.fields = dict(request.complete_fields(content_type, length).getAllRawHeaders())

    def send_response(self, request: KubeRequest, body: bytes, content_type: bytes) -> None:
        """Record a whole response."""
        self.calls.append("response")
        self._begin(request, content_type, len(body))
        self.data += body

    def send_piece(self, request: KubeRequest, data: bytes) -> None:
        """Record a piece."""
        if not request.startedWriting:
            request.startedWriting = 1
            self._begin(request)
        self.data += data

    def end_response(self, request: KubeRequest) -> None:
        """Record the end of the response."""
        self.calls.append("end")

    def truncate_response(self, request: KubeRequest) -> None:
        """Record the truncation."""
        self.calls.append("cut")

    def switch_protocol(
        self, request: KubeRequest, fields: Iterable[tuple[bytes, bytes]], protocol: IProtocol
    ) -> RawTransport:
        """Fail: streams do not switch."""
        raise NotImplementedError

    def prioritize(self, urgent: bool) -> None:
        """Record the priority."""
        self.calls.append("urgent" if urgent else "not urgent")

    def registerProducer(self, producer: IProducer, streaming: bool) -> None:
        """Record the producer."""
        self.calls.append("producer")

    def unregisterProducer(self) -> None:
        """Record the end of the producer."""
        self.calls.append("no producer")

    def requestDone(self, request: KubeRequest) -> None:
        """Record the end of the request."""
        self.calls.append("done")

    def disable_keep_alive(self) -> None:
        """Record that keep-alive is disabled."""
        self.calls.append("last")

    def loseConnection(self) -> None:
        """Record the close."""
        self.calls.append("close")

    def abort(self) -> None:
        """Record the abort."""
        self.calls.append("abort")


class TransportTests(SynchronousTestCase):
    """L{KubeRequest} with a fake transport."""

    def serve(self, handler: Handler, prepare: Callable[[KubeRequest], object] = lambda request: None) -> Stream:
        """Answer a request with a handler."""
        self.site = KubeSite(handler, Clock())
        self.stream = Stream(self.site)
        transport: Transport = self.stream
        request = KubeRequest(transport, b"GET", b"/a?b=c", b"HTTP/2", {b"accept": [b"*/*"]})
        prepare(request)
        request.serve(b"body")
        return self.stream

    def test_whole(self) -> None:
        """A whole response is one call, with the status and all header fields."""

        def prepare(request: KubeRequest) -> None:
            request.audit_id = "some-id"
            request.cache_control = b"no-cache, private"

        stream = self.serve(echo, prepare)
        self.assertEqual((stream.status, stream.data, stream.calls), (200, b"GET /a body", ["response", "done"]))
        self.assertEqual(stream.fields[b"Audit-Id"], [b"some-id"])
        self.assertEqual(stream.fields[b"Cache-Control"], [b"no-cache, private"])
        self.assertEqual(stream.fields[b"Content-Length"], [b"11"])
        self.assertEqual(stream.fields[b"Date"], [self.site.date])
        self.assertNotIn(b"Connection", stream.fields)
        self.assertEqual(self.site.open_requests, set())

    def test_pieces(self) -> None:
        """The request does not frame pieces of a response."""

        def handler(request: KubeRequest) -> None:
            request.setHeader(b"Content-Type", b"text/plain")
            request.write(b"one")
            request.write(b"two")
            request.finish()

        stream = self.serve(handler)
        self.assertEqual((stream.status, stream.data, stream.calls), (200, b"onetwo", ["end", "done"]))
        self.assertNotIn(b"Transfer-Encoding", stream.fields)

    def test_truncated(self) -> None:
        """A truncated response unregisters its producer first."""

        def handler(request: KubeRequest) -> None:
            request.write(b"one")
            request.registerProducer(object(), True)  # type: ignore[arg-type]
            request.truncate_response()

        self.assertEqual(self.serve(handler).calls, ["producer", "no producer", "cut"])

    def test_error(self) -> None:
        """The site answers errors, in the media type that the client accepts."""
        stream = self.serve(lambda request: request.fail(APIStatusError.unauthorized()))
        self.assertEqual((stream.status, stream.fields[b"Content-Type"]), (401, [b"application/json"]))

    def test_priority(self) -> None:
        """A request that sends first has priority until its end."""

        def handler(request: KubeRequest) -> None:
            request.send_first(lambda: None)
            request.finish()

        self.assertEqual(self.serve(handler).calls, ["urgent", "end", "not urgent", "done"])

    def test_late_body(self) -> None:
        """A body that has not arrived is requested from the transport."""

        def prepare(request: KubeRequest) -> None:
            request.body_pending = True

        stream = self.serve(lambda request: request.collect_body(echo), prepare)
        self.assertEqual(stream.data, b"GET /a late")

    def test_no_room(self) -> None:
        """A request is answered with 429 if there is no room for its body."""

        def handler(request: KubeRequest) -> None:
            request.body_pending = True
            self.stream.room = False
            request.collect_body(echo)

        self.assertEqual(self.serve(handler).status, 429)

    def test_addresses(self) -> None:
        """The addresses come from the transport."""
        seen: list[object] = []

        def handler(request: KubeRequest) -> None:
            seen.extend((request.client.host, request.host.port))  # type: ignore[attr-defined]

        self.serve(handler)
        self.assertEqual(seen, ["192.0.2.1", 6443])
