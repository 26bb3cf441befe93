"""Tests of L{kubetwist.flowcontrol.flowmetrics}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.flowcontrol.flowmetrics import FlowMetrics


class FlowMetricsTests(SynchronousTestCase):
    """L{FlowMetrics}."""

    def test_settle(self) -> None:
        """Requests that did not wait are added once, with one seat and no wait."""
        metrics = FlowMetrics()
        metrics.immediate_one_seat = 3
        metrics.dispatched = 1
        for _ in range(2):
            metrics.settle()
            self.assertEqual((metrics.dispatched, metrics.immediate_one_seat), (4, 0))
            self.assertEqual((metrics.widths.count, metrics.widths.sum), (3, 3.0))
            self.assertEqual((metrics.wait_executed.count, metrics.wait_executed.sum), (3, 0.0))
