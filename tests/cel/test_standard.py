"""Tests for L{kubetwist.cel.standard}."""

from __future__ import annotations

from tests.cel.support import CelTestCase


class StandardLibraryTests(CelTestCase):
    """Tests for L{kubetwist.cel.standard}."""

    def test_sizes(self) -> None:
        """The size of a string is its number of code points, the size of bytes their number."""
        self.assertValues(
            {"size('é😀')": 2, "b'é'.size()": 2, "ints.size()": 3, "size(counts)": 2, "size(any.list)": 3}
        )

    def test_texts(self) -> None:
        """Strings are searched for substrings and for regular expressions of RE2."""
        self.assertValues(
            {
                "s.contains('ex')": True,
                "s.startsWith('te') && s.endsWith('xt')": True,
                "s.matches('^t.*t$')": True,
                "matches(s, 'ex')": True,
                "s.matches(s + '$')": True,
            }
        )
        self.assertFails({"s.matches(s + '(')": "error parsing regexp: missing closing ): `text(`"})
