"""Tests for L{kubetwist.api.changes}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.changes import ReadOnlyChange


class ReadOnlyChangeTests(SynchronousTestCase):
    """Tests for L{ReadOnlyChange}."""

    def test_call(self) -> None:
        """It returns the new object for the current one, or for none."""
        change = ReadOnlyChange(lambda obj: {"was": obj})
        self.assertEqual((change({"a": 1}), change(None)), ({"was": {"a": 1}}, {"was": None}))
