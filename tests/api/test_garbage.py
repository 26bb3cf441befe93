"""Tests for L{kubetwist.api.garbage}."""

from __future__ import annotations

import gc
import weakref
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.garbage import SERVER_THRESHOLD, CollectionPause, keep_present_objects, untrack
from kubetwist.api.record import Record


class _Value:
    """An object that can be observed."""


class UntrackTests(SynchronousTestCase):
    """Tests for L{untrack}."""

    def test_not_visited(self) -> None:
        """The collector does not visit the object, and keeps what it refers to."""
        value: Any = _Value()
        observed, holder = weakref.ref(value), [value]
        untrack(holder)
        self.assertFalse(gc.is_tracked(holder))
        value.itself = value
        del value
        gc.collect()
        self.assertIsNotNone(observed())
        holder.clear()
        gc.collect()
        self.assertIsNone(observed())

    def test_freed(self) -> None:
        """The object is freed when the last reference to it ends."""
        value = _Value()
        observed, holder = weakref.ref(value), [value]
        del value
        untrack(holder)
        del holder
        self.assertIsNone(observed())

    def test_records(self) -> None:
        """Records are not visited, also with views."""
        record = Record("a/b", 1, b"{}", {}, {})
        self.assertFalse(gc.is_tracked(record))
        record.views = {len: [1]}
        gc.collect()
        self.assertEqual({len: [1]}, record.views)


class CollectionPauseTests(SynchronousTestCase):
    """Tests for L{CollectionPause}."""

    def setUp(self) -> None:
        """Begin as a new process."""
        self.patch(CollectionPause, "_ended", False)
        self.addCleanup(gc.unfreeze)
        self.addCleanup(gc.enable)
        gc.enable()
        gc.unfreeze()

    def test_first(self) -> None:
        """The first start in a process pauses collections, and makes the objects permanent at its end."""
        pause = CollectionPause()
        nested = CollectionPause()
        self.assertFalse(gc.isenabled())
        nested.end()
        self.assertFalse(gc.isenabled())
        pause.end()
        pause.end()
        self.assertTrue(gc.isenabled())
        self.assertGreater(gc.get_freeze_count(), 0)

    def test_later(self) -> None:
        """Later starts do not pause them."""
        CollectionPause().end()
        CollectionPause()
        self.assertTrue(gc.isenabled())

    def test_disabled(self) -> None:
        """Collections that the program has disabled remain disabled."""
        gc.disable()
        CollectionPause().end()
        self.assertFalse(gc.isenabled())


class ServerTests(SynchronousTestCase):
    """Tests for L{keep_present_objects}."""

    def setUp(self) -> None:
        """Restore the settings at the end."""
        self.addCleanup(gc.unfreeze)
        self.addCleanup(gc.set_threshold, *gc.get_threshold())

    def test_frozen(self) -> None:
        """Present objects are not visited any more; new ones are, and their cycles are freed."""
        value: Any = _Value()
        value.itself = value
        present = weakref.ref(value)
        keep_present_objects()
        del value
        later: Any = _Value()
        later.itself = later
        new = weakref.ref(later)
        del later
        gc.collect()
        self.assertIsNotNone(present())
        self.assertIsNone(new())

    def test_threshold(self) -> None:
        """Garbage is collected more seldom; the ratios of older generations stay."""
        before = gc.get_threshold()
        keep_present_objects()
        self.assertEqual((SERVER_THRESHOLD, *before[1:]), gc.get_threshold())
