"""Tests of L{kubetwist.flowcontrol.computing}."""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any
from weakref import ref

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.defer import fail as fail_deferred
from twisted.internet.task import Clock
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.errors import clear_frames
from kubetwist.flowcontrol.computing import (
    COLLECTION_DUE_SECONDS,
    MAX_UNCOLLECTED_SECONDS,
    QUIET_SECONDS,
    SHORT_PAUSE_SECONDS,
    Computing,
    freeze,
)

_asked_by: ContextVar[str] = ContextVar("asked_by", default="")


class Document:
    """An object that a computation uses."""


class ComputingTests(SynchronousTestCase):
    """L{Computing}."""

    def setUp(self) -> None:
        """Create a thread pool whose calls are run by the test."""
        self.started: list[tuple[Callable[..., Any], tuple[Any, ...], Deferred[Any]]] = []
        self.clock = Clock()
        self.computing = Computing(self._in_thread, self.clock)
        self.addCleanup(gc.enable)

    def _in_thread(self, function: Callable[..., Any], *arguments: Any) -> Deferred[Any]:
        result: Deferred[Any] = Deferred()
        self.started.append((function, arguments, result))
        return result

    def _work(self) -> None:
        """Run the next call of the pool."""
        function, arguments, result = self.started.pop(0)
        try:
            value = function(*arguments)
        except Exception:
            result.errback()
        else:
            result.callback(value)

    def test_one_at_a_time(self) -> None:
        """Computations run one after the other, in the order of their submission."""
        results = [self.computing(lambda value: value * 2, number) for number in range(4)]
        self.assertEqual((len(self.started), self.computing.waiting), (1, 3))
        for number, result in enumerate(results):
            self.assertNoResult(result)
            self._work()
            self.assertEqual(self.successResultOf(result), number * 2)
        self.assertEqual((len(self.started), self.computing.waiting), (0, 0))

    def test_next_starts_first(self) -> None:
        """The next computation starts before the result of the previous one is handled."""
        seen: list[int] = []
        first = self.computing(int)
        self.computing(int)
        first.addCallback(lambda value: seen.append(len(self.started)))
        self._work()
        self.assertEqual(seen, [1])

    def test_failure(self) -> None:
        """The caller gets the exception of a computation, and the next one runs."""
        failing, following = self.computing(int, "x"), self.computing(int, "1")
        self._work()
        self.failureResultOf(failing, ValueError)
        self._work()
        self.assertEqual(self.successResultOf(following), 1)

    def test_failure_keeps_no_references(self) -> None:
        """The arguments of a failed computation are freed with the failure, without garbage collection."""

        def in_pool(function: Callable[..., Any], *arguments: Any) -> Deferred[Any]:
            # As in Twisted's thread pool: the failure is a local variable of a frame in its own traceback.
            try:
                outcome = function(*arguments)
            except BaseException:
                outcome = Failure()
            result: Deferred[Any] = Deferred()
            result.callback(outcome)
            return result

        def fail(document: Document) -> None:
            raise ValueError

        gc.collect()
        gc.disable()
        document = Document()
        seen = ref(document)
        failing = Computing(in_pool, self.clock)(fail, document)
        del document
        clear_frames(self.failureResultOf(failing, ValueError).value)
        self.assertIsNone(seen())

    def test_no_thread(self) -> None:
        """If no thread is available, the caller gets that error."""
        failing = Computing(lambda *arguments: fail_deferred(RuntimeError("can't start new thread")), self.clock)(int)
        self.failureResultOf(failing, RuntimeError)

    def test_cancelled(self) -> None:
        """A computation that is cancelled before its turn does not run; the result of a running one is dropped."""
        made: list[int] = []
        running, waiting, last = (self.computing(made.append, number) for number in range(3))
        for result in (waiting, running):
            result.cancel()
            self.failureResultOf(result, CancelledError)
        self._work()
        self._work()
        self.assertEqual(made, [0, 2])
        self.assertIsNone(self.successResultOf(last))

    def test_context(self) -> None:
        """A computation sees the context variables of its caller."""
        token = _asked_by.set("a")
        first = self.computing(_asked_by.get)
        _asked_by.reset(token)
        second = self.computing(_asked_by.get)
        self._work()
        self._work()
        self.assertEqual((self.successResultOf(first), self.successResultOf(second)), ("a", ""))

    def test_garbage(self) -> None:
        """The garbage collector is disabled during computations, and enabled after a pause."""
        result = self.computing(gc.isenabled)
        failing = self.computing(int, "x")
        self._work()
        self.assertFalse(self.successResultOf(result))
        self._work()
        self.failureResultOf(failing, ValueError)
        self.clock.advance(QUIET_SECONDS / 2)
        self.computing(int)
        self.clock.advance(QUIET_SECONDS)
        self._work()
        self.assertFalse(gc.isenabled())
        self.clock.advance(QUIET_SECONDS)
        self.assertTrue(gc.isenabled())

    def test_garbage_in_pauses(self) -> None:
        """After some time without garbage collection, a short pause between computations is sufficient."""
        collected: list[float] = []
        self.patch(gc, "collect", lambda generation: collected.append(self.clock.seconds()))
        for _ in range(10):
            self.computing(self.clock.advance, 1)
            self._work()
            self.clock.advance(SHORT_PAUSE_SECONDS)
        self.assertEqual(len(collected), 2)
        self.assertEqual(
            [round(seconds) for seconds in collected], [COLLECTION_DUE_SECONDS, 2 * COLLECTION_DUE_SECONDS]
        )

    def test_garbage_without_pauses(self) -> None:
        """Without pauses, garbage is collected between two computations at the maximum interval."""
        collected: list[float] = []
        self.patch(gc, "collect", lambda generation: collected.append(self.clock.seconds()))
        for _ in range(25):
            self.computing(self.clock.advance, 1)
        for _ in range(25):
            self._work()
        self.assertEqual(collected, [MAX_UNCOLLECTED_SECONDS + 1, 2 * MAX_UNCOLLECTED_SECONDS + 2])

    def test_stop(self) -> None:
        """Stopping enables the garbage collector and leaves no delayed call."""
        self.computing(int)
        self._work()
        self.computing.stop()
        self.assertTrue(gc.isenabled())
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_garbage_disabled(self) -> None:
        """A garbage collector that was disabled before stays disabled."""
        gc.disable()
        self.addCleanup(gc.enable)
        self.computing(int)
        self._work()
        self.clock.advance(QUIET_SECONDS)
        self.assertFalse(gc.isenabled())

    def test_freeze(self) -> None:
        """Objects that existed before the freeze are excluded from later collections."""
        self.addCleanup(gc.unfreeze)
        objects = [{"a": [number]} for number in range(1000)]
        freeze()
        self.assertGreaterEqual(gc.get_freeze_count(), 2 * len(objects))
        self.assertFalse(any(one is objects for one in gc.get_objects()))
