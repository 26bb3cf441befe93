"""Records sorted by key, fast to change and to read as a whole or in part."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import NoReturn, Protocol

from ...api.garbage import untrack
from ...api.record import PlainBlock, Record, RecordBlock
from ..embedded import prefix_end
from ..errors import StorageUnavailable
from .blocks import Block, FormCache

#: A chunk larger than twice this is split. A list consists of whole chunks (L{Block}) and parts of its first and last.
CHUNK = 64

_key_of = attrgetter("key")


class RecordObserver(Protocol):
    """Is called for the changes of a table."""

    def put(self, record: Record, previous: Record | None) -> None:
        """Handle that C{record} was added, or has replaced C{previous}."""

    def remove(self, previous: Record) -> None:
        """Handle that C{previous} was removed."""


class SortedRecords:
    """
    Records in key order.

    The order is kept in chunks of two parallel lists, so that a change costs two searches and reading a range costs
    a few slices: a list of ten thousand records is made at the speed of copying pointers, and nothing is rebuilt after
    a change. The garbage collector does not visit the chunks.
    """

    __slots__ = ("_blocks", "_ends", "_keys", "_records", "_size")

    def __init__(self) -> None:
        self._keys: list[list[str]] = []
        self._records: list[list[Record]] = []
        #: The blocks of the chunks that were listed since their last change.
        self._blocks: list[Block | None] = []
        #: The last key of each chunk.
        self._ends: list[str] = []
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def append(self, records: Sequence[Record]) -> None:
        """Append records in key order, which is faster than L{insert}; their keys come after all present keys."""
        first = 0
        while first < len(records):
            if not self._ends or len(self._keys[-1]) >= CHUNK:
                self._insert_chunk(len(self._ends), [], [])
            keys, chunk = self._keys[-1], self._changing(-1)
            following = records[first : first + CHUNK - len(keys)]
            keys += map(_key_of, following)
            chunk += following
            self._ends[-1] = keys[-1]
            first += len(following)
        self._size += len(records)

    def _insert_chunk(self, place: int, keys: list[str], records: list[Record]) -> None:
        untrack(keys)
        untrack(records)
        self._keys.insert(place, keys)
        self._records.insert(place, records)
        self._blocks.insert(place, None)
        self._ends.insert(place, keys[-1] if keys else "")

    def _changing(self, place: int) -> list[Record]:
        """Return the records of a chunk in order to change them; its block keeps the former ones."""
        records = self._records[place]
        block = self._blocks[place]
        if block is not None:
            block.drop()
            self._blocks[place] = None
            records = self._records[place] = records[:]
            untrack(records)
        return records

    def insert(self, record: Record) -> None:
        """Add a record whose key is not present."""
        key = record.key
        ends = self._ends
        self._size += 1
        place = bisect_left(ends, key)
        if place == len(ends):
            if not ends:
                self._insert_chunk(0, [key], [record])
                return
            place -= 1
            ends[place] = key
        keys, records = self._keys[place], self._changing(place)
        index = bisect_left(keys, key)
        keys.insert(index, key)
        records.insert(index, record)
        if len(keys) > 2 * CHUNK:
            self._split(place)

    def _split(self, place: int) -> None:
        keys, records = self._keys[place], self._records[place]
        self._insert_chunk(place + 1, keys[CHUNK:], records[CHUNK:])
        del keys[CHUNK:], records[CHUNK:]
        self._ends[place] = keys[-1]

    def replace(self, record: Record) -> None:
        """Replace the record with the same key."""
        place = bisect_left(self._ends, record.key)
        self._changing(place)[bisect_left(self._keys[place], record.key)] = record

    def delete(self, key: str) -> None:
        """Remove the record at C{key}, which is present."""
        place = bisect_left(self._ends, key)
        keys, records = self._keys[place], self._changing(place)
        index = bisect_left(keys, key)
        del keys[index], records[index]
        self._size -= 1
        if not keys:
            del self._keys[place], self._records[place], self._blocks[place], self._ends[place]
        else:
            self._ends[place] = keys[-1]

    def _ranges(self, prefix: str, after: str) -> Iterator[tuple[int, int, int]]:
        """Yield chunk, start and end of the records below C{prefix} whose keys come after C{after}."""
        first, start = self._after(after) if after >= prefix else self._from(prefix)
        last, end = self._from(prefix_end(prefix)) if prefix else (len(self._ends), 0)
        while first < last:
            yield first, start, len(self._keys[first])
            first, start = first + 1, 0
        if first == last and start < end:
            yield last, start, end

    def batches(self, prefix: str, after: str = "") -> Iterator[list[Record]]:
        """
        Yield the records below C{prefix} whose keys come after C{after}, in order, in batches.

        The table must not be changed before the last batch is taken; the caller may change the lists.
        """
        for place, start, end in self._ranges(prefix, after):
            yield self._records[place][start:end]

    def blocks(self, prefix: str, after: str, forms: FormCache) -> Iterator[RecordBlock]:
        """
        Yield the records that L{batches} yields, in blocks.

        @param prefix: See L{batches}.
        @param after: See L{batches}.
        @param forms: Keeps the forms of the blocks.
        """
        for place, start, end in self._ranges(prefix, after):
            records = self._records[place]
            if end - start < len(records):
                yield PlainBlock(records[start:end])
                continue
            block = self._blocks[place]
            if block is None:
                block = self._blocks[place] = Block(records, forms)
            yield block

    def samples(self) -> list[Record]:
        """Return up to three records: the first, the last, and one in the middle."""
        chunks = self._records
        return [chunks[0][0], chunks[len(chunks) // 2][0], chunks[-1][-1]] if chunks else []

    def count(self, prefix: str, after: str = "") -> int:
        """Return the number of records that L{batches} would yield."""
        first, start = self._after(after) if after >= prefix else self._from(prefix)
        last, end = self._from(prefix_end(prefix)) if prefix else (len(self._ends), 0)
        if (first, start) >= (last, end):
            return 0
        return sum(map(len, self._keys[first:last])) + end - start

    def _from(self, key: str) -> tuple[int, int]:
        """Return chunk and index of the first record at C{key} or after it."""
        place = bisect_left(self._ends, key)
        return (place, bisect_left(self._keys[place], key)) if place < len(self._ends) else (place, 0)

    def _after(self, key: str) -> tuple[int, int]:
        """Return chunk and index of the first record after C{key}."""
        place = bisect_right(self._ends, key)
        return (place, bisect_right(self._keys[place], key)) if place < len(self._ends) else (place, 0)


class RecordTable(SortedRecords):
    """
    Records by key, and in key order.

    @ivar observers: Called for each change; tuples, so that they may change while they are called.
    """

    __slots__ = ("_by_key", "observers")

    def __init__(self, records: Iterable[Record] = ()) -> None:
        super().__init__()
        self._by_key: dict[str, Record] = {}
        self.observers: tuple[RecordObserver, ...] = ()
        self.extend(sorted({record.key: record for record in records}.values(), key=_key_of))

    def extend(self, records: Sequence[Record]) -> None:
        """Append records in key order to a table without observers; their keys come after all keys of the table."""
        self._by_key.update({record.key: record for record in records})
        untrack(self._by_key)
        self.append(records)

    def get(self, key: str) -> Record | None:
        """Return the record at C{key}."""
        return self._by_key.get(key)

    def put(self, record: Record) -> Record | None:
        """Replace the record with the same key; return the former record."""
        previous = self._by_key.get(record.key)
        self._by_key[record.key] = record
        untrack(self._by_key)
        if previous is None:
            self.insert(record)
        else:
            self.replace(record)
        for observer in self.observers:
            observer.put(record, previous)
        return previous

    def remove(self, key: str) -> Record | None:
        """Remove the record at C{key}."""
        previous = self._by_key.pop(key, None)
        if previous is not None:
            self.delete(key)
            for observer in self.observers:
                observer.remove(previous)
        return previous


class UnfilledTable(RecordTable):
    """The table of a cache that is not filled yet: a read of it fails, and lets the fill begin."""

    __slots__ = ("_begin_fill", "_prefix")

    def __init__(self, prefix: str, begin_fill: Callable[[], object]) -> None:
        """
        @param prefix: The prefix of the keys of the cache, for messages.
        @param begin_fill: Called at each read.
        """
        super().__init__()
        self._prefix = prefix
        self._begin_fill = begin_fill

    def get(self, key: str) -> Record | None:
        """
        Fail.

        @raise StorageUnavailable: Always.
        """
        self._fail()

    def _ranges(self, prefix: str, after: str) -> Iterator[tuple[int, int, int]]:
        """
        Fail, for L{batches} and L{blocks}.

        @raise StorageUnavailable: Always.
        """
        self._fail()

    def _fail(self) -> NoReturn:
        self._begin_fill()
        raise StorageUnavailable(f"the cache of {self._prefix} is not filled yet")
