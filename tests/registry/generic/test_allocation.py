"""Tests of L{kubetwist.registry.generic.allocation}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.generic.allocation import NOTHING, AllocationConflict
from kubetwist.storage.errors import RevisionConflict


class AllocationTests(SynchronousTestCase):
    """Tests of L{Allocation}."""

    def test_no_allocation(self) -> None:
        """The default allocation adds no writes and does not modify the object."""
        self.assertEqual(NOTHING.writes(), ())
        obj = {"a": 1}
        NOTHING.undo(obj)
        NOTHING.commit()
        NOTHING.cancel()
        self.assertEqual(obj, {"a": 1})

    def test_repeated(self) -> None:
        """AllocationConflict is a RevisionConflict, so that the write is retried."""
        self.assertIsInstance(AllocationConflict("/k", 3), RevisionConflict)
