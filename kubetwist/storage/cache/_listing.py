"""Results of lists of a watch cache, as batches of records sorted by key."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from operator import attrgetter

from ...api.record import Record
from .metrics import CacheMetrics
from .window import Match

_key_of = attrgetter("key")


def collect_page(batches: Iterator[list[Record]], match: Match | None, limit: int) -> tuple[list[Record], str]:
    """Return up to C{limit} matching records, and the key of the last one if there are more records."""
    records: list[Record] = []
    for batch in batches:
        records += batch if match is None else filter(match, batch)
        if limit and len(records) >= limit:
            del records[limit:]
            last = records[-1].key
            more = batch[-1].key != last or next(batches, None) is not None
            return records, last if more else ""
    return records, ""


def count_fetched(batches: Iterator[list[Record]], metrics: CacheMetrics) -> Iterator[list[Record]]:
    """Pass the batches through and count their records in C{metrics}."""
    for batch in batches:
        metrics.fetched += len(batch)
        yield batch


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
