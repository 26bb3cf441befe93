"""Tests for L{kubetwist.api.patterns}."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api import patterns
from kubetwist.api.patterns import PatternError, compile_pattern


class PatternTests(SynchronousTestCase):
    """Tests for L{compile_pattern}."""

    def test_search(self) -> None:
        """A match is found anywhere; groups that do not participate have no text."""
        match = compile_pattern("a(b)|a(c)").search("xxac")
        assert match is not None
        self.assertEqual((match.group(), match.groups(), match.start(), match.end()), ("ac", (None, "c"), 2, 4))
        self.assertIsNone(compile_pattern("^a$").search("b"))

    def test_errors(self) -> None:
        """An invalid expression is rejected with Go's message."""
        for pattern, message in (
            ("(", "missing closing ): `(`"),
            ("[a", "missing closing ]: `[a`"),
            ("*", "missing argument to repetition operator: `*`"),
            ("a{2000}", "invalid repeat count: `{2000}`"),
            ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
            ("\\", "trailing backslash at end of expression: `\\`"),
        ):
            error = self.assertRaises(PatternError, compile_pattern, pattern)
            self.assertEqual(str(error), f"error parsing regexp: {message}")

    def test_too_large(self) -> None:
        """An expression that needs too much memory is rejected."""
        error = self.assertRaises(PatternError, compile_pattern, "((a{100}){100}){10}")
        self.assertIn("error parsing regexp", str(error))

    def test_remembered(self) -> None:
        """Short expressions are cached, long ones are not."""
        self.assertIs(compile_pattern("[a-z]+remembered"), compile_pattern("[a-z]+remembered"))
        before = patterns._cached.cache_info().currsize
        compile_pattern("x" * 513)
        self.assertEqual(patterns._cached.cache_info().currsize, before)

    @given(st.text(alphabet="ab(|)[]*+?{}^$\\1,-", max_size=12), st.text("ab", max_size=5))
    def test_any_text(self, pattern: str, text: str) -> None:
        """Any text is an expression, or is rejected with one type of error."""
        try:
            result = compile_pattern(pattern).search(text)
        except PatternError as error:
            self.assertIn("error parsing regexp: ", str(error))
        else:
            self.assertTrue(result is None or text[result.start() : result.end()] == result.group())
