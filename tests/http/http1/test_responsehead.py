"""Tests of L{kubetwist.http.http1.responsehead}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase
from twisted.web.http_headers import Headers

from kubetwist.http.fields import FieldLines
from kubetwist.http.http1.responsehead import complete_head, encode_head, switching_head
from kubetwist.http.request import KubeRequest

from ..harness import Client, make_site


def fields_of(head: bytes) -> dict[bytes, bytes]:
    """Return the header fields in a head."""
    lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")[1:]
    return dict(line.split(b": ", 1) for line in lines)  # type: ignore[misc]


class HeadTests(SynchronousTestCase):
    """Heads of responses."""

    def setUp(self) -> None:
        """Create a request with the attributes that filters set."""
        channel: Any = Client(make_site()).channel
        self.request = KubeRequest(channel, b"GET", b"/a", b"HTTP/1.1", {})
        self.request.audit_id = "some-id"
        self.request.cache_control = b"no-cache, private"
        self.request.apf_headers = FieldLines([(b"X-Level", b"some")])

    def test_fast_path(self) -> None:
        """The fast path for responses without further fields produces the same fields."""
        plain = complete_head(self.request, 3, b"text/plain", False)
        self.request.setHeader(b"X-Other", b"more")
        other = complete_head(self.request, 3, b"text/plain", False)
        self.assertTrue(plain.startswith(b"HTTP/1.1 200 OK\r\n") and other.startswith(b"HTTP/1.1 200 OK\r\n"))
        self.assertEqual({**fields_of(plain), b"X-Other": b"more"}, fields_of(other))
        self.assertEqual(fields_of(plain)[b"X-Level"], b"some")

    def test_close(self) -> None:
        """The last response of a connection has C{Connection: close}."""
        self.assertNotIn(b"Connection", fields_of(complete_head(self.request, 3, b"text/plain", False)))
        self.assertEqual(fields_of(complete_head(self.request, 3, b"text/plain", True))[b"Connection"], b"close")

    def test_no_body(self) -> None:
        """A response without a body has no length."""
        self.request.code = 204
        self.assertNotIn(b"Content-Length", fields_of(complete_head(self.request, 0, b"", False)))

    def test_unknown_status(self) -> None:
        """A status code without a name is sent as unknown."""
        self.assertEqual(encode_head(799, Headers(), b"", False), b"HTTP/1.1 799 Unknown\r\n\r\n")

    def test_switching(self) -> None:
        """A response 101 names the protocol, and has the audit id if there is one."""
        head = switching_head([(b"upgrade", b"websocket")], "some-id")
        self.assertTrue(head.startswith(b"HTTP/1.1 101 Switching Protocols\r\n"))
        self.assertEqual(
            fields_of(head), {b"Upgrade": b"websocket", b"Connection": b"Upgrade", b"Audit-Id": b"some-id"}
        )
        self.assertNotIn(b"Audit-Id", fields_of(switching_head([], "")))
