"""Tests of L{kubetwist.server.reactordelay}."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.metrics.registry import Histogram
from kubetwist.server.reactordelay import INTERVAL, ReactorDelaySampler


class ReactorDelaySamplerTests(SynchronousTestCase):
    """L{ReactorDelaySampler}."""

    def setUp(self) -> None:
        """Create a sampler that measures."""
        self.clock = Clock()
        self.sampler = ReactorDelaySampler(self.clock)
        self.sampler.start()
        self.addCleanup(self.sampler.stop)

    def delays(self) -> Histogram:
        """Return the delays that were measured."""
        (snapshot,) = self.sampler.collect()
        ((_, delays),) = snapshot.values
        assert isinstance(delays, Histogram)
        return delays

    def test_delays(self) -> None:
        """A call that comes in time has no delay; one that the reactor keeps waiting has that delay."""
        self.clock.pump([INTERVAL] * 3)
        self.assertEqual((self.delays().count, self.delays().sum), (3, 0.0))
        self.clock.advance(INTERVAL + 0.75)
        self.assertEqual((self.delays().count, self.delays().sum), (4, 0.75))
        counts = dict(zip(self.delays().bounds, self.delays().counts, strict=False))
        self.assertEqual((counts[0.001], counts[1.0]), (3, 1))

    def test_stop(self) -> None:
        """After the end nothing is measured, and no call is left."""
        self.sampler.stop()
        self.sampler.stop()
        self.assertEqual(self.clock.getDelayedCalls(), [])
        self.assertEqual(self.delays().count, 0)
