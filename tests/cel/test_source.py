"""Tests for L{kubetwist.cel.source}."""

from __future__ import annotations

from kubetwist.cel.errors import CompileErrors
from tests.cel.support import CelTestCase


class DisplayTests(CelTestCase):
    """Tests for the format of errors."""

    def test_display(self) -> None:
        """Errors contain the line and a marker, in the order of the text; wide characters shift the marker."""
        error = self.assertRaises(CompileErrors, self.compile, "nosuch +\n\t'é' + other")
        self.assertEqual(
            str(error),
            "ERROR: <input>:1:1: undeclared reference to 'nosuch' (in container '')\n"
            " | nosuch +\n"
            " | ^\n"
            "ERROR: <input>:2:8: undeclared reference to 'other' (in container '')\n"
            " |  'é' + other\n"
            " | ..．....^",
        )
        self.assertEqual([(issue.line, issue.column) for issue in error.issues], [(1, 0), (2, 7)])


class SizeTests(CelTestCase):
    """Tests for the size limit."""

    def test_size(self) -> None:
        """The number of code points is limited."""
        self.assertRefused(
            {"1" + " " * 100_000: "-1:0: expression code point size exceeds limit: size: 100001, limit 100000"}
        )
        self.assertEqual(self.evaluate("1" + " " * 99_999), 1)
