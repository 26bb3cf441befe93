"""Tests for L{kubetwist.registry.generic.allocation}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.generic.allocation import NOTHING, AllocationConflict
from kubetwist.storage.errors import RevisionConflict


class HoldTests(SynchronousTestCase):
    """Tests for what objects take of something shared."""

    def test_nothing(self) -> None:
        """Most kinds take nothing: nothing more is written, and nothing is changed in the object."""
        self.assertEqual(NOTHING.writes(), ())
        obj = {"a": 1}
        NOTHING.undo(obj)
        NOTHING.commit()
        NOTHING.cancel()
        self.assertEqual(obj, {"a": 1})

    def test_repeated(self) -> None:
        """A write that lost what it was to take begins again like one that lost its revision."""
        self.assertIsInstance(AllocationConflict("/k", 3), RevisionConflict)
