"""Tests for L{kubetwist.cel.lexer}."""

from __future__ import annotations

from tests.cel.operands import OPERAND
from tests.cel.support import CelTestCase


class TokenTests(CelTestCase):
    """Tests for L{tokenize}."""

    def test_comments_and_blanks(self) -> None:
        """Blanks, line breaks and comments between tokens are ignored."""
        self.assertValues({"1 // one\n\t+\r\n 2 // two": 3})

    def test_reserved(self) -> None:
        """Reserved words are not identifiers, but may be fields."""
        self.assertRefused(
            {
                "while": "1:1: reserved identifier: while",
                "1 + if(2)": "1:5: reserved identifier: if",
                "in": f"1:1: Syntax error: mismatched input 'in' expecting {OPERAND}",
            }
        )
        self.assertEqual(self.evaluate("any.package", any={"package": 1}), 1)

    def test_fields_in_backquotes(self) -> None:
        """As in kube-apiserver, escaped field names in backquotes are not supported."""
        self.assertRefused({"any.`dash-ed`": "1:5: unsupported syntax: '`'"})
