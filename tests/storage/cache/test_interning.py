"""Tests for L{kubetwist.storage.cache._interning}."""

from __future__ import annotations

import orjson

from kubetwist.api.record import (
    NO_LABELS,
    Record,
)
from kubetwist.storage.cache import _interning as sharedtexts
from kubetwist.storage.cache._interning import intern_strings

from .watchcache.cachecase import CacheCase


class SharingTests(CacheCase):
    """Interned strings of records."""

    def test_economy(self) -> None:
        """Equal labels of many records are one object."""
        for name in ("x", "y"):
            self.put(f"a/{name}", **orjson.loads(b'{"app":"frontend-of-the-shop"}'))
        self.put("a/z")
        one, other, without = self.cache.list().records
        self.assertIs(one.labels, other.labels)
        self.assertIs(one.namespace, other.namespace)
        self.assertIs(without.labels, NO_LABELS)

    def test_bounded(self) -> None:
        """At most MAX_INTERNED_STRINGS strings and MAX_INTERNED_LABELS labels are kept, and shared again afterwards."""
        self.patch(sharedtexts, "_texts", {})
        self.patch(sharedtexts, "_labels", {})
        self.patch(sharedtexts, "MAX_INTERNED_STRINGS", 10)
        self.patch(sharedtexts, "MAX_INTERNED_LABELS", 5)
        for number in range(100):
            intern_strings(Record(f"a/{number}", 1, b"", {f"k{number}": f"v{number}"}, {}))
            self.assertLess(len(sharedtexts._texts), 15)
            self.assertLessEqual(len(sharedtexts._labels), 5)
        one, other = (intern_strings(Record(f"a/{at}", 1, b"", {"app": "-".join("xy")}, {})) for at in range(2))
        self.assertIs(one.labels, other.labels)

    def test_order(self) -> None:
        """Equal labels in another order are equal, and keep their order."""
        orders = ({"app": "x", "tier": "y"}, {"tier": "y", "app": "x"})
        one, other = (intern_strings(Record("a/b", 1, b"", labels, {})) for labels in orders)
        self.assertEqual(one.labels, other.labels)
        self.assertEqual(["tier", "app"], list(other.labels))
