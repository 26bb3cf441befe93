"""Encoded watch events that many streams write, and the metrics of written events."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ...api.record import Record
from ...http.sharedpieces import SharedPiece
from ...metrics.registry import Histogram, exponential

if TYPE_CHECKING:
    from ...storage.cache.window import CacheEvent, EventBatch
    from ..encoding import WatchEncoder

#: Number of batches whose copies are counted before they are observed.
MAX_COUNTED: Final = 16
#: Histogram buckets: bytes of events.
_SIZE_BUCKETS: Final = exponential(1024.0, 2.0, 8)


class EncodedBatch(SharedPiece):
    """
    The encoded events of a batch.

    @ivar sizes: The sizes of the events, in bytes.
    @ivar copies: The number of watches that have written it since it was observed.
    """

    __slots__ = ("copies", "sizes")

    def __init__(self, events: list[bytes]) -> None:
        super().__init__(events[0] if len(events) == 1 else b"".join(events))
        self.sizes = list(map(len, events))
        self.copies = 0


class WatchMetrics:
    """
    The metrics of written events of one resource in one version.

    Many watches write the same event at the same time. Its repetitions are counted, and observed together.
    """

    __slots__ = ("_counted", "_data", "_repeats", "sizes", "terminated")

    def __init__(self) -> None:
        self.sizes = Histogram(_SIZE_BUCKETS)
        #: Number of watches that were terminated because their clients were too slow.
        self.terminated = 0
        self._data = b""
        self._repeats = 0
        #: Batches with copies that are not observed.
        self._counted: list[EncodedBatch] = []

    def count_copies(self, batch: EncodedBatch) -> None:
        """Observe the copies of a batch later, which has none so far."""
        if len(self._counted) >= MAX_COUNTED:
            self._observe_counted()
        self._counted.append(batch)

    def _observe_counted(self) -> None:
        sizes = self.sizes
        for batch in self._counted:
            for size in batch.sizes:
                sizes.counts[bisect_left(sizes.bounds, size)] += batch.copies
                sizes.sum += size * batch.copies
            batch.copies = 0
        self._counted.clear()

    def observe(self, data: bytes) -> None:
        """Observe one written event."""
        if data is self._data:
            self._repeats += 1
        else:
            self._observe_repeated()
            self._data = data
            self._repeats = 1

    def observe_all(self, events: Sequence[bytes]) -> None:
        """Observe several written events."""
        sizes = self.sizes
        lengths = list(map(len, events))
        sizes.sum += sum(lengths)
        if max(lengths) <= 1024:
            sizes.counts[0] += len(lengths)
        else:
            counts, bounds = sizes.counts, sizes.bounds
            for length in lengths:
                counts[bisect_left(bounds, length)] += 1

    def flush_pending(self) -> None:
        """Observe the pending repetitions of events."""
        self._observe_counted()
        self._observe_repeated()

    def _observe_repeated(self) -> None:
        if self._repeats:
            length = len(self._data)
            self.sizes.counts[bisect_left(_SIZE_BUCKETS, length)] += self._repeats
            self.sizes.sum += length * self._repeats
        self._data = b""
        self._repeats = 0


class SharedEvent:
    """
    The encoded event of a large object, shared by the streams that send it at the same time.

    @ivar record: Kept, since its identity is the key.
    """

    __slots__ = ("__weakref__", "data", "record")

    def __init__(self, data: bytes, record: Record) -> None:
        self.data = data
        self.record = record


def encoded_event(event: CacheEvent, encoder: WatchEncoder) -> bytes:
    """Return an encoded event, which the event keeps for other watches."""
    encoded = event.encoded
    if encoded is None:
        encoded = event.encoded = {}
    data: bytes | None = encoded.get(encoder)
    if data is None:
        data = encoded[encoder] = encoder.encode_event(event.kind, event.record)
    return data


def encoded_batch(batch: EventBatch, encoder: WatchEncoder, max_size: int) -> EncodedBatch | None:
    """Return the encoded events of a batch; L{None} if they are larger than C{max_size} bytes together."""
    events, size = [], 0
    for event in batch.events:
        data = encoded_event(event, encoder)
        size += len(data)
        if size > max_size:
            return None
        events.append(data)
    return EncodedBatch(events)
