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
from tests.audit.events import RecordingOutput, event


class BatchingTests(SynchronousTestCase):
    """Tests for L{BufferedBackend}."""

    def make(self, **settings: Any) -> BufferedBackend:
        """Create a backend with an output that records batches."""
        self.clock = Clock()
        self.output = RecordingOutput()
        self.counts = Counts()
        failures = PluginErrors("buffered", self.counts, self.clock)
        return BufferedBackend(self.output, BatchConfig(**settings), self.clock, failures)

    def sizes(self) -> list[int]:
        """Return the sizes of the batches."""
        return [len(batch) for batch in self.output.batches]

    def test_interfaces(self) -> None:
        """The backends and outputs implement their interfaces."""
        verifyObject(IAuditBackend, self.make())
        verifyObject(IAuditBackend, BlockingBackend(self.output, True))
        verifyObject(IAuditOutput, self.output)

    def test_full(self) -> None:
        """A full batch is sent immediately, and another one after the maximum wait."""
        batching = self.make(max_batch_size=3, max_batch_wait=10.0)
        for _ in range(4):
            self.assertIsNone(batching.process(event()))
        self.assertEqual(self.sizes(), [3])
        self.clock.advance(9.9)
        self.assertEqual(self.sizes(), [3])
        self.clock.advance(0.1)
        self.assertEqual(self.sizes(), [3, 1])

    def test_buffer(self) -> None:
        """Events that exceed the buffer are dropped and counted; events in flight count towards the buffer."""
        batching = self.make(max_batch_size=2, buffer_size=3)
        for _ in range(6):
            batching.process(event())
        self.assertEqual((self.sizes(), self.counts.errors), ([2], {"buffered": 3}))
        self.output.open[0].callback(False)
        batching.process(event())
        self.assertEqual(self.sizes(), [2, 2])

    def test_throttle(self) -> None:
        """Batches are throttled without losing events."""
        batching = self.make(max_batch_size=1, throttle_qps=2.0, throttle_burst=2)
        for _ in range(5):
            batching.process(event())
        self.assertEqual(self.sizes(), [1, 1])
        self.clock.advance(0.5)
        self.assertEqual(self.sizes(), [1, 1, 1])
        self.clock.pump([0.5, 0.5, 0.5])
        self.assertEqual(self.sizes(), [1] * 5)

    def test_stop(self) -> None:
        """Stopping sends all events, even if they are throttled, and waits for events in flight."""
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
        """The number of tokens is limited by the burst."""
        throttle = TokenBucket(10.0, 3, 0.0)
        self.assertEqual([throttle.try_acquire(100.0) for _ in range(4)], [0.0, 0.0, 0.0, 0.1])
        self.assertEqual(throttle.try_acquire(100.1), 0.0)


class BlockingTests(SynchronousTestCase):
    """Tests for L{BlockingBackend}."""

    def test_waits(self) -> None:
        """A request waits until its event is written; in strict mode it gets the result."""
        for strict in (True, False):
            output = RecordingOutput()
            waiting = BlockingBackend(output, strict).process(event())
            self.assertNoResult(waiting)
            output.open[0].callback(False)
            self.assertEqual(self.successResultOf(waiting), not strict)
