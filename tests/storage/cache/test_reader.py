"""Tests for L{kubetwist.storage.cache.reader}."""

from __future__ import annotations

from kubetwist.api.storage import Write
from kubetwist.storage.cache.metrics import CacheMetrics
from kubetwist.storage.cache.reader import RecordReader
from kubetwist.storage.errors import CorruptObjectError, KeyNotFound, RevisionCompacted

from .watchcache.cachecase import (
    PREFIX,
    CacheCase,
    decode,
    labelled,
)


class RecordReaderTests(CacheCase):
    """Records that are read from a store in pages of three."""

    def setUp(self) -> None:
        """Store seven objects of a resource, and one of another."""
        super().setUp()
        self.cache.stop()
        self.revisions = [self.put(f"a/{number}", odd=str(number % 2)) for number in range(7)]
        self.successResultOf(self.storage.commit([Write("/registry/podsecurity/a", b"{}", 0)]))
        self.metrics = CacheMetrics()
        self.reader = RecordReader(self.storage, PREFIX, decode, self.clock, 3, self.metrics)

    def break_one(self) -> None:
        """Store a value that cannot be decoded."""
        self.successResultOf(self.storage.commit([Write(f"{PREFIX}a/5", b"[]", None)]))

    def test_load(self) -> None:
        """All records below the prefix are read, page by page, at one revision."""
        table, revision, unreadable = self.successResultOf(self.reader.load())
        (records,) = table.batches("")
        self.assertEqual([record.key for record in records], [f"a/{number}" for number in range(7)])
        self.assertEqual([record.revision for record in records], self.revisions)
        self.assertEqual((revision, unreadable), (self.revisions[-1] + 1, {}))
        self.assertEqual(self.metrics.requests["list"].count, 3)
        metrics = self.metrics
        self.assertEqual((metrics.stored_lists, metrics.stored_fetched), (1, 7))
        self.assertEqual((metrics.stored_evaluated, metrics.stored_returned), (7, 7))

    def test_unreadable(self) -> None:
        """A value that cannot be decoded is loaded as an error under its key, and is counted; lists with it fail."""
        self.break_one()
        table, _, unreadable = self.successResultOf(self.reader.load())
        self.assertEqual((len(table), list(unreadable), self.metrics.unreadable), (6, ["a/5"], 1))
        self.assertEqual(self.failureResultOf(self.reader.list(), CorruptObjectError).value.key, f"{PREFIX}a/5")
        self.assertEqual(len(self.successResultOf(self.reader.list(limit=2)).records), 2)

    def test_read(self) -> None:
        """One record is read by its key below the prefix."""
        self.assertEqual(self.successResultOf(self.reader.read("a/3")).revision, self.revisions[3])
        self.failureResultOf(self.reader.read("a/9"), KeyNotFound)

    def test_list(self) -> None:
        """
        A list has the state of its revision, at most as many records as its limit, and counts the visited records.
        """
        self.delete("a/1")
        listing = self.successResultOf(
            self.reader.list("a/", match=labelled(odd="1"), limit=2, revision=self.revisions[-1])
        )
        self.assertEqual([record.key for record in listing.records], ["a/1", "a/3"])
        self.assertEqual((listing.revision, listing.next_key, listing.cached), (self.revisions[-1], "a/3", False))
        metrics = self.metrics
        self.assertEqual((metrics.stored_lists, metrics.stored_evaluated, metrics.stored_returned), (1, 4, 2))
        newest = self.successResultOf(self.reader.list("a/", start_after="a/3"))
        self.assertEqual([record.key for record in newest.records], ["a/4", "a/5", "a/6"])

    def test_compacted(self) -> None:
        """A revision that the store has compacted cannot be listed."""
        self.delete("a/1")
        self.successResultOf(self.storage.compact(self.revisions[-1] + 1))
        self.failureResultOf(self.reader.list(revision=self.revisions[-1]), RevisionCompacted)
        self.assertEqual(self.metrics.failures, {"list": 1})
