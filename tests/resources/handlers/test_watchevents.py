"""Tests for L{kubetwist.resources.handlers.watchevents}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.record import Draft, Record
from kubetwist.resources.handlers.watchevents import MAX_COUNTED, EncodedBatch, WatchMetrics, encoded_batch
from kubetwist.storage.cache.window import ADDED, CacheEvent, EventBatch


class Encoder:
    """An encoder that counts its calls."""

    calls = 0

    def encode_event(self, event_type: str, record: Record) -> bytes:
        """Encode an event."""
        self.calls += 1
        return b"%b %b\n" % (event_type.encode(), record.key.encode())


def batch(*keys: str) -> EventBatch:
    """Return a batch of new objects."""
    return EventBatch(
        [
            CacheEvent(ADDED, revision, Record.from_draft(key, revision, Draft(b'{"metadata":{}}', {}, {})), None)
            for revision, key in enumerate(keys, 2)
        ],
        None,
    )


class EncodedBatchTests(SynchronousTestCase):
    """Tests for L{encoded_batch}."""

    def test_joined(self) -> None:
        """The events are joined, and keep their encoded forms."""
        events, encoder = batch("a", "bc"), Encoder()
        encoded = self.encoded(events, encoder, 100)
        self.assertEqual((encoded.data, encoded.sizes), (b"ADDED a\nADDED bc\n", [8, 9]))
        self.encoded(events, encoder, 100)
        self.assertEqual(encoder.calls, 2)

    def test_too_large(self) -> None:
        """Events that exceed the limit together are not joined, and no further ones are encoded."""
        encoder = Encoder()
        self.assertIsNone(encoded_batch(batch("a", "b", "c"), encoder, 15))  # type: ignore[arg-type]
        self.assertEqual(encoder.calls, 2)
        self.assertIsNotNone(encoded_batch(batch("a", "b"), encoder, 16))  # type: ignore[arg-type]

    def encoded(self, events: EventBatch, encoder: Any, size: int) -> EncodedBatch:
        """Return an encoded batch that is not too large."""
        encoded = encoded_batch(events, encoder, size)
        assert encoded is not None
        return encoded


class CopiesTests(SynchronousTestCase):
    """The copies of batches in L{WatchMetrics}."""

    def test_counted(self) -> None:
        """All events of a batch are observed once for each copy, also if there are many batches."""
        metrics = WatchMetrics()
        batches = [EncodedBatch([b"x" * 100, b"y" * 5000]) for _ in range(MAX_COUNTED + 3)]
        for _ in range(2):
            for one in batches:
                if not one.copies:
                    metrics.count_copies(one)
                one.copies += 1
        metrics.flush_pending()
        self.assertEqual((metrics.sizes.count, metrics.sizes.sum), (4 * len(batches), 2 * 5100 * len(batches)))
        self.assertEqual(metrics.sizes.counts[0], 2 * len(batches))
        metrics.flush_pending()
        self.assertEqual(metrics.sizes.count, 4 * len(batches))
