"""Tests of L{kubetwist.http.fields}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.http.fields import NO_LINES, FieldLines


class FieldLinesTests(SynchronousTestCase):
    """L{FieldLines}."""

    def test_lines(self) -> None:
        """Each field is one line."""
        fields = FieldLines([(b"A", b"1"), (b"B", b"2")])
        self.assertEqual((fields.pairs, fields.lines), (((b"A", b"1"), (b"B", b"2")), b"A: 1\r\nB: 2\r\n"))

    def test_none(self) -> None:
        """Without fields there are no lines."""
        self.assertEqual((NO_LINES.pairs, NO_LINES.lines), ((), b""))
