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
        self.assertIs(one.labels["app"], other.labels["app"])
        self.assertIs(one.namespace, other.namespace)
        self.assertIs(without.labels, NO_LABELS)

    def test_bounded(self) -> None:
        """At most MAX_INTERNED_STRINGS strings are kept, and equal strings are shared again afterwards."""
        self.patch(sharedtexts, "_texts", {})
        self.patch(sharedtexts, "MAX_INTERNED_STRINGS", 10)
        for number in range(100):
            intern_strings(Record(f"a/{number}", 1, b"", {f"k{number}": f"v{number}"}, {}))
            self.assertLess(len(sharedtexts._texts), 15)
        one, other = (intern_strings(Record(f"a/{at}", 1, b"", {"app": "-".join("xy")}, {})) for at in range(2))
        self.assertIs(one.labels["app"], other.labels["app"])
