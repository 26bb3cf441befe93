"""Tests for L{kubetwist.storage._sortedkeys}."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.storage import _sortedkeys
from kubetwist.storage._sortedkeys import SortedKeys

_keys = st.text("abc", max_size=3)


class SortedKeysTests(SynchronousTestCase):
    """Tests for L{SortedKeys}."""

    def setUp(self) -> None:
        """Set a small chunk size, so that chunks split and vanish."""
        self.patch(_sortedkeys, "CHUNK", 2)

    @settings(max_examples=200, deadline=None)
    @given(
        first=st.sets(_keys, max_size=12),
        changes=st.lists(st.tuples(_keys, st.booleans()), max_size=40),
        start=_keys,
        end=_keys,
    )
    def test_model(self, first: set[str], changes: list[tuple[str, bool]], start: str, end: str) -> None:
        """The content equals a set of the same keys, and any range is yielded in order."""
        keys, model = SortedKeys(first), set(first)
        for key, present in changes:
            if present:
                keys.add(key)
                model.add(key)
            else:
                keys.discard(key)
                model.discard(key)
        self.assertEqual(sorted(model), list(keys.between("", "d")))
        self.assertEqual(sorted(key for key in model if start <= key < end), list(keys.between(start, end)))
