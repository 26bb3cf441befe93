"""Tests of L{kubetwist.http.warnings}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.http.warnings import Warnings


class WarningsTests(SynchronousTestCase):
    """L{Warnings}."""

    def test_total(self) -> None:
        """All warnings are truncated when their total length exceeds the limit."""
        warnings = Warnings()
        texts = [str(number) * 1000 for number in range(1, 6)]
        for text in texts[:4]:
            warnings.add(text)
        self.assertEqual([len(value) for value in warnings.values], [1008] * 4)
        warnings.add(texts[4])
        self.assertEqual([len(value) for value in warnings.values], [264] * 5)

    def test_bounded(self) -> None:
        """The total size of many warnings is limited."""
        warnings = Warnings()
        for number in range(10000):
            warnings.add(f"warning {number} " + "x" * 300)
        self.assertLess(sum(map(len, warnings.values)), 5000)

    def test_unsendable(self) -> None:
        """Empty texts and texts that no header can contain are dropped."""
        warnings = Warnings()
        for text in ("", "a\nb", "a\x00", "a\x85b"):
            warnings.add(text)
        warnings.add("fine", agent="two words")
        warnings.add("ünïcode")
        self.assertEqual(warnings.values, ['299 - "ünïcode"'.encode()])
