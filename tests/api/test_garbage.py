"""Tests for L{kubetwist.api.garbage}."""

from __future__ import annotations

import gc
import weakref
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.garbage import untrack
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
