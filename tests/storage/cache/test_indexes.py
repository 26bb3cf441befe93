"""Tests for L{kubetwist.storage.cache.indexes}."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.record import Draft, Record
from kubetwist.storage.cache import _table as recordtable
from kubetwist.storage.cache import indexes as recordindexes
from kubetwist.storage.cache._table import RecordTable, SortedRecords
from kubetwist.storage.cache.indexes import MAX_INDEXES, UNUSED_TIMEOUT, Equality, Indexes

APP = Equality(True, "app", "x")


def record(key: str, app: str | None = None, node: str | None = None) -> Record:
    """Return a record with a label and a field."""
    labels = {} if app is None else {"app": app}
    fields = {} if node is None else {"spec.nodeName": node}
    return Record.from_draft(key, 1, Draft(b'{"metadata":{"name":"x"}}', labels, fields))


def keys(found: SortedRecords | None) -> list[str] | None:
    """Return the keys of the result of L{Indexes.find}."""
    return None if found is None else [one.key for batch in found.batches("") for one in batch]


_keys = st.sampled_from([f"{namespace}/{name}" for namespace in "ab" for name in "uvwxyz"])
_values = st.sampled_from([None, "", "x", "y"])
#: A change of a record, its removal, or an iteration of the reactor.
_steps = st.lists(
    st.one_of(st.tuples(_keys, _values, _values), st.tuples(_keys, st.sampled_from(["removed"]), st.none()), st.none()),
    max_size=30,
)


class IndexesTests(SynchronousTestCase):
    """L{Indexes}."""

    def setUp(self) -> None:
        """Index tables of any size, in small slices of small chunks."""
        self.patch(recordtable, "CHUNK", 2)
        self.patch(recordindexes, "MIN_INDEXED_RECORDS", 0)
        self.patch(recordindexes, "BUILD_SLICE", 3)
        self.clock = Clock()
        self.indexes = Indexes(self.clock)
        self.table = RecordTable([record(f"a/{number}", "xy"[number % 2], str(number)) for number in range(10)])

    def iterate(self) -> None:
        """Make the calls that are due, but not those that they schedule."""
        for call in self.clock.getDelayedCalls():
            if call.getTime() <= self.clock.seconds():
                function = call.func
                call.cancel()
                function()

    def find(self, *equalities: Equality) -> list[str] | None:
        """Return the keys that an index has."""
        return keys(self.indexes.find(self.table, equalities))

    def build(self, *equalities: Equality) -> list[str] | None:
        """Build an index, and return the keys that it has."""
        for _ in range(2):
            self.find(*equalities)
        self.clock.advance(0)
        return self.find(*equalities)

    @settings(max_examples=150, deadline=None)
    @given(start=st.dictionaries(_keys, st.tuples(_values, _values)), before=_steps, after=_steps)
    def test_model(self, start: dict[str, Any], before: list[Any], after: list[Any]) -> None:
        """Indexes have the same records as a search of the table after changes while they are built and later."""
        self.setUp()
        self.table = RecordTable(record(key, *values) for key, values in start.items())
        state: dict[str, tuple[str | None, str | None]] = dict(start)
        for equality in (APP, Equality(False, "spec.nodeName", "")):
            for _ in range(2):
                self.find(equality)
        for steps in (before, after):
            for step in steps:
                if step is None:
                    self.iterate()
                elif step[1] == "removed":
                    self.table.remove(step[0])
                    state.pop(step[0], None)
                else:
                    self.table.put(record(*step))
                    state[step[0]] = step[1:]
            if steps is before:
                self.clock.advance(0)
        for value in ("", "x", "y", "z"):
            self.assertEqual(
                self.find(Equality(True, "app", value)), sorted(key for key, (app, _) in state.items() if app == value)
            )
            self.assertEqual(
                self.find(Equality(False, "spec.nodeName", value)),
                sorted(key for key, (_, node) in state.items() if (node or "") == value),
            )

    def test_second_use(self) -> None:
        """The second use of a label builds its index in slices; until then there is none."""
        self.assertIsNone(self.find(APP))
        self.assertIsNone(self.find(Equality(False, "app", "x")))
        self.clock.advance(0)
        self.assertIsNone(self.find(Equality(True, "app", "y")))
        for _ in range(3):
            self.assertIsNone(self.find(APP))
            self.iterate()
        self.assertEqual(self.find(APP), ["a/0", "a/2", "a/4", "a/6", "a/8"])
        self.assertEqual(self.find(Equality(True, "app", "z")), [])

    def test_small(self) -> None:
        """A small table has no index."""
        self.patch(recordindexes, "MIN_INDEXED_RECORDS", 11)
        self.assertIsNone(self.build(APP))
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_smallest(self) -> None:
        """Of several indexes the one with the fewest records is used; another one is built if all have many."""
        node = Equality(False, "spec.nodeName", "4")
        self.assertEqual(self.build(APP, node), ["a/0", "a/2", "a/4", "a/6", "a/8"])
        self.assertEqual(self.build(APP, node), ["a/4"])
        self.assertEqual(self.build(Equality(True, "more", "x"), node), ["a/4"])
        self.assertIsNone(self.find(Equality(True, "more", "x")))

    def test_too_large(self) -> None:
        """An index that exceeds its maximum size is not used."""
        self.patch(recordindexes, "MAX_INDEX_BYTES", 1000)
        self.assertIsNone(self.build(APP))
        self.table.put(record("a/3", "x"))
        self.table.remove("a/4")
        self.assertIsNone(self.build(APP))

    def test_unused(self) -> None:
        """An index is dropped when no list has used it for some time."""
        self.build(APP)
        for _ in range(3):
            self.clock.advance(UNUSED_TIMEOUT)
            self.assertIsNotNone(self.find(APP))
        self.clock.pump([UNUSED_TIMEOUT] * 2)
        self.assertEqual((self.table.observers, self.clock.getDelayedCalls()), ((), []))
        self.assertIsNone(self.find(APP))

    def test_many(self) -> None:
        """The number of indexes is bounded; a new one replaces one that is not in use."""
        for number in range(MAX_INDEXES):
            self.build(Equality(True, f"label{number}", "x"))
        self.clock.advance(UNUSED_TIMEOUT)
        for number in range(MAX_INDEXES):
            if number != 3:
                self.assertEqual(self.find(Equality(True, f"label{number}", "x")), [])
        self.assertIsNotNone(self.build(APP))
        self.assertEqual(len(self.table.observers), MAX_INDEXES)
        self.assertIsNone(self.find(Equality(True, "label3", "x")))
        self.assertIsNotNone(self.build(Equality(True, "label3", "x")))
        self.assertIsNone(self.find(Equality(True, "label0", "x")))

    def test_other_table(self) -> None:
        """A table that replaces another one gets new indexes."""
        self.build(APP)
        former = self.table
        self.table = RecordTable([record("b/1", "x")])
        self.assertIsNone(self.find(APP))
        self.assertEqual(former.observers, ())
        self.assertEqual(self.build(APP), ["b/1"])

    def test_stop(self) -> None:
        """After the stop there are no indexes and no timers."""
        self.build(APP)
        for _ in range(2):
            self.find(Equality(True, "more", "x"))
        self.indexes.stop()
        self.assertIsNone(self.build(APP))
        self.assertEqual((self.table.observers, self.clock.getDelayedCalls()), ((), []))
