"""Keys in order, fast to change and to read in part."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator

from ..api.garbage import untrack

#: A chunk larger than twice this is split.
CHUNK = 512


class SortedKeys:
    """
    A sorted set of keys, in chunks: a change costs two searches and moves the pointers of one chunk.

    The garbage collector does not visit the keys.
    """

    __slots__ = ("_chunks", "_ends")

    def __init__(self, keys: Iterable[str] = ()) -> None:
        ordered = sorted(keys)
        self._chunks: list[list[str]] = []
        #: The last key of each chunk.
        self._ends: list[str] = []
        for first in range(0, len(ordered), CHUNK):
            self._insert_chunk(len(self._ends), ordered[first : first + CHUNK])

    def add(self, key: str) -> None:
        """Add a key, if it is not present."""
        place = bisect_left(self._ends, key)
        if place == len(self._ends):
            if not place:
                self._insert_chunk(0, [key])
                return
            place -= 1
            self._ends[place] = key
        chunk = self._chunks[place]
        index = bisect_left(chunk, key)
        if index < len(chunk) and chunk[index] == key:
            return
        chunk.insert(index, key)
        if len(chunk) > 2 * CHUNK:
            self._insert_chunk(place + 1, chunk[CHUNK:])
            del chunk[CHUNK:]
            self._ends[place] = chunk[-1]

    def _insert_chunk(self, place: int, chunk: list[str]) -> None:
        untrack(chunk)
        self._chunks.insert(place, chunk)
        self._ends.insert(place, chunk[-1])

    def discard(self, key: str) -> None:
        """Remove a key, if it is present."""
        place = bisect_left(self._ends, key)
        if place == len(self._ends):
            return
        chunk = self._chunks[place]
        index = bisect_left(chunk, key)
        if chunk[index] != key:
            return
        del chunk[index]
        if chunk:
            self._ends[place] = chunk[-1]
        else:
            del self._chunks[place], self._ends[place]

    def between(self, start: str, end: str) -> Iterator[str]:
        """Yield the keys from C{start} on, before C{end}; the set must not be changed before the last one."""
        place = bisect_left(self._ends, start)
        index = bisect_left(self._chunks[place], start) if place < len(self._ends) else 0
        while place < len(self._ends):
            chunk = self._chunks[place]
            if chunk[-1] >= end:
                yield from chunk[index : bisect_left(chunk, end)]
                return
            yield from chunk[index:] if index else chunk
            place, index = place + 1, 0
