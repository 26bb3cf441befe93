"""Tests for L{kubetwist.api.go.quote}."""

from __future__ import annotations

import ast

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.go.quote import (
    quoted,
    quoted_char,
    unicode_number,
)


class QuoteTests(SynchronousTestCase):
    """Tests for the quoting of strings."""

    def test_quoted(self) -> None:
        """Printable characters are kept, other characters are escaped."""
        for text, shown in {
            "plain": '"plain"',
            'a"\\b': '"a\\"\\\\b"',
            "\n\t\x01\x7f": '"\\n\\t\\x01\\x7f"',
            "é名": '"é名"',
            "\u0085\u200b\ufeff": '"\\u0085\\u200b\\ufeff"',
            "\U000e0001": '"\\U000e0001"',
            "<&>'": '"<&>\'"',
        }.items():
            self.assertEqual(quoted(text), shown)

    def test_characters(self) -> None:
        """Single characters are shown in single quotes, or by their numbers."""
        self.assertEqual([quoted_char(one) for one in "a'\"\n"], ["'a'", "'\\''", "'\"'", "'\\n'"])
        self.assertEqual([unicode_number(one) for one in "A\n"], ["U+0041 'A'", "U+000A"])

    @given(st.text(st.characters(exclude_categories=("Cs",))))
    def test_round_trip(self, text: str) -> None:
        """A quoted string can be parsed; Python has the same escapes."""
        self.assertEqual(ast.literal_eval(quoted(text)), text)
