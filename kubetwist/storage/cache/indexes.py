"""
Indexes of a cache for selectors with equalities: the records with each value of one label, or of one selectable field.

An index is built when a second list uses its label or field, in slices. It follows the changes of the table until no
list has used it for some time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from twisted.internet.interfaces import IDelayedCall

from ...api.record import Record
from .._expiry import Timer
from ._table import RecordTable, SortedRecords

#: Number of records from which on a table has indexes.
MIN_INDEXED_RECORDS: Final = 256
#: Maximum number of indexes of a table; a new one replaces one that is not in use, or the oldest one.
MAX_INDEXES: Final = 16
#: Approximate maximum size of an index in bytes.
MAX_INDEX_BYTES: Final = 32 << 20
#: Approximate bytes of an index for each value, and for each record.
_VALUE_BYTES: Final = 800
_RECORD_BYTES: Final = 24
#: Number of records that are indexed in one iteration of the reactor, in a millisecond.
BUILD_SLICE: Final = 1024
#: Seconds without a use after which an index is dropped; twice as many at most.
UNUSED_TIMEOUT: Final = 300.0
#: Maximum number of labels and fields whose uses are counted.
_MAX_COUNTED: Final = 64
#: A result that is larger than this share of the table is worth another index.
_LARGE_SHARE: Final = 4

_NOTHING: Final = SortedRecords()


class Equality(NamedTuple):
    """
    A value that a selector requires.

    @ivar is_label: Whether it is a label; otherwise it is a selectable field.
    @ivar name: The name of the label or field.
    @ivar value: The value.
    """

    is_label: bool
    name: str
    value: str


class Candidates(NamedTuple):
    """
    The records that can match a selector.

    @ivar records: The records.
    @ivar all_match: Whether all of them match.
    """

    records: SortedRecords
    all_match: bool


class RecordIndex:
    """
    The records of a table by the value of one label or field.

    @ivar built_to: The key up to which it is complete; L{None} if it is complete.
    @ivar refused: Whether it would be too large; it is empty then.
    @ivar used: Whether it was used since this was last reset.
    """

    def __init__(self, is_label: bool, name: str) -> None:
        self.built_to: str | None = ""
        self.refused = False
        self.used = True
        self._is_label = is_label
        self._name = name
        self._values: dict[str, SortedRecords] = {}
        self._size = 0

    def find(self, value: str) -> SortedRecords:
        """Return the records with a value."""
        return self._values.get(value, _NOTHING)

    def _value_of(self, record: Record) -> str | None:
        if self._is_label:
            return record.labels.get(self._name)
        # A field that the object lacks is selected as an empty one.
        return record.fields.get(self._name, "")

    def _covers(self, key: str) -> bool:
        return not self.refused and (self.built_to is None or key <= self.built_to)

    def extend(self, records: Sequence[Record]) -> None:
        """Add the records that follow L{built_to}, in key order."""
        for record in records:
            self._add(record)
        self.built_to = None if self.refused else records[-1].key

    def put(self, record: Record, previous: Record | None) -> None:
        """Handle that a record was added or replaced."""
        if not self._covers(record.key):
            return
        if previous is not None:
            value = self._value_of(record)
            if value == self._value_of(previous):
                if value is not None:
                    self._values[value].replace(record)
                return
            self.remove(previous)
        self._add(record)

    def remove(self, previous: Record) -> None:
        """Handle that a record was removed."""
        value = self._value_of(previous) if self._covers(previous.key) else None
        if value is not None:
            records = self._values[value]
            records.delete(previous.key)
            self._size -= _RECORD_BYTES
            if not len(records):
                del self._values[value]
                self._size -= _VALUE_BYTES

    def _add(self, record: Record) -> None:
        value = self._value_of(record)
        if value is None or self.refused:
            return
        records = self._values.get(value)
        if records is None:
            records = self._values[value] = SortedRecords()
            self._size += _VALUE_BYTES
        records.insert(record)
        self._size += _RECORD_BYTES
        if self._size > MAX_INDEX_BYTES:
            self.refused = True
            self._values.clear()


class Indexes:
    """The indexes of the table of one cache."""

    def __init__(self, clock: Timer) -> None:
        self._clock = clock
        self._table = RecordTable()
        #: By kind and name; the oldest first.
        self._indexes: dict[tuple[bool, str], RecordIndex] = {}
        #: The labels and fields that a list has used.
        self._wanted: set[tuple[bool, str]] = set()
        self._building: IDelayedCall | None = None
        self._expiry: IDelayedCall | None = None
        self._stopped = False

    def find(self, table: RecordTable, equalities: Sequence[Equality]) -> SortedRecords | None:
        """
        Return the records of the smallest index for one of the equalities, which contain those for all of them.

        @param table: The table; its changes are followed until this is called with another one.
        @param equalities: The values that are required of a record.
        @return: The records; L{None} without an index, which is built if it is worth it.
        """
        if table is not self._table:
            self._reset(table)
        best: SortedRecords | None = None
        missing = None
        for is_label, name, value in equalities:
            index = self._indexes.get((is_label, name))
            if index is None:
                missing = missing or (is_label, name)
                continue
            index.used = True
            if index.built_to is None and not index.refused:
                found = index.find(value)
                if best is None or len(found) < len(best):
                    best = found
        if missing is not None and (best is None or len(best) * _LARGE_SHARE > len(table)):
            self._want(missing)
        return best

    def _want(self, key: tuple[bool, str]) -> None:
        if self._stopped or len(self._table) < MIN_INDEXED_RECORDS:
            return
        if key not in self._wanted:
            if len(self._wanted) >= _MAX_COUNTED:
                self._wanted.clear()
            self._wanted.add(key)
            return
        if len(self._indexes) >= MAX_INDEXES:
            unused = [key for key, index in self._indexes.items() if not index.used]
            del self._indexes[(unused or list(self._indexes))[0]]
        self._wanted.discard(key)
        self._indexes[key] = RecordIndex(*key)
        self._observe()
        if self._building is None:
            self._building = self._clock.callLater(0, self._build)
        if self._expiry is None:
            self._expiry = self._clock.callLater(UNUSED_TIMEOUT, self._expire)

    def _observe(self) -> None:
        self._table.observers = tuple(self._indexes.values())

    def _build(self) -> None:
        """Index some records, and schedule the next ones for a later iteration of the reactor."""
        self._building = None
        index = next((index for index in self._indexes.values() if index.built_to is not None), None)
        if index is None:
            return
        count = 0
        for records in self._table.batches("", index.built_to or ""):
            index.extend(records)
            count += len(records)
            if count >= BUILD_SLICE or index.refused:
                break
        else:
            index.built_to = None
        self._building = self._clock.callLater(0, self._build)

    def _expire(self) -> None:
        self._expiry = None
        self._indexes = {key: index for key, index in self._indexes.items() if index.used}
        self._wanted.clear()
        for index in self._indexes.values():
            index.used = False
        self._observe()
        if self._indexes:
            self._expiry = self._clock.callLater(UNUSED_TIMEOUT, self._expire)

    def _reset(self, table: RecordTable) -> None:
        """Drop all indexes, and begin to follow another table."""
        self._table.observers = ()
        self._table = table
        self._indexes.clear()
        self._wanted.clear()

    def stop(self) -> None:
        """Drop all indexes, and build no more."""
        self._stopped = True
        self._reset(RecordTable())
        for call in (self._building, self._expiry):
            if call is not None and call.active():
                call.cancel()
