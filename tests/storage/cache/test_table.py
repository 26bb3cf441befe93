"""Tests for L{kubetwist.storage.cache._table}."""

from __future__ import annotations

import gc

from hypothesis import given, settings
from hypothesis import strategies as st

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.record import (
    Draft,
    Record,
    RecordBlock,
)
from kubetwist.storage.cache import _table as recordtable
from kubetwist.storage.cache._table import RecordTable
from kubetwist.storage.cache.blocks import FormBudget, FormCache

_keys = st.sampled_from([f"{namespace}/{name}" for namespace in ("a", "a-b", "b") for name in "uvwxyz"])
_prefixes = st.sampled_from(["", "a/", "a-b/", "b/", "c/"])


def record(key: str, revision: int = 1) -> Record:
    """Return a record without content."""
    return Record.from_draft(key, revision, Draft(b'{"metadata":{"name":"x"}}', {}, {}))


class RecordTableTests(SynchronousTestCase):
    """Tests for L{RecordTable}."""

    def setUp(self) -> None:
        """Set a small chunk size, so that chunks split and vanish."""
        self.patch(recordtable, "CHUNK", 2)

    @settings(max_examples=100, deadline=None)
    @given(
        start=st.sets(_keys),
        changes=st.lists(st.tuples(_keys, st.booleans())),
        prefix=_prefixes,
        after=st.one_of(st.just(""), _keys),
    )
    def test_model(self, start: set[str], changes: list[tuple[str, bool]], prefix: str, after: str) -> None:
        """A table has the same content as a dictionary, and returns any range of it in order."""
        model = {key: record(key) for key in start}
        table = RecordTable(model.values())
        for revision, (key, keep) in enumerate(changes):
            if keep:
                new = record(key, revision)
                self.assertIs(table.put(new), model.get(key))
                model[key] = new
            else:
                self.assertIs(table.remove(key), model.pop(key, None))
        expected = [model[key] for key in sorted(model) if key.startswith(prefix) and key > after]
        batches = list(table.batches(prefix, after))
        self.assertEqual([one for batch in batches for one in batch], expected)
        self.assertNotIn([], batches)
        blocks = table.blocks(prefix, after, FormCache(Clock(), FormBudget()))
        self.assertEqual([one for block in blocks for one in block.records], expected)
        self.assertEqual(table.count(prefix, after), len(expected))
        self.assertEqual(len(table), len(model))
        for key in (*model, "c/none"):
            self.assertIs(table.get(key), model.get(key))

    def test_extend(self) -> None:
        """Records in key order are appended, to the last chunk first."""
        keys = [f"a/{number}" for number in range(9)]
        table = RecordTable()
        for first, last in ((0, 1), (1, 1), (1, 6), (6, 9)):
            table.extend([record(key) for key in keys[first:last]])
        self.assertEqual([one.key for batch in table.batches("") for one in batch], keys)
        self.assertEqual([len(batch) for batch in table.batches("")], [2, 2, 2, 2, 1])
        self.assertEqual(table.count("", "a/3"), 5)

    def test_garbage_collection(self) -> None:
        """The garbage collector visits no part of a table that grows with its records."""
        table = RecordTable([record("a/1")])
        for number in range(2, 9):
            table.put(record(f"a/{number}"))
        table.extend([record("b/1")])
        table.remove("a/2")
        parts = (table._by_key, *table._keys, *table._records)
        self.assertEqual([], [part for part in parts if gc.is_tracked(part)])

    @settings(max_examples=100, deadline=None)
    @given(start=st.sets(_keys), changes=st.lists(st.tuples(_keys, st.booleans())))
    def test_forms(self, start: set[str], changes: list[tuple[str, bool]]) -> None:
        """A block is kept until one of its records changes; a block that was returned before has the former ones."""
        table = RecordTable(map(record, sorted(start)))
        forms = FormCache(Clock(), FormBudget())
        returned: list[tuple[RecordBlock, list[Record]]] = []
        for revision, (key, keep) in enumerate(changes):
            for block in table.blocks("", "", forms):
                records = list(block.records)
                returned.append((block, records))
                block.admits("form", 1)
                block.keep("form", records, 1)
            before = [block.get("form") for block in table.blocks("", "", forms)]
            changed = table.put(record(key, revision)) if keep else table.remove(key)
            after = [block.get("form") for block in table.blocks("", "", forms)]
            if changed is not None or keep:
                self.assertLessEqual(sum(form is None for form in after), 2)
                self.assertLess(len([form for form in after if form is not None]), max(len(before), 1))
            else:
                self.assertEqual(after, before)
            for block in table.blocks("", "", forms):
                self.assertIn(block.get("form"), (None, block.records))
        for block, records in returned:
            self.assertEqual(block.records, records)

    def test_lists_are_the_callers(self) -> None:
        """Changes of returned lists do not affect the table, nor the reverse."""
        table = RecordTable([record("a/x"), record("a/y")])
        (batch,) = table.batches("")
        batch.clear()
        self.assertEqual(table.count(""), 2)
        (batch,) = table.batches("")
        table.put(record("a/a"))
        self.assertEqual(len(batch), 2)

    def test_after_the_end(self) -> None:
        """After the last record of a prefix nothing is returned, even if other records follow."""
        table = RecordTable([record(key) for key in ("a/1", "b/1", "b/2", "b/3", "b/4", "b/5")])
        self.assertEqual((list(table.batches("a/", "b/2")), table.count("a/", "b/2")), ([], 0))
        self.assertEqual((list(table.batches("a/", "c")), table.count("a/", "c")), ([], 0))
        self.assertEqual((list(table.batches("c/")), table.count("c/")), ([], 0))
