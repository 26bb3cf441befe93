"""What watches count."""

from __future__ import annotations

from types import SimpleNamespace

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.resources.handlers.watch import (
    Flusher,
    WatchTally,
)
from tests.metrics.reading import told


class WatchTallyTests(SynchronousTestCase):
    """Events are counted for each watch, their sizes looked at once."""

    def test_same_event(self) -> None:
        """An event that several watches write counts for each of them."""
        tally = WatchTally()
        event, other = b"x" * 100, b"y" * 5000
        for data in (event, event, event, other):
            tally.one(data)
        tally.settle()
        self.assertEqual((tally.sizes.count, tally.sizes.sum), (4, 5300))
        self.assertEqual(tally.sizes.counts[0], 3)
        tally.settle()
        self.assertEqual(tally.sizes.count, 4)

    def test_several(self) -> None:
        """Of events that are written together each counts, small ones and others."""
        tally = WatchTally()
        tally.several([b"x" * 10, b"x" * 1024])
        tally.several([b"x" * 10, b"x" * 3000, b"x" * 1_000_000])
        self.assertEqual(tally.sizes.count, 5)
        self.assertEqual((tally.sizes.counts[0], tally.sizes.counts[2], tally.sizes.counts[-1]), (3, 1, 1))

    def test_cut_off(self) -> None:
        """Watches that were cut off are told of by resource, whatever version they are of."""
        flusher = Flusher(Clock())
        for version in ("v1", "v2"):
            flusher.tally(SimpleNamespace(group="g", version=version, resource="things")).terminated += 2
        flusher.tally(SimpleNamespace(group="g", version="v1", resource="others"))
        cut = told(*flusher.readings())["apiserver_terminated_watchers_total"]
        self.assertEqual(cut, {(("group", "g"), ("resource", "things")): 4.0})
