"""Tests of L{kubetwist.server.flowcontrolsampler}."""

from __future__ import annotations

from typing import Any

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.flowcontrol.concurrencyallocation import ConcurrencyLimits
from kubetwist.flowcontrol.controller import PriorityLevelState
from kubetwist.flowcontrol.queueset import (
    QueueSet,
    QueueSetConfig,
)
from kubetwist.metrics.registry import HighWatermark, Histogram
from kubetwist.server.flowcontrolsampler import SAMPLE_INTERVAL, FlowControlSampler

_SECOND = 1_000_000_000


class FakeFlowControl:
    """Priority levels that are set by the test."""

    def __init__(self, clock: Clock) -> None:
        self.levels: dict[str, PriorityLevelState] = {}
        self.queued = {kind: HighWatermark(clock.seconds) for kind in ("readOnly", "mutating")}

    def add(self, name: str, seats: int) -> PriorityLevelState:
        """Add a level."""
        level = PriorityLevelState(
            name, "", False, {}, QueueSet(QueueSetConfig(seats, 2, 1, 5)), ConcurrencyLimits(seats, 0, 0), seats=seats
        )
        self.levels[name] = level
        return level


class FlowControlSamplerTests(SynchronousTestCase):
    """L{FlowControlSampler}."""

    def setUp(self) -> None:
        """Create a level and a sampler."""
        self.clock = Clock()
        self.flow = FakeFlowControl(self.clock)
        self.level = self.flow.add("a", 4)
        self.open = (0, 0)
        self.samples = FlowControlSampler(self.flow, self.clock, lambda: self.open, (10, 0))
        self.samples.start()
        self.addCleanup(self.samples.stop)

    def values_of(self, name: str) -> dict[tuple[str, ...], Histogram]:
        """Return the values of a metric by labels."""
        found: dict[tuple[str, ...], Any] = {}
        for reading in self.samples.collect():
            if reading.name == f"apiserver_flowcontrol_{name}":
                found.update(reading.values)
        return found

    def test_time(self) -> None:
        """Histograms count the nanoseconds by utilization."""
        self.clock.advance(SAMPLE_INTERVAL)
        self.level.queues.executing = 2
        self.clock.pump([SAMPLE_INTERVAL] * 3)
        self.clock.advance(10)
        seats = self.values_of("priority_level_seat_utilization")["a", "executing"]
        bounds = dict(zip(seats.bounds, seats.counts, strict=False))
        self.assertEqual(bounds[0.0], SAMPLE_INTERVAL * _SECOND)
        self.assertEqual(bounds[0.5], (3 * SAMPLE_INTERVAL + 10) * _SECOND)
        self.assertEqual(seats.sum, 0.5 * (3 * SAMPLE_INTERVAL + 10) * _SECOND)

    def test_ratios(self) -> None:
        """Demand and requests are counted relative to their limits."""
        self.level.demand.set(8, 0.0)
        self.level.queues.waiting = 5
        self.open = (5, 3)
        self.flow.queued["readOnly"].count = 1
        self.clock.advance(SAMPLE_INTERVAL)
        weight = SAMPLE_INTERVAL * _SECOND
        for name, labels, part in (
            ("demand_seats", ("a",), 2.0),
            ("priority_level_request_utilization", ("a", "waiting"), 0.5),
            ("priority_level_request_utilization", ("a", "executing"), 0.0),
            ("read_vs_write_current_requests", ("readOnly", "executing"), 0.5),
            ("read_vs_write_current_requests", ("readOnly", "waiting"), 0.1),
            ("read_vs_write_current_requests", ("mutating", "executing"), 3.0),
        ):
            self.assertEqual(self.values_of(name)[labels].sum, part * weight, (name, labels))

    def test_deleted_levels(self) -> None:
        """A deleted level has no series, and the number of stored series is limited."""
        for number in range(100):
            self.flow.add(f"l{number}", 1)
            self.clock.advance(SAMPLE_INTERVAL)
            del self.flow.levels[f"l{number}"]
        self.clock.advance(SAMPLE_INTERVAL)
        self.assertEqual(self.values_of("demand_seats").keys(), {("a",)})
        self.assertLess(len(self.samples._histograms), 60)

    def test_stopped(self) -> None:
        """Stopping leaves no delayed call."""
        self.samples.stop()
        self.samples.stop()
        self.assertEqual(self.clock.getDelayedCalls(), [])
