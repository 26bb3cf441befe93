"""Tests of L{kubetwist.http.http1.requesthead}."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.http.headsyntax import MAX_FIELDS, MAX_HEAD, Malformed
from kubetwist.http.http1.requesthead import MAX_LINE, HeadParser
from kubetwist.http.request import KubeRequest

from ..harness import Client, RefusalCase, make_site

LINES = (b"GET / HTTP/1.1", b"GET /a HTTP/1.0", b"GET  / HTTP/1.1", b"POST /b HTTP/1.1")
FIELDS = (b"", b"Host: x", b"Host: x\r\nAccept: a\r\nAccept: b", b"Host", b"Accept: a", b"Host: x\r\nA: " + b"a" * 2000)


class ParsingTests(SynchronousTestCase):
    """Parsed heads."""

    def test_parsed(self) -> None:
        """A head is parsed into method, target, version and fields by name in lower case."""
        head = b"PUT /a?b=%20 HTTP/1.1\r\nHost: x\r\nAccept: a\r\nACCEPT: b"
        fields = {b"host": [b"x"], b"accept": [b"a", b"b"]}
        parsed = (b"PUT", b"/a?b=%20", b"HTTP/1.1", fields)
        self.assertEqual(HeadParser().parse(head), parsed)
        self.assertEqual(HeadParser().parse(b"\r\n" + head), parsed)

    @given(st.lists(st.tuples(st.sampled_from(LINES), st.sampled_from(FIELDS)), max_size=8))
    def test_connection(self, heads: list[tuple[bytes, bytes]]) -> None:
        """The heads of a connection are parsed independently of the earlier ones, and of changes to their results."""

        def parse(parser: HeadParser, head: bytes) -> object:
            try:
                return parser.parse(head)
            except Malformed as error:
                return error.code, str(error)

        parser = HeadParser()
        for line, fields in heads:
            head = b"\r\n".join(part for part in (line, fields) if part)
            parsed = parse(parser, head)
            self.assertEqual(parsed, parse(HeadParser(), head))
            changed = parsed[-1]  # type: ignore[index]
            if isinstance(changed, dict):
                for values in changed.values():
                    values.clear()
                changed.clear()

    def test_header_names_and_values(self) -> None:
        """Header names are case-insensitive, values are trimmed, and the first of several is used."""
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

    def test_absolute_target(self) -> None:
        """A target in absolute form is served by its path."""
        client = Client(make_site())
        self.assertEqual(client.request("GET", "https://somewhere/a/b").body, b"GET /a/b ")
        self.assertEqual(client.request("GET", "https://somewhere").body, b"GET / ")


class RefusalTests(RefusalCase):
    """Refused heads."""

    def test_malformed(self) -> None:
        """Heads that violate the grammar of HTTP are answered with 400."""
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
        """A refusal has the reference's text."""
        client = Client(make_site())
        self.assertEqual(client.request("GET", "/%zz").body, b"400 Bad Request")

    def test_host(self) -> None:
        """HTTP/1.1 requires exactly one Host, HTTP/1.0 accepts at most one."""
        self.assertEqual(self.refused(b"GET / HTTP/1.0\r\nHost: x\r\nHost: y\r\n\r\n"), 400)
        self.assertEqual(self.refused(b"GET / HTTP/1.1\r\n\r\n"), 400)
        self.assertEqual(self.refused(b"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n"), 400)

    def test_malformed_host(self) -> None:
        """A Host with bytes that are invalid in hosts is 400; an empty one and addresses are accepted."""
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
        """A body whose length is ambiguous is refused."""
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
        """HTTP/2 without TLS is refused."""
        self.assertEqual(self.refused(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9)), 505)

    def test_long_line(self) -> None:
        """A URL over the limit is 414, even if it never ends."""
        line = b"GET /" + b"a" * MAX_LINE
        self.assertEqual(self.refused(line), 414)
        self.assertEqual(self.refused(line + b" HTTP/1.1\r\nHost: x\r\n\r\n"), 414)

    def test_url_within_limit(self) -> None:
        """A URL just below the limit is served."""
        client = Client(make_site())
        self.assertEqual(client.request("GET", "/" + "a" * (MAX_LINE - 20)).code, 200)

    def test_large_head(self) -> None:
        """Headers over the limit are 431, even if they never end."""
        head = b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"a" * MAX_HEAD
        self.assertEqual(self.refused(head), 431)
        self.assertEqual(self.refused(head + b"\r\n\r\n"), 431)

    def test_many_headers(self) -> None:
        """More than MAX_FIELDS headers are 431."""
        self.assertEqual(self.refused(b"GET / HTTP/1.1\r\nHost: x\r\n" + b"A: b\r\n" * MAX_FIELDS + b"\r\n"), 431)
