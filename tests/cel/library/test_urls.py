"""Tests for L{kubetwist.cel.library.urls}."""

from __future__ import annotations

from hypothesis import given
from hypothesis.strategies import text

from tests.cel.library.support import ExpressionTestCase


class URLTests(ExpressionTestCase):
    """Tests for URLs."""

    def test_accessors(self) -> None:
        """The accessors of a URL return its components, and empty strings for missing ones."""
        self.assertHolds(
            (
                "url('https://example.com:80/path').getScheme() == 'https' && url('/path').getScheme() == ''",
                "url('https://[::1]:80/').getHost() == '[::1]:80' && url('https://[::1]:80/').getHostname() == '::1'",
                "url('https://example.com/').getPort() == '' && url('https://example.com:80/').getPort() == '80'",
                "url('https://example.com/with space/').getEscapedPath() == '/with%20space/'",
                "url('https://example.com').getEscapedPath() == '' && url('/path').getHost() == ''",
                "url('https://e.com/?k1=a&k2=b&k2=c#f').getQuery() == {'k1': ['a'], 'k2': ['b', 'c']}",
                "url('https://e.com/?a b=c%20d').getQuery() == {'a b': ['c d']} && url('/?').getQuery() == {}",
                "isURL('https://user:pass@example.com:80/path?query=val#fragment') && isURL('/absolute-path')",
                "!isURL('https://a:b:c/') && !isURL('../relative-path') && !isURL('')",
                "url('https://a/b') == url('HTTPS://a/b') && url('/a') != url('/b')",
            )
        )
        self.assertFails(
            {
                "url('../relative')": 'URL parse error during conversion from string: parse "../relative": '
                "invalid URI for request",
                "url('https://a:b/')": 'URL parse error during conversion from string: parse "https://a:b/": '
                'invalid port ":b" after host',
            }
        )

    @given(text(max_size=20))
    def test_any_text(self, one: str) -> None:
        """All accessors succeed for every valid URL."""
        self.assertHolds(("isURL(x) ? (url(x).getHost() + url(x).getEscapedPath()).size() >= 0 : true",), x=one)

    def test_costs(self) -> None:
        """Parsing costs a tenth of the length, an accessor 1."""
        self.assertCosts(
            {"url('https://example.com/')": 2, "isURL('https://example.com/')": 1, "url('/').getHost()": 2}
        )
