"""Tests of L{kubetwist.client.http2.heads}."""

from __future__ import annotations

from hpack import Decoder
from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.client.http2.heads import InvalidRequest, parse_response_head, request_block
from kubetwist.client.responsehead import MAX_FIELDS, MAX_HEAD, InvalidHead


class RequestTests(SynchronousTestCase):
    """Header blocks of requests."""

    def decoded(self, *args: object) -> list[tuple[str, str]]:
        """Encode and decode a head."""
        return [tuple(field) for field in Decoder().decode(request_block(*args))]  # type: ignore[arg-type]

    def test_fields(self) -> None:
        """Names are in lower case, Host becomes the authority, and fields of a connection are left out."""
        fields = [
            (b"Accept", b" text/plain "),
            (b"Host", b"x:1"),
            (b"Connection", b"x"),
            (b"Keep-Alive", b"1"),
            (b"Proxy-Connection", b"x"),
            (b"Transfer-Encoding", b"chunked"),
            (b"Upgrade", b"x"),
            (b"TE", b"gzip"),
            (b"X-Remote-User", b"a"),
            (b"x-remote-group", b"g"),
            (b"x-remote-group", b"h"),
        ]
        self.assertEqual(
            self.decoded(b"GET", b"/a?b", fields, None),
            [
                (":authority", "x:1"),
                (":method", "GET"),
                (":scheme", "https"),
                (":path", "/a?b"),
                ("accept", "text/plain"),
                ("x-remote-user", "a"),
                ("x-remote-group", "g"),
                ("x-remote-group", "h"),
            ],
        )

    def test_length(self) -> None:
        """The length of the body is sent if it is known."""
        self.assertIn(("content-length", "7"), self.decoded(b"POST", b"/", [], 7))
        self.assertIn((":method", "PATCH"), self.decoded(b"PATCH", b"/", [], None))

    def test_secrets(self) -> None:
        """Secrets are encoded so that proxies do not keep them in tables."""
        (field,) = [
            field
            for field in Decoder().decode(request_block(b"GET", b"/", [(b"Authorization", b"Bearer x")], None))
            if field[0] == "authorization"
        ]
        self.assertFalse(field.indexable)

    def test_forbidden(self) -> None:
        """SECURITY: texts that would end a field or a line are refused."""
        for bad in (b"a\r\nb: c", b"a\n", b"a\rb", b"\0"):
            for method, target, name, value in (
                (b"G" + bad, b"/", b"a", b"b"),
                (b"GET", b"/" + bad, b"a", b"b"),
                (b"GET", b"/", bad, b"b"),
                (b"GET", b"/", b"a", bad),
            ):
                self.assertRaises(InvalidRequest, request_block, method, target, [(name, value)], None)
        self.assertRaises(InvalidRequest, request_block, b"GET", b"/a b", [], None)

    @given(
        st.lists(
            st.tuples(
                st.from_regex(rb"[a-z-]{1,200}", fullmatch=True), st.from_regex(rb"[!-~]{1,300}", fullmatch=True)
            ),
            max_size=20,
        )
    )
    def test_any(self, fields: list[tuple[bytes, bytes]]) -> None:
        """Other decoders read what is encoded."""
        fields = [(b"x-" + name, value.strip()) for name, value in fields]
        decoded = self.decoded(b"GET", b"/", fields, None)
        self.assertEqual(decoded[3:], [(name.decode(), value.decode()) for name, value in fields])


class ResponseTests(SynchronousTestCase):
    """Heads of responses."""

    def test_head(self) -> None:
        """Status and fields are returned; the version counts as HTTP/1.1."""
        head = parse_response_head([(b":status", b"404"), (b"a", b"1 "), (b"a", b"2")])
        self.assertEqual((head.minor, head.code, head.fields), (1, 404, [(b"a", b"1"), (b"a", b"2")]))

    def test_malformed(self) -> None:
        """SECURITY: heads that HTTP/1.1 could not have, or that it would read differently, are malformed."""
        status = (b":status", b"200")
        for header_list in (
            [],
            [(b"a", b"b")],
            [status, status],
            [(b"a", b"b"), status],
            [(b":path", b"/")],
            [status, (b":path", b"/")],
            [(b":status", b"20")],
            [(b":status", b"0200")],
            [(b":status", b"+20")],
            [(b":status", b"")],
            [status, (b"Upper", b"x")],
            [status, (b"a b", b"x")],
            [status, (b"", b"x")],
            [status, (b"connection", b"close")],
            [status, (b"transfer-encoding", b"chunked")],
            [status, (b"upgrade", b"x")],
            [status, (b"keep-alive", b"x")],
            [status, (b"a", b"b\r\nc: d")],
            [status, (b"a", b"b\0")],
            [status] + [(b"a", b"")] * MAX_FIELDS,
            [status, (b"a", b"x" * MAX_HEAD)],
        ):
            self.assertRaises(InvalidHead, parse_response_head, header_list)
