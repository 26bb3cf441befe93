"""Tests of L{kubetwist.registry.generic.allocation}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.generic.allocation import NO_ALLOCATION, AllocationConflict
from kubetwist.storage.errors import RevisionConflict


class AllocationTests(SynchronousTestCase):
    """Tests of L{Allocation}."""

    def test_no_allocation(self) -> None:
        """The default allocation adds no writes and does not modify the object."""
        self.assertEqual(NO_ALLOCATION.writes(), ())
        obj = {"a": 1}
        NO_ALLOCATION.undo(obj)
        NO_ALLOCATION.commit()
        NO_ALLOCATION.cancel()
        self.assertEqual(obj, {"a": 1})

    def test_repeated(self) -> None:
        """AllocationConflict is a RevisionConflict, so that the write is retried."""
        self.assertIsInstance(AllocationConflict("/k", 3), RevisionConflict)
