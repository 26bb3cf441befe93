"""Records sorted by key, fast to change and to read as a whole or in part."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter

from ...api.garbage import untrack
from ...api.record import Record
from ..embedded import prefix_end
from ..errors import StorageUnavailable

#: A chunk larger than twice this is split.
CHUNK = 512

_key_of = attrgetter("key")


class RecordTable:
    """
    Records by key, and in key order.

    The order is kept in chunks of two parallel lists, so that a change costs two searches and reading a range costs
    a few slices: a list of ten thousand records is made at the speed of copying pointers, and nothing is rebuilt after
    a change. The garbage collector does not visit the table.
    """

    __slots__ = ("_by_key", "_ends", "_keys", "_records")

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self._by_key: dict[str, Record] = {}
        self._keys: list[list[str]] = []
        self._records: list[list[Record]] = []
        #: The last key of each chunk.
        self._ends: list[str] = []
        self.extend(sorted({record.key: record for record in records}.values(), key=_key_of))

    def extend(self, records: Sequence[Record]) -> None:
        """Append records in key order, which is faster than L{put}; their keys come after all keys of the table."""
        self._by_key.update({record.key: record for record in records})
        untrack(self._by_key)
        first = 0
        while first < len(records):
            if not self._ends or len(self._keys[-1]) >= CHUNK:
                self._insert_chunk(len(self._ends), [], [])
            keys, chunk = self._keys[-1], self._records[-1]
            following = records[first : first + CHUNK - len(keys)]
            keys += map(_key_of, following)
            chunk += following
            self._ends[-1] = keys[-1]
            first += len(following)

    def _insert_chunk(self, place: int, keys: list[str], records: list[Record]) -> None:
        untrack(keys)
        untrack(records)
        self._keys.insert(place, keys)
        self._records.insert(place, records)
        self._ends.insert(place, keys[-1] if keys else "")

    def __len__(self) -> int:
        return len(self._by_key)

    def get(self, key: str) -> Record | None:
        """Return the record at C{key}."""
        return self._by_key.get(key)

    def put(self, record: Record) -> Record | None:
        """Replace the record with the same key; return the former record."""
        key = record.key
        previous = self._by_key.get(key)
        self._by_key[key] = record
        untrack(self._by_key)
        ends = self._ends
        place = bisect_left(ends, key)
        if place == len(ends):
            if not ends:
                self._insert_chunk(0, [key], [record])
                return None
            place -= 1
            ends[place] = key
        keys, records = self._keys[place], self._records[place]
        index = bisect_left(keys, key)
        if previous is not None:
            records[index] = record
            return previous
        keys.insert(index, key)
        records.insert(index, record)
        if len(keys) > 2 * CHUNK:
            self._split(place)
        return None

    def _split(self, place: int) -> None:
        keys, records = self._keys[place], self._records[place]
        self._insert_chunk(place + 1, keys[CHUNK:], records[CHUNK:])
        del keys[CHUNK:], records[CHUNK:]
        self._ends[place] = keys[-1]

    def remove(self, key: str) -> Record | None:
        """Remove the record at C{key}."""
        previous = self._by_key.pop(key, None)
        if previous is None:
            return None
        place = bisect_left(self._ends, key)
        keys, records = self._keys[place], self._records[place]
        index = bisect_left(keys, key)
        del keys[index], records[index]
        if not keys:
            del self._keys[place], self._records[place], self._ends[place]
        else:
            self._ends[place] = keys[-1]
        return previous

    def batches(self, prefix: str, after: str = "") -> Iterator[list[Record]]:
        """
        Yield the records below C{prefix} whose keys come after C{after}, in order, in batches.

        The table must not be changed before the last batch is taken; the caller may change the lists.
        """
        first, start = self._after(after) if after >= prefix else self._from(prefix)
        last, end = self._from(prefix_end(prefix)) if prefix else (len(self._ends), 0)
        while first < last:
            yield self._records[first][start:] if start else self._records[first][:]
            first, start = first + 1, 0
        if first == last and start < end:
            yield self._records[last][start:end]

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


class UnfilledTable(RecordTable):
    """The table of a cache that is not filled yet; reads of it fail."""

    __slots__ = ("_prefix",)

    def __init__(self, prefix: str) -> None:
        """@param prefix: The prefix of the keys of the cache, for messages."""
        super().__init__()
        self._prefix = prefix

    def get(self, key: str) -> Record | None:
        """
        Fail.

        @raise StorageUnavailable: Always.
        """
        raise StorageUnavailable(f"the cache of {self._prefix} is not filled")

    def batches(self, prefix: str, after: str = "") -> Iterator[list[Record]]:
        """
        Fail.

        @raise StorageUnavailable: Always.
        """
        raise StorageUnavailable(f"the cache of {self._prefix} is not filled")
