"""Tests for the computation thread."""

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
from kubetwist.flowcontrol.computing import DUE, LONGEST, QUIET, SHORT, Computing, freeze

_asked_by: ContextVar[str] = ContextVar("asked_by", default="")


class Document:
    """What a computation works on."""


class ComputingTests(SynchronousTestCase):
    """Tests for L{Computing}."""

    def setUp(self) -> None:
        """Threads that the test runs step by step."""
        self.begun: list[tuple[Callable[..., Any], tuple[Any, ...], Deferred[Any]]] = []
        self.clock = Clock()
        self.computing = Computing(self._in_thread, self.clock)
        self.addCleanup(gc.enable)

    def _in_thread(self, function: Callable[..., Any], *arguments: Any) -> Deferred[Any]:
        result: Deferred[Any] = Deferred()
        self.begun.append((function, arguments, result))
        return result

    def _work(self) -> None:
        """Run the calls that the thread has begun."""
        function, arguments, result = self.begun.pop(0)
        try:
            value = function(*arguments)
        except Exception:
            result.errback()
        else:
            result.callback(value)

    def test_one_at_a_time(self) -> None:
        """Computations run one after the other, in the order of their submission."""
        results = [self.computing(lambda value: value * 2, number) for number in range(4)]
        self.assertEqual((len(self.begun), self.computing.waiting), (1, 3))
        for number, result in enumerate(results):
            self.assertNoResult(result)
            self._work()
            self.assertEqual(self.successResultOf(result), number * 2)
        self.assertEqual((len(self.begun), self.computing.waiting), (0, 0))

    def test_next_begins_first(self) -> None:
        """The thread begins the next computation before the caller handles the result of the last one."""
        seen: list[int] = []
        first = self.computing(int)
        self.computing(int)
        first.addCallback(lambda value: seen.append(len(self.begun)))
        self._work()
        self.assertEqual(seen, [1])

    def test_failure(self) -> None:
        """The caller gets the exception of a computation, and the next one runs."""
        failing, following = self.computing(int, "x"), self.computing(int, "1")
        self._work()
        self.failureResultOf(failing, ValueError)
        self._work()
        self.assertEqual(self.successResultOf(following), 1)

    def test_failure_holds_nothing(self) -> None:
        """The arguments of a failed computation are freed with the failure, without a garbage collection."""

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
        """A computation that is cancelled before its turn does not run, and the result of a later one is dropped."""
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
        """The garbage collector is off during computations, and on again after a while without any."""
        result = self.computing(gc.isenabled)
        failing = self.computing(int, "x")
        self._work()
        self.assertFalse(self.successResultOf(result))
        self._work()
        self.failureResultOf(failing, ValueError)
        self.clock.advance(QUIET / 2)
        self.computing(int)
        self.clock.advance(QUIET)
        self._work()
        self.assertFalse(gc.isenabled())
        self.clock.advance(QUIET)
        self.assertTrue(gc.isenabled())

    def test_garbage_in_pauses(self) -> None:
        """After some time without a garbage collection, a short pause between computations is sufficient for one."""
        collected: list[float] = []
        self.patch(gc, "collect", lambda generation: collected.append(self.clock.seconds()))
        for _ in range(10):
            self.computing(self.clock.advance, 1)
            self._work()
            self.clock.advance(SHORT)
        self.assertEqual(len(collected), 2)
        self.assertEqual([round(seconds) for seconds in collected], [DUE, 2 * DUE])

    def test_garbage_of_many(self) -> None:
        """If computations never stop, garbage is collected between two of them from time to time."""
        collected: list[float] = []
        self.patch(gc, "collect", lambda generation: collected.append(self.clock.seconds()))
        for _ in range(25):
            self.computing(self.clock.advance, 1)
        for _ in range(25):
            self._work()
        self.assertEqual(collected, [LONGEST + 1, 2 * LONGEST + 2])

    def test_stop(self) -> None:
        """When the server stops, the collector is on again, and no call remains scheduled."""
        self.computing(int)
        self._work()
        self.computing.stop()
        self.assertTrue(gc.isenabled())
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_garbage_of_others(self) -> None:
        """If other code has disabled the collector, it stays disabled."""
        gc.disable()
        self.addCleanup(gc.enable)
        self.computing(int)
        self._work()
        self.clock.advance(QUIET)
        self.assertFalse(gc.isenabled())

    def test_freeze(self) -> None:
        """Objects that existed before the freeze are not traversed by later collections."""
        self.addCleanup(gc.unfreeze)
        held = [{"a": [number]} for number in range(1000)]
        freeze()
        self.assertGreaterEqual(gc.get_freeze_count(), 2 * len(held))
        self.assertFalse(any(one is held for one in gc.get_objects()))
