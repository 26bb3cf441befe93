"""Tests for L{kubetwist.storage.cache._listing}."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.record import PlainBlock, Record
from kubetwist.storage.cache._listing import (
    collect_blocks,
    collect_page,
    count_fetched,
    rewind,
)
from kubetwist.storage.cache.metrics import CacheMetrics

KEYS = st.sets(st.sampled_from("abcdefghij"))


def record(key: str, revision: int = 1) -> Record:
    """Return a record with a key."""
    return Record(key, revision, b"", {}, {})


def batches(keys: str, size: int = 3) -> Iterator[list[Record]]:
    """Return records with some keys, in batches."""
    for start in range(0, len(keys), size):
        yield [record(key) for key in keys[start : start + size]]


def shown(result: list[Record]) -> str:
    """Return the keys of records."""
    return "".join(one.key for one in result)


class GatherTests(SynchronousTestCase):
    """Tests for L{collect_page}."""

    @given(st.integers(1, 8), st.integers(1, 4), st.sets(st.sampled_from("abcdefg")))
    def test_pages(self, limit: int, size: int, wanted: set[str]) -> None:
        """All pages together have every matching record once, in order, and no page exceeds its limit."""
        keys, result, after = "abcdefg", "", ""
        while True:
            rest = "".join(key for key in keys if key > after)
            page, full = collect_page(batches(rest, size), lambda one: one.key in wanted, limit)
            self.assertEqual(full, len(page) == limit)
            result += shown(page)
            if not full:
                break
            after = page[-1].key
        self.assertEqual(result, "".join(key for key in keys if key in wanted))

    def test_all(self) -> None:
        """Without a limit there is one page."""
        page, full = collect_page(batches("abcde"), None, 0)
        self.assertEqual((shown(page), full), ("abcde", False))

    @given(st.integers(0, 8), st.integers(1, 4))
    def test_blocks(self, limit: int, size: int) -> None:
        """Blocks have the same records as the page; the last one is cut at the limit."""
        page, blocks, full = collect_blocks(iter(PlainBlock(batch) for batch in batches("abcdefg", size)), limit)
        self.assertEqual((shown(page), full), ("abcdefg"[: limit or None], 0 < limit <= 7))
        self.assertEqual([one for block in blocks for one in block.records], page)


class UndoTests(SynchronousTestCase):
    """Tests for L{rewind}."""

    @given(KEYS, KEYS, KEYS, st.sampled_from(["", "c", "j"]), st.integers(1, 4))
    def test_former_state(self, now: set[str], before: set[str], touched: set[str], after: str, size: int) -> None:
        """Changed records are returned in their former state, whether they existed before, exist now, or both."""
        undone = {key: record(key, 0) if key in before else None for key in touched}
        kept = "".join(sorted(key for key in now if key > after))
        result = [one for batch in rewind(batches(kept, size), undone, after) for one in batch]
        expected = sorted(key for key in (now - touched) | (before & touched) if key > after)
        self.assertEqual([one.key for one in result], expected)
        self.assertEqual({one.key for one in result if one.revision == 0}, {key for key in expected if key in touched})

    def test_no_empty_batches(self) -> None:
        """A batch without remaining records is omitted."""
        result = list(rewind(batches("abcdef"), dict.fromkeys("abc"), ""))
        self.assertEqual([shown(batch) for batch in result], ["def"])


class CountTests(SynchronousTestCase):
    """Tests for L{count_fetched}."""

    def test_fetched(self) -> None:
        """Records are counted when they are consumed."""
        metrics = CacheMetrics()
        taken = count_fetched(batches("abcde"), metrics)
        next(taken)
        self.assertEqual(metrics.fetched, 3)
        self.assertEqual([shown(batch) for batch in taken], ["de"])
        self.assertEqual(metrics.fetched, 5)
