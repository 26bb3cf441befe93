"""Tests for L{kubetwist.audit.buffered} and L{kubetwist.audit.errors}."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from kubetwist.audit.buffered import (
    BatchConfig,
    BlockingBackend,
    BufferedBackend,
    TokenBucket,
)
from kubetwist.audit.errors import (
    Counts,
    PluginErrors,
)
from kubetwist.interfaces import IAuditBackend, IAuditOutput
from tests.audit.events import Sent, event


class BatchingTests(SynchronousTestCase):
    """Tests for L{BufferedBackend}."""

    def make(self, **settings: Any) -> BufferedBackend:
        """One before an output that keeps."""
        self.clock = Clock()
        self.output = Sent()
        self.counts = Counts()
        failures = PluginErrors("buffered", self.counts, self.clock)
        return BufferedBackend(self.output, BatchConfig(**settings), self.clock, failures)

    def sizes(self) -> list[int]:
        """Of the batches so far."""
        return [len(batch) for batch in self.output.batches]

    def test_interfaces(self) -> None:
        """What collects and what does not provide the same interface, and so do the places that events go to."""
        verifyObject(IAuditBackend, self.make())
        verifyObject(IAuditBackend, BlockingBackend(self.output, True))
        verifyObject(IAuditOutput, self.output)

    def test_full(self) -> None:
        """A full batch is sent at once, and one that is not after a while."""
        batching = self.make(max_batch_size=3, max_batch_wait=10.0)
        for _ in range(4):
            self.assertIsNone(batching.process(event()))
        self.assertEqual(self.sizes(), [3])
        self.clock.advance(9.9)
        self.assertEqual(self.sizes(), [3])
        self.clock.advance(0.1)
        self.assertEqual(self.sizes(), [3, 1])

    def test_buffer(self) -> None:
        """What the buffer has no room for is lost and counted; what is on its way takes room."""
        batching = self.make(max_batch_size=2, buffer_size=3)
        for _ in range(6):
            batching.process(event())
        self.assertEqual((self.sizes(), self.counts.errors), ([2], {"buffered": 3}))
        self.output.open[0].callback(False)
        batching.process(event())
        self.assertEqual(self.sizes(), [2, 2])

    def test_throttle(self) -> None:
        """Batches come no faster than they may, and none is lost for that."""
        batching = self.make(max_batch_size=1, throttle_qps=2.0, throttle_burst=2)
        for _ in range(5):
            batching.process(event())
        self.assertEqual(self.sizes(), [1, 1])
        self.clock.advance(0.5)
        self.assertEqual(self.sizes(), [1, 1, 1])
        self.clock.pump([0.5, 0.5, 0.5])
        self.assertEqual(self.sizes(), [1] * 5)

    def test_stop(self) -> None:
        """At the end everything is sent, however few and however throttled, and what is on its way is waited for."""
        batching = self.make(max_batch_size=2, throttle_qps=0.1, throttle_burst=1)
        batching.start()
        for _ in range(5):
            batching.process(event())
        stopped = Deferred.fromCoroutine(batching.stop())
        self.assertEqual(self.sizes(), [2, 2, 1])
        self.assertNoResult(stopped)
        self.assertEqual(self.output.calls, ["start", "flush"])
        for sent in self.output.open:
            sent.callback(True)
        self.successResultOf(stopped)
        self.assertEqual(self.output.calls, ["start", "flush", "stop"])
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_bucket(self) -> None:
        """Tokens do not pile up beyond the burst."""
        throttle = TokenBucket(10.0, 3, 0.0)
        self.assertEqual([throttle.try_acquire(100.0) for _ in range(4)], [0.0, 0.0, 0.0, 0.1])
        self.assertEqual(throttle.try_acquire(100.1), 0.0)


class BlockingTests(SynchronousTestCase):
    """Tests for L{BlockingBackend}."""

    def test_waits(self) -> None:
        """Who made an event learns when it is written; and that it could not be, if they insist."""
        for strict in (True, False):
            output = Sent()
            waiting = BlockingBackend(output, strict).process(event())
            self.assertNoResult(waiting)
            output.open[0].callback(False)
            self.assertEqual(self.successResultOf(waiting), not strict)
