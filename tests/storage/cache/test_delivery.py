"""Tests for L{kubetwist.storage.cache._delivery}: events that happen at the same time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from zope.interface import implementer

from kubetwist.api.storage import StorageEvent
from kubetwist.interfaces import IBatchSink, IPacedSink
from kubetwist.storage.cache.watches import PacedWatch
from kubetwist.storage.cache.window import EventBatch
from tests.storage.cache.test_watches import PacedSink
from tests.storage.cache.watchcache.cachecase import PREFIX, CacheCase, RecordingSink, drafted, labelled


@implementer(IBatchSink, IPacedSink)
class BatchSink(PacedSink):
    """
    A sink that records batches.

    @ivar accepts: Whether it accepts them.
    @ivar reacts: Called with each batch.
    """

    def __init__(self, reacts: Callable[[], object] = lambda: None) -> None:
        super().__init__(1000)
        self.batches: list[EventBatch] = []
        self.accepts = True
        self.reacts = reacts

    def send_batch(self, batch: EventBatch) -> bool:
        """See L{IBatchSink.send_batch}."""
        if self.accepts:
            self.batches.append(batch)
            self.reacts()
        return self.accepts

    def keys(self) -> list[list[str]]:
        """Return the keys of the events of each batch."""
        return [[event.record.key for event in batch.events] for batch in self.batches]


class DeliveryTests(CacheCase):
    """Delivered events."""

    def commit(self, *keys: str, **labels: str) -> list[int]:
        """Let several transactions become durable at the same time; returns their revisions."""
        first = self.storage.revision + 1
        draft = drafted("x", **labels)
        events = [
            StorageEvent(PREFIX + key, draft.body, revision, 0, draft) for revision, key in enumerate(keys, first)
        ]
        self.storage.revision = events[-1].revision
        self.storage._submitted = events[-1].revision
        self.storage._observers.deliver(events, events[-1].revision)
        return [event.revision for event in events]

    def paced(self, scope: str = "", **options: Any) -> tuple[PacedWatch, BatchSink]:
        """Begin a paced watch whose sink accepts batches."""
        sink = BatchSink()
        watch = self.cache.watch_paced(scope, sink=sink, **options)
        watch.resume()
        return watch, sink

    def test_together(self) -> None:
        """Events that happen at the same time are sent together, and watches with the same selector share them."""
        match = labelled(app="x")
        watches = [self.paced(), self.paced(match=match), self.paced("a/"), self.paced(match=match), self.paced("b/z")]
        self.commit("a/x", "b/y", "a/z", app="x")
        (everything, selected, namespace, other, single) = (sink for _, sink in watches)
        self.assertEqual(everything.keys(), [["a/x", "b/y", "a/z"]])
        self.assertIs(selected.batches[0], other.batches[0])
        self.assertEqual(namespace.keys(), [["a/x", "a/z"]])
        self.assertEqual((single.keys(), everything.sent), ([], []))
        self.assertEqual({watch.revision for watch, _ in watches}, {self.storage.revision})

    def test_nothing_selected(self) -> None:
        """A sink gets no batch without events."""
        _, sink = self.paced(match=labelled(app="other"))
        self.commit("a/x", "a/y")
        self.assertEqual((sink.batches, sink.sent), ([], []))

    def test_refused(self) -> None:
        """The events of a refused batch are sent one by one."""
        _, sink = self.paced()
        sink.accepts = False
        revisions = self.commit("a/x", "a/y")
        self.assertEqual([revision for _, _, revision in sink.wait_until_fresh_or_timeout()], revisions)
        sink.accepts = True
        self.commit("a/z")
        self.assertEqual((sink.keys(), sink.sent), ([["a/z"]], []))

    def test_later_revision(self) -> None:
        """A watch from a revision within a batch gets the events after it one by one, and then batches."""
        first = self.storage.revision + 1
        _, sink = self.paced(revision=first)
        self.commit("a/x", "a/y", "a/z")
        self.assertEqual([key for _, key, _ in sink.wait_until_fresh_or_timeout()], ["a/y", "a/z"])
        self.commit("a/w")
        self.assertEqual(sink.keys(), [["a/w"]])

    def test_suspended_by_itself(self) -> None:
        """A sink that suspends its watch continues after the batch, or the event, that it has got."""
        watch, sink = self.paced()
        sink.reacts = watch.suspend
        self.commit("a/x", "a/y")
        self.commit("a/z")
        self.assertEqual(sink.keys(), [["a/x", "a/y"]])
        watch.resume()
        self.assertEqual([key for _, key, _ in sink.wait_until_fresh_or_timeout()], ["a/z"])
        sink.accepts = False
        sink.then = watch.suspend
        self.commit("a/u", "a/v")
        sink.then = lambda: None
        self.assertEqual([key for _, key, _ in sink.wait_until_fresh_or_timeout()], ["a/u"])
        watch.resume()
        self.assertEqual([key for _, key, _ in sink.wait_until_fresh_or_timeout()], ["a/v"])
        self.assertTrue(watch.live)

    def test_suspended_by_another(self) -> None:
        """A watch that is suspended in the delivery to another one continues before or after the batch."""
        earlier, before = self.paced()
        _, sink = self.paced()
        later, after = self.paced()

        def suspend() -> None:
            earlier.suspend()
            later.suspend()

        sink.reacts = suspend
        self.commit("a/x", "a/y")
        sink.reacts = lambda: None
        self.assertEqual((before.keys(), after.keys()), ([["a/x", "a/y"]], []))
        for watch in (earlier, later):
            watch.resume()
        self.assertEqual(before.wait_until_fresh_or_timeout(), [])
        self.assertEqual([key for _, key, _ in after.wait_until_fresh_or_timeout()], ["a/x", "a/y"])

    def test_resumed_while_events_are_sent(self) -> None:
        """A watch that is suspended and resumed by its sink in a delivery sends each event once, in order."""
        watch, sink = self.paced()
        sink.accepts = False

        def pause() -> None:
            watch.suspend()
            watch.resume()

        sink.then = pause
        self.commit("a/x", "a/y", "a/z")
        sink.then = lambda: None
        self.clock.advance(0)
        self.assertEqual([key for _, key, _ in sink.wait_until_fresh_or_timeout()], ["a/x", "a/y", "a/z"])
        self.assertTrue(watch.live)

    def test_stopped(self) -> None:
        """A watch that is stopped in a delivery gets nothing more of it."""
        _, first = self.paced()
        watch, second = self.paced()
        single, third = self.paced()
        third.accepts = False
        third.then = single.stop
        first.reacts = watch.stop
        self.commit("a/x", "a/y")
        self.assertEqual((len(first.batches), second.batches, len(third.sent)), (1, [], 1))

    def test_failing(self) -> None:
        """A sink or a selector that raises ends its watch; other watches get the batch."""

        def fail(*arguments: object) -> bool:
            raise ValueError("as a test")

        watch, sink = self.paced()
        sink.reacts = fail
        selecting, selected = self.paced(match=fail)
        _, other = self.paced()
        self.commit("a/x", "a/y")
        self.assertEqual((watch.active, selecting.active), (False, False))
        self.assertEqual((sink.ends, selected.ends, other.keys()), ([None], [None], [["a/x", "a/y"]]))
        self.assertEqual(len(self.flushLoggedErrors(ValueError)), 2)

    def test_begun(self) -> None:
        """A watch that begins in a delivery gets later events only."""
        begun: list[BatchSink] = []

        def begin() -> None:
            if not begun:
                begun.extend(self.paced(scope)[1] for scope in ("", "a/"))

        _, sink = self.paced()
        sink.reacts = begin
        self.paced("a/")
        self.commit("a/x", "a/y")
        self.commit("a/z")
        self.assertEqual([one.keys() for one in begun], [[["a/z"]], [["a/z"]]])

    def test_other_sinks(self) -> None:
        """A sink that accepts no batches gets the events one by one."""
        sink = RecordingSink()
        self.cache.watch("", sink=sink)
        revisions = self.commit("a/x", "a/y")
        self.assertEqual([revision for _, _, revision in sink.wait_until_fresh_or_timeout()], revisions)
