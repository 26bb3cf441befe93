"""Tests for L{kubetwist.api.go.url}."""

from __future__ import annotations

from hypothesis import given
from hypothesis.strategies import text

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.go.url import (
    URLError,
    parse_request_uri,
    parse_url,
)


class ParseTests(SynchronousTestCase):
    """Tests for L{parse_url}."""

    def test_parts(self) -> None:
        """Every component of a URL is parsed, without its punctuation."""
        url = parse_url("HTTPS://me:pa%3Ass@example.com:8443/a%2fb/c%20d?x=1&y=%26&x=2#top")
        self.assertEqual(url.scheme, "https")
        self.assertEqual(url.user, ("me", "pa:ss"))
        self.assertEqual((url.host, url.hostname, url.port), ("example.com:8443", "example.com", "8443"))
        self.assertEqual((url.path, url.escaped_path), (b"/a/b/c d", "/a%2fb/c%20d"))
        self.assertEqual(url.query(), {"x": ["1", "2"], "y": ["&"]})
        self.assertEqual(url.fragment, b"top")

    def test_addresses(self) -> None:
        """An IPv6 host has brackets, which are not part of the hostname, and a zone after an escaped percent sign."""
        url = parse_url("http://[fe80::1%25en0]:80/")
        self.assertEqual((url.host, url.hostname, url.port), ("[fe80::1%en0]:80", "fe80::1%en0", "80"))

    def test_round_trip(self) -> None:
        """A parsed URL is formatted as before, except for characters that must be escaped."""
        for text_, written in {
            "https://example.com/path with spaces/": "https://example.com/path%20with%20spaces/",
            "file:///etc/hosts": "file:///etc/hosts",
            "file:/etc/hosts": "file:/etc/hosts",
            "mailto:a@example.com": "mailto:a@example.com",
            "/only/a?path": "/only/a?path",
            "https://example.com?": "https://example.com?",
            "http://a@b@c/": "http://a%40b@c/",
            "*": "*",
        }.items():
            self.assertEqual(str(parse_url(text_)), written)

    def test_malformed_query(self) -> None:
        """Malformed pairs are ignored, and the rest is kept."""
        self.assertEqual(parse_url("/?a=1&b=%zz&c;d=2&&e+f=g+h").query(), {"a": ["1"], "e f": ["g h"]})

    def test_problems(self) -> None:
        """An invalid URL is rejected with Go's message."""
        for bad, reason in {
            "": "empty url",
            "relative/path": "invalid URI for request",
            "../up": "invalid URI for request",
            "\x01": "net/url: invalid control character in URL",
            ":nothing": "missing protocol scheme",
            "https://a:b:c/": 'invalid port ":b:c" after host',
            "https://a:80:80/": 'invalid port ":80:80" after host',
            "https://a:x/": 'invalid port ":x" after host',
            "http://[::1/": "missing ']' in host",
            "http://x[::1]/": "invalid IP-literal",
            "http://[1.2.3.4]/": "invalid IP-literal",
            "http://[::g]/": 'invalid host: ParseAddr("::g"): each colon-separated field must have at least one digit '
            '(at "g")',
            "http://h|st/": 'invalid character "|" in host name',
            "http://%41/": 'invalid URL escape "%41"',
            "http://host/%zz": 'invalid URL escape "%zz"',
            "http://host/%2": 'invalid URL escape "%2"',
            "http://a b@c/": "net/url: invalid userinfo",
        }.items():
            shown = bad.replace("\x01", "\\x01")
            with self.assertRaises(URLError) as raised:
                parse_request_uri(bad)
            self.assertEqual(str(raised.exception), f'parse "{shown}": {reason}')

    def test_relative(self) -> None:
        """A reference may be relative if it has no colon that looks like the end of a scheme."""
        self.assertEqual(parse_url("../up").escaped_path, "../up")
        self.assertRaises(URLError, parse_url, "a_b:c/d")

    @given(text())
    def test_any_text(self, anything: str) -> None:
        """Any text is a URL or raises L{URLError}; a formatted URL can be parsed."""
        try:
            url = parse_url(anything)
        except URLError:
            return
        again = parse_url(str(url)) if url.scheme else url
        self.assertEqual((again.scheme, again.opaque), (url.scheme, url.opaque))
        url.query()
