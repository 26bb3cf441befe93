"""Tests for L{kubetwist.storage.cache._encodings}."""

from __future__ import annotations

from collections.abc import Sequence

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.record import Record
from kubetwist.storage.cache._encodings import IDLE_TIMEOUT, EncodingExpiry


class EncodingExpiryTests(SynchronousTestCase):
    """L{EncodingExpiry}."""

    def setUp(self) -> None:
        """Create records in three batches, each with an encoded form."""
        self.clock = Clock()
        self.records = [Record(key, 1, b"{}", {}, {}) for key in ("a", "b", "c")]
        self.encode()
        self.asked: list[str] = []
        self.used_again = False
        self.expiry = EncodingExpiry(self.clock, self.records_after)

    def encode(self) -> None:
        """Give each record an encoded form."""
        for record in self.records:
            record.encodings = {"form": b"x"}

    def records_after(self, key: str) -> Sequence[Record]:
        """Return the first record after a key."""
        self.asked.append(key)
        if self.used_again:
            self.expiry.mark_used()
        return [record for record in self.records if record.key > key][:1]

    def kept(self) -> str:
        """Return the keys of the records with an encoded form."""
        return "".join(record.key for record in self.records if record.encodings is not None)

    def test_batches(self) -> None:
        """Forms are dropped in batches, each by a separate call."""
        self.expiry.mark_used()
        self.clock.advance(IDLE_TIMEOUT)
        self.assertEqual(self.kept(), "abc")
        self.clock.advance(IDLE_TIMEOUT)
        self.assertEqual((self.kept(), self.asked), ("", ["", "a", "b", "c"]))
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_used(self) -> None:
        """Forms are kept while they are used."""
        for _ in range(5):
            self.expiry.mark_used()
            self.clock.advance(IDLE_TIMEOUT)
        self.assertEqual(self.kept(), "abc")

    def test_used_again(self) -> None:
        """Forms that are made during the expiry of former ones expire later."""
        self.expiry.mark_used()
        self.clock.advance(IDLE_TIMEOUT)
        self.used_again = True
        self.clock.advance(IDLE_TIMEOUT)
        self.used_again = False
        self.encode()
        self.clock.advance(IDLE_TIMEOUT)
        self.assertEqual(self.kept(), "abc")
        self.clock.advance(IDLE_TIMEOUT)
        self.assertEqual(self.kept(), "")

    def test_stop(self) -> None:
        """No timer runs after a stop."""
        self.expiry.mark_used()
        self.expiry.stop()
        self.expiry.mark_used()
        EncodingExpiry(self.clock, self.records_after).stop()
        self.assertEqual(self.clock.getDelayedCalls(), [])
