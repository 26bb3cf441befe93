"""The same requests over HTTP/1.1 and HTTP/2 get the same responses, with all filters."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.errors import APIStatusError
from kubetwist.http.request import KubeRequest
from kubetwist.http.responses import Body, respond_body, respond_error

from ..harness import Allow, echo, filtered_site
from ..harness import Client as Http1Client
from .client import LARGE_PARTS, Client

#: Fields that only HTTP/1.1 has.
CONNECTION_FIELDS = frozenset(("connection", "transfer-encoding", "keep-alive"))

#: Status, fields by name, and body.
Response = tuple[int, dict[str, list[str]], bytes]


def answer(request: KubeRequest) -> None:
    """Answer by the last segment of the path, in each way that handlers use."""
    last = request.path.rpartition(b"/")[2]
    if last == b"missing":
        respond_error(request, APIStatusError(404, "NotFound", 'things "missing" not found'))
    elif last == b"busy":
        respond_error(request, APIStatusError.too_many_requests("later", 7))
    elif last == b"empty":
        request.respond(204, b"", b"text/plain")
    elif last == b"fresh":
        request.setHeader(b"ETag", b'"tag"')
        request.respond(304, b"", b"text/plain")
    elif last == b"moved":
        request.setHeader(b"Location", b"/elsewhere")
        request.respond(301, b"", b"text/html")
    elif last == b"large":
        respond_body(request, 200, Body(LARGE_PARTS), b"text/plain")
    elif last == b"pieces":
        request.setHeader(b"Content-Type", b"application/json")
        for piece in (b"one\n", b"", b"two\n"):
            request.write(piece)
        request.finish()
    elif last == b"nothing":
        request.finish()
    elif last == b"warned":
        request.warn("this is old")
        request.warn('with "quotes"')
        echo(request)
    elif last == b"cookies":
        request.responseHeaders.setRawHeaders(b"Set-Cookie", [b"a=b", b"c=d"])
        echo(request)
    elif last == b"fields":
        lines = [b"%b: %b" % (name, b"|".join(values)) for name, values in sorted(request.fields.items())]
        request.respond(200, b"\n".join(lines), b"text/plain")
    elif last == b"identity":
        user = request.user
        request.respond(200, f"{user and user.name} {request.query} {request.uri!r}".encode(), b"text/plain")
    else:
        echo(request)


class EquivalenceTests(SynchronousTestCase):
    """HTTP/1.1 beside HTTP/2."""

    def setUp(self) -> None:
        """Create a site with all filters."""
        self.authorizer = Allow()
        self.authorizer.refused = {"deletecollection"}
        self.site = filtered_site(answer, clock=Clock(), authorizer=self.authorizer)
        self.addCleanup(self.site.stopFactory)

    def over_http1(self, method: str, path: str, body: bytes, fields: dict[str, str]) -> Response:
        """Send a request over HTTP/1.1."""
        result = Http1Client(self.site).request(method, path, body, **fields)
        headers = {name: values for name, values in result.headers.items() if name not in CONNECTION_FIELDS}
        return result.code, headers, result.body

    def over_http2(self, method: str, path: str, body: bytes, fields: dict[str, str]) -> Response:
        """Send a request over HTTP/2."""
        client = Client(self.site)
        client.opens_windows = 1
        sent: list[tuple[bytes, bytes]] = [
            (b":method", method.encode()),
            (b":scheme", b"https"),
            (b":authority", b"x"),
            (b":path", path.encode("latin-1")),
            *((name.lower().replace("_", "-").encode(), value.encode("latin-1")) for name, value in fields.items()),
        ]
        if body:
            sent.append((b"content-length", b"%d" % len(body)))
        stream = client.request(sent, body or None)
        self.assertTrue(stream.ended)
        (head,) = stream.heads
        headers: dict[str, list[str]] = {}
        for name, value in head[1:]:
            headers.setdefault(name.decode(), []).append(value.decode("latin-1"))
        assert stream.status is not None
        return stream.status, headers, bytes(stream.data)

    def assert_same(self, method: str, path: str, body: bytes = b"", **fields: str) -> Response:
        """Assert that a request gets the same response over both, and return it."""
        fields.setdefault("Audit_Id", "the-same-id")
        first, second = self.over_http1(method, path, body, fields), self.over_http2(method, path, body, fields)
        for _, headers, _ in (first, second):
            if first[0] in (204, 304) or method == "HEAD":
                headers.pop("content-length", None)
        self.assertEqual(first, second)
        return second

    def test_statuses(self) -> None:
        """Responses of all kinds are the same."""
        codes = {}
        names = [
            "echo",
            "missing",
            "busy",
            "empty",
            "fresh",
            "moved",
            "large",
            "pieces",
            "nothing",
            "warned",
            "cookies",
            "identity",
        ]
        for name in names:
            for method in ("GET", "HEAD", "POST"):
                codes[name] = self.assert_same(method, f"/api/v1/namespaces/ns/things/{name}?a=b&c=%20")[0]
        self.assertEqual([codes[name] for name in names[:6]], [200, 404, 429, 204, 304, 301])

    def test_bodies(self) -> None:
        """Bodies of all sizes, small ones and those that are read after authorization, arrive complete."""
        for size in (0, 1, 16_383, 16_384, 16_385):
            body = bytes(range(256)) * (size // 256 + 1)
            code, _, received = self.assert_same("POST", "/api/v1/namespaces/ns/things", body[:size])
            self.assertEqual((code, received), (200, b"POST /api/v1/namespaces/ns/things " + body[:size]))

    def test_fields(self) -> None:
        """Handlers see the same header fields."""
        _, _, body = self.assert_same("GET", "/version/fields", Accept="a/b;q=0.5, */*", User_Agent="kubectl", X_A="v")
        self.assertIn(b"host: x\n", body)
        self.assertNotIn(b":", [line.partition(b": ")[0] for line in body.splitlines()])

    def test_denied(self) -> None:
        """Denials and errors of filters are the same."""
        self.assertEqual(self.assert_same("DELETE", "/api/v1/namespaces/ns/things")[0], 403)
        self.assertEqual(self.assert_same("GET", "/api/v1/things?timeout=invalid")[0], 400)
        self.assertEqual(self.assert_same("GET", "/api/v1/things", Accept="application/yaml")[0], 200)

    @given(
        method=st.sampled_from(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"]),
        prefix=st.sampled_from(["/api/v1/namespaces/ns/things/", "/apis/g/v1/things/", "/", "/healthz/", "/a//b/../"]),
        last=st.one_of(
            st.sampled_from(["missing", "busy", "empty", "fresh", "moved", "pieces", "nothing", "warned", "fields"]),
            st.text("abc%2F0~!$&'()*+,;=:@\xe9", max_size=8),
        ),
        query=st.one_of(st.sampled_from([""]), st.text("ab=&%20+?/", max_size=10)),
        body=st.binary(max_size=100),
        accept=st.sampled_from(["*/*", "application/json", "application/yaml", "text/html", "nonsense", ""]),
        agent=st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=10).map(str.strip),
    )
    def test_any_request(
        self, method: str, prefix: str, last: str, query: str, body: bytes, accept: str, agent: str
    ) -> None:
        """Any request that HTTP/1.1 serves gets the same response over HTTP/2, and refused ones are refused."""
        path = prefix + last + (f"?{query}" if query else "")
        fields: dict[str, Any] = {"Audit_Id": "the-same-id", "Accept": accept, "User_Agent": agent}
        first = Http1Client(self.site)
        head = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items())
        first.send(
            f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n{head}\r\n".encode("latin-1") + body
        )
        if first.transport.disconnecting:
            second = Client(self.site).request(
                [(b":method", method.encode()), (b":scheme", b"https"), (b":path", path.encode("latin-1"))]
            )
            self.assertTrue(second.code is not None or second.status in (400, 431))
        else:
            self.assert_same(method, path, body, **fields)
