"""What lists of a watch cache find, in batches of records that are sorted by key."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from operator import attrgetter

from attrs import define

from .metrics import CacheTally
from .record import Record
from .window import Match

_key_of = attrgetter("key")


@define(slots=True, eq=False)
class Listing:
    """
    What a list found.

    @ivar records: In key order; the list is the caller's.
    @ivar revision: The state is that as of this revision.
    @ivar next_key: The C{start_after} of the next page; C{""} when this is the last.
    @ivar remaining: How many records follow, as far as known: L{None} for the last page and for lists with a match.
    @ivar cached: Whether the cache answered, and not the backend.
    """

    records: list[Record]
    revision: int
    next_key: str = ""
    remaining: int | None = None
    cached: bool = True


def gather(batches: Iterator[list[Record]], match: Match | None, limit: int) -> tuple[list[Record], str]:
    """Up to C{limit} matching records, and the key of the last one if there are more records."""
    records: list[Record] = []
    for batch in batches:
        records += batch if match is None else filter(match, batch)
        if limit and len(records) >= limit:
            del records[limit:]
            last = records[-1].key
            more = batch[-1].key != last or next(batches, None) is not None
            return records, last if more else ""
    return records, ""


def counted(batches: Iterator[list[Record]], tally: CacheTally) -> Iterator[list[Record]]:
    """The same batches; C{tally} is told how many records they have."""
    for batch in batches:
        tally.fetched += len(batch)
        yield batch


def undo(
    batches: Iterator[list[Record]], undone: Mapping[str, Record | None], start_after: str
) -> Iterator[list[Record]]:
    """Records as they were: what changed since is replaced, and what is gone by now comes back."""
    former = sorted(key for key, record in undone.items() if record is not None and key > start_after)
    done = 0
    for batch in batches:
        kept = [record for record in batch if record.key not in undone]
        end = bisect_right(former, batch[-1].key, done)
        if end > done:
            kept += [record for key in former[done:end] if (record := undone[key]) is not None]
            kept.sort(key=_key_of)
            done = end
        if kept:
            yield kept
    rest = [record for key in former[done:] if (record := undone[key]) is not None]
    if rest:
        yield rest
