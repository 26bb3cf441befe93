"""Tests for L{kubetwist.controllers.nodelifecycle.nodehealth}."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.times import format_time
from kubetwist.controllers.nodelifecycle.nodehealth import (
    CONFIRM_INTERVAL,
    GRACE_PERIOD,
    MONITOR_INTERVAL,
    NodeHealthMonitor,
    grace_period,
    heartbeat_of,
    unknown_conditions,
)

NOW = 1_800_000_000.0


class NodeHealthMonitorTests(SynchronousTestCase):
    """L{NodeHealthMonitor}."""

    def setUp(self) -> None:
        """Create a monitor of a node that has reported."""
        self.monitor = NodeHealthMonitor()
        self.monitor.observe("a", NOW - 1000, "1", NOW)

    def test_silence(self) -> None:
        """A node is unhealthy after the grace period without reports, which a second check confirms."""
        self.assertEqual(self.monitor.check(NOW + GRACE_PERIOD), ([], MONITOR_INTERVAL))
        self.assertEqual(self.monitor.check(NOW + GRACE_PERIOD + 1), ([], CONFIRM_INTERVAL))
        self.assertEqual(self.monitor.check(NOW + GRACE_PERIOD + 2), (["a"], MONITOR_INTERVAL))
        self.assertTrue(self.monitor.is_unhealthy("a"))
        self.assertEqual(self.monitor.check(NOW + GRACE_PERIOD + 7), ([], MONITOR_INTERVAL))

    def test_reports(self) -> None:
        """A renewed lease or a new heartbeat makes a node healthy, and the same heartbeat does not."""
        for _ in range(2):
            self.monitor.check(NOW + 100)
        self.monitor.observe("a", NOW - 1000, "1", NOW + 101)
        self.monitor.observe("a", NOW - 1000, None, NOW + 101)
        self.assertTrue(self.monitor.is_unhealthy("a"))
        self.monitor.observe("a", NOW - 1000, "2", NOW + 102)
        self.assertFalse(self.monitor.is_unhealthy("a"))
        self.assertEqual(self.monitor.check(NOW + 102 + GRACE_PERIOD), ([], MONITOR_INTERVAL))
        self.monitor.renew("a", NOW + 150)
        self.assertEqual(self.monitor.check(NOW + 150 + GRACE_PERIOD), ([], MONITOR_INTERVAL))

    def test_jump(self) -> None:
        """After a jump of the clock, nodes are healthy that report before the check is repeated."""
        self.monitor.observe("b", NOW - 1000, "1", NOW)
        self.monitor.observe("c", NOW - 1000, "1", NOW)
        later = NOW + 3600
        self.assertEqual(self.monitor.check(later), ([], CONFIRM_INTERVAL))
        self.monitor.renew("a", later)
        # There was progress: the remaining nodes get more time.
        self.assertEqual(self.monitor.check(later), ([], CONFIRM_INTERVAL))
        self.monitor.renew("b", later)
        self.assertEqual(self.monitor.check(later), ([], CONFIRM_INTERVAL))
        self.assertEqual(self.monitor.check(later), (["c"], MONITOR_INTERVAL))

    def test_startup(self) -> None:
        """A new node has 60 seconds to report."""
        self.monitor.remove("a")
        self.monitor.observe("new", NOW, None, NOW)
        self.assertEqual(self.monitor.check(NOW + 60), ([], MONITOR_INTERVAL))
        self.assertEqual([self.monitor.check(NOW + 61)[0] for _ in range(2)], [[], ["new"]])
        self.monitor.remove("new")
        self.monitor.renew("new", NOW)
        self.assertFalse(self.monitor.is_unhealthy("new"))
        self.assertEqual(self.monitor.check(NOW + 1000), ([], MONITOR_INTERVAL))

    @given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 30)), max_size=40))
    def test_never_early(self, reports: list[tuple[str, int]]) -> None:
        """No node that has reported within the grace period is declared unhealthy."""
        monitor, now, last = NodeHealthMonitor(), NOW, dict.fromkeys("abc", NOW)
        for name in "abc":
            monitor.observe(name, NOW, "1", NOW)
        for name, seconds in reports:
            now += seconds
            monitor.renew(name, now)
            last[name] = now
            for found in monitor.check(now)[0]:
                self.assertGreater(now - last[found], GRACE_PERIOD)
            self.assertFalse(monitor.is_unhealthy(name))

    def test_releases(self) -> None:
        """The grace period is longer since Kubernetes 1.32."""
        self.assertEqual([grace_period(one) for one in ("1.31", "1.32", "1.36", "")], [40.0, 50.0, 50.0, 50.0])


class ConditionTests(SynchronousTestCase):
    """L{unknown_conditions} and L{heartbeat_of}."""

    def node(self, *conditions: dict[str, str]) -> Any:
        """Return a node."""
        meta = {"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z"}
        return {"metadata": meta, "status": {"conditions": list(conditions)}}

    def test_unknown(self) -> None:
        """Reported conditions become unknown, and missing ones are added."""
        times = {"lastHeartbeatTime": "h", "lastTransitionTime": "t"}
        other = {"type": "NetworkUnavailable", "status": "False", **times}
        node = self.node({"type": "Ready", "status": "True", "reason": "KubeletReady", **times}, other)
        self.assertEqual(heartbeat_of(node), "h")
        conditions = unknown_conditions(node, NOW)
        assert conditions is not None
        ready = {
            "type": "Ready",
            "status": "Unknown",
            "lastHeartbeatTime": "h",
            "lastTransitionTime": format_time(NOW),
            "reason": "NodeStatusUnknown",
            "message": "Kubelet stopped posting node status.",
        }
        memory = {
            "type": "MemoryPressure",
            "status": "Unknown",
            "lastHeartbeatTime": "2026-01-01T00:00:00Z",
            "lastTransitionTime": format_time(NOW),
            "reason": "NodeStatusNeverUpdated",
            "message": "Kubelet never posted node status.",
        }
        self.assertEqual(conditions[:3], [ready, other, memory])
        self.assertEqual(len(conditions), 5)
        node["status"]["conditions"] = conditions
        self.assertIsNone(unknown_conditions(node, NOW + 10))
        self.assertIsNone(heartbeat_of(node))
        self.assertIsNone(heartbeat_of({"metadata": {}}))
