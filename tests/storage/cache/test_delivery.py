"""Tests for L{kubetwist.storage.cache._delivery}: events that happen at the same time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from twisted.internet.defer import CancelledError
from zope.interface import implementer

from kubetwist.api.record import Record
from kubetwist.api.storage import StorageEvent
from kubetwist.interfaces import IBatchSink, IPacedSink
from kubetwist.storage.cache import _delivery
from kubetwist.storage.cache.watches import PacedWatch
from kubetwist.storage.cache.window import EventBatch
from kubetwist.storage.errors import WatchInterrupted
from tests.storage.cache.test_watches import PacedSink
from tests.storage.cache.watchcache.cachecase import PREFIX, CacheCase, RecordingSink, drafted, labelled


@implementer(IBatchSink, IPacedSink)
class BatchSink(PacedSink):
    """
    A sink that records batches.

    @ivar accepts: Whether it accepts them.
    @ivar reacts: Called with each batch.
    @ivar revisions: The revisions of all events.
    """

    def __init__(self, reacts: Callable[[], object] = lambda: None) -> None:
        super().__init__(1000)
        self.batches: list[EventBatch] = []
        self.accepts = True
        self.reacts = reacts
        self.revisions: list[int] = []

    def send_batch(self, batch: EventBatch) -> bool:
        """See L{IBatchSink.send_batch}."""
        if self.accepts:
            self.revisions += [event.revision for event in batch.events]
            self.batches.append(batch)
            self.reacts()
        return self.accepts

    def send(self, event_type: str, record: Record, event: Any) -> None:
        """See L{IPacedSink.send}."""
        self.revisions.append(record.revision)
        super().send(event_type, record, event)

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


_actions = st.lists(
    st.tuples(st.sampled_from(("commit", "turn", "suspend", "resume", "begin", "stop")), st.integers(0, 9)), max_size=40
)


class Iterations:
    """Runs calls in the next iteration; L{Clock.advance} would run those that it schedules in the same one."""

    def __init__(self) -> None:
        self.calls: list[Callable[[], object]] = []

    def seconds(self) -> float:
        """Return the time, which does not pass."""
        return 0.0

    def callLater(self, delay: float, call: Callable[[], object]) -> None:
        """Schedule a call."""
        self.calls.append(call)

    def run(self) -> None:
        """Run an iteration."""
        calls, self.calls = self.calls, []
        for call in calls:
            call()


class DividedTests(DeliveryTests):
    """Deliveries that continue in later iterations: the tests of undivided ones, and further ones."""

    def setUp(self) -> None:
        """Divide each delivery into steps of two watches, of which one is made in each iteration."""
        super().setUp()
        self.iterations: Any = Iterations()
        self.cache.deliveries._clock = self.iterations
        self.patch(_delivery, "MIN_DIVIDED", 1)
        self.patch(_delivery, "UNINTERRUPTED", 2)
        self.divide(False)

    def divide(self, divided: bool = True) -> None:
        """Divide the following deliveries, or deliver at once."""
        self.patch(_delivery, "DELIVERY_SECONDS", -1.0 if divided else 1.0)

    def turn(self) -> None:
        """Run an iteration of the reactor."""
        self.clock.advance(0)
        self.iterations.run()

    def test_slices(self) -> None:
        """Paced watches receive events in several iterations, in order; other watches receive them at once."""
        self.divide()
        sink = RecordingSink()
        watches = [self.paced() for _ in range(5)]
        self.cache.watch("", sink=sink)
        (first,) = self.commit("a/x")
        self.assertEqual([len(one.batches) for _, one in watches], [1, 1, 0, 0, 0])
        (second,) = self.commit("a/y")
        self.assertEqual([revision for _, _, revision in sink.wait_until_fresh_or_timeout()], [first, second])
        self.assertEqual([watch.revision for watch, _ in watches], [first, first, *[first - 1] * 3])
        while self.cache.deliveries.pending:
            self.turn()
        self.assertEqual([one.keys() for _, one in watches], [[["a/x"], ["a/y"]]] * 5)
        self.assertEqual({watch.revision for watch, _ in watches}, {second})
        self.assertEqual(self.iterations.calls, [])

    def test_wait(self) -> None:
        """A writer waits until all watches have received its event, and not for later ones."""
        wait = self.cache.deliveries.wait
        self.successResultOf(wait(self.storage.revision))
        self.divide()
        for _ in range(4):
            self.paced()
        (first,) = self.commit("a/x")
        (second,) = self.commit("a/y")
        self.successResultOf(wait(first - 1))
        waiting, later, cancelled = wait(first), wait(second), wait(second)
        cancelled.addErrback(lambda failure: failure.trap(CancelledError))
        cancelled.cancel()
        self.turn()
        self.assertNoResult(waiting)
        self.turn()
        self.successResultOf(waiting)
        self.assertNoResult(later)
        self.turn()
        self.turn()
        self.successResultOf(later)

    def test_end(self) -> None:
        """When the cache stops or loses its backend, its watches receive no more events, and writers go on."""
        for stops in (True, False):
            self.setUp()
            self.divide()
            sinks = [self.paced()[1] for _ in range(4)]
            (revision,) = self.commit("a/x")
            waiting = self.cache.deliveries.wait(revision)
            if stops:
                self.cache.stop()
            else:
                self.cache.ended(WatchInterrupted())
            self.successResultOf(waiting)
            self.turn()
            self.assertEqual([len(one.batches) for one in sinks], [1, 1, 0, 0])
            self.assertFalse(self.cache.deliveries.pending)

    @given(_actions)
    @settings(max_examples=60, deadline=None)
    def test_any_order(self, actions: list[tuple[str, int]]) -> None:
        """Each watch receives each event once and in order, in any sequence of writes, pauses and iterations."""
        self.setUp()
        self.divide()
        begun: list[tuple[PacedWatch, BatchSink, int]] = []
        revisions: list[int] = []
        for action, number in actions:
            if action == "commit":
                revisions += self.commit(f"a/{number}", *(["a/z"] if number % 2 else []))
            elif action == "turn":
                self.turn()
            elif action == "begin":
                begun.append((*self.paced(), self.storage.revision))
            elif begun:
                getattr(begun[number % len(begun)][0], action)()
        for watch, _, _ in begun:
            watch.resume()
        while self.iterations.calls or self.clock.getDelayedCalls():
            self.turn()
        for watch, sink, since in begun:
            expected = [revision for revision in revisions if revision > since]
            if watch.active:
                self.assertEqual(sink.revisions, expected)
            else:
                self.assertEqual(sink.revisions, expected[: len(sink.revisions)])
