"""Results of lists of a watch cache, as batches of records sorted by key."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from operator import attrgetter

from ...api.record import PlainBlock, Record, RecordBlock
from .metrics import CacheMetrics
from .window import Match

_key_of = attrgetter("key")


def collect_page(batches: Iterator[list[Record]], match: Match | None, limit: int) -> tuple[list[Record], bool]:
    """Return up to C{limit} matching records, and whether there are as many."""
    records: list[Record] = []
    for batch in batches:
        records += batch if match is None else filter(match, batch)
        if limit and len(records) >= limit:
            del records[limit:]
            return records, True
    return records, False


def collect_blocks(blocks: Iterator[RecordBlock], limit: int) -> tuple[list[Record], list[RecordBlock], bool]:
    """Return up to C{limit} records, the same in blocks, and whether there are as many."""
    records: list[Record] = []
    collected: list[RecordBlock] = []
    for block in blocks:
        records += block.records
        collected.append(block)
        if limit and len(records) >= limit:
            if len(records) > limit:
                collected[-1] = PlainBlock(block.records[: limit - len(records)])
                del records[limit:]
            return records, collected, True
    return records, collected, False


def count_fetched(batches: Iterator[list[Record]], metrics: CacheMetrics) -> Iterator[list[Record]]:
    """Pass the batches through and count their records in C{metrics}."""
    for batch in batches:
        metrics.fetched += len(batch)
        yield batch


def as_of(
    batches: Iterator[list[Record]], former_records: Mapping[str, Record | None], start_after: str
) -> Iterator[list[Record]]:
    """Return C{batches}, after L{rewind} if there are later changes."""
    return rewind(batches, former_records, start_after) if former_records else batches


def rewind(
    batches: Iterator[list[Record]], former_records: Mapping[str, Record | None], start_after: str
) -> Iterator[list[Record]]:
    """Yield records of a past revision: later changes are undone, and deleted records are restored."""
    former = sorted(key for key, record in former_records.items() if record is not None and key > start_after)
    done = 0
    for batch in batches:
        restored = [record for record in batch if record.key not in former_records]
        end = bisect_right(former, batch[-1].key, done)
        if end > done:
            restored += [record for key in former[done:end] if (record := former_records[key]) is not None]
            restored.sort(key=_key_of)
            done = end
        if restored:
            yield restored
    rest = [record for key in former[done:] if (record := former_records[key]) is not None]
    if rest:
        yield rest
