"""Tests for L{kubetwist.api.query}."""

from __future__ import annotations

from urllib.parse import urlencode

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.query import parse_query

TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)


class QueryTests(SynchronousTestCase):
    """Tests for L{parse_query}."""

    def test_values(self) -> None:
        """Values are in the order of the query; empty values and names without a value count."""
        self.assertEqual(parse_query(b"a=1&b=&a=2&c&=d"), {"a": ["1", "2"], "b": [""], "c": [""], "": ["d"]})
        self.assertEqual(parse_query(b""), {})
        self.assertEqual(parse_query(b"a=b=c"), {"a": ["b=c"]})

    def test_ignored_pairs(self) -> None:
        """Pairs with a semicolon or an invalid escape are ignored, other pairs are kept."""
        for bad in (b"x=1;y=2", b"x=%", b"x=%1", b"x=%zz", b"x=%+1", b"x=%_1", b"%2=1"):
            self.assertEqual(parse_query(b"a=1&" + bad + b"&b=2"), {"a": ["1"], "b": ["2"]}, bad)

    def test_escapes(self) -> None:
        """Escapes and plus signs are decoded; invalid UTF-8 is replaced."""
        self.assertEqual(parse_query(b"a%3Db=c+d%20e%2b"), {"a=b": ["c d e+"]})
        self.assertEqual(parse_query(b"a=%ff"), {"a": ["\ufffd"]})

    @given(st.lists(st.tuples(TEXTS, TEXTS), max_size=5))
    def test_round_trip(self, pairs: list[tuple[str, str]]) -> None:
        """An encoded query is parsed to the same values."""
        expected: dict[str, list[str]] = {}
        for name, value in pairs:
            expected.setdefault(name, []).append(value)
        self.assertEqual(parse_query(urlencode(pairs).encode()), expected)
