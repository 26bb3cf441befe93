"""Tests for L{kubetwist.controllers.nodelifecycle.nodetaints}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.times import format_time
from kubetwist.controllers.nodelifecycle.nodetaints import eviction_delay, updated_taints

NOW = 1_800_000_000.0
NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"


class TaintTests(SynchronousTestCase):
    """L{updated_taints}."""

    def taints(self, conditions: dict[str, str], evict: bool = True, **spec: Any) -> list[str] | None:
        """Return keys and effects of the updated taints."""
        listed = [{"type": kind, "status": status} for kind, status in conditions.items()]
        taints = updated_taints({"spec": spec, "status": {"conditions": listed}}, NOW, evict=evict)
        return None if taints is None else [f"{one['key'].rpartition('/')[2]}:{one['effect']}" for one in taints]

    def test_conditions(self) -> None:
        """Taints follow the conditions and the specification."""
        self.assertIsNone(self.taints({"Ready": "True", "MemoryPressure": "False"}))
        self.assertEqual(self.taints({"Ready": "False"}), ["not-ready:NoExecute", "not-ready:NoSchedule"])
        self.assertEqual(self.taints({"Ready": "Unknown"}), ["unreachable:NoExecute", "unreachable:NoSchedule"])
        self.assertEqual(self.taints({"Ready": "Unknown"}, evict=False), ["unreachable:NoSchedule"])
        kinds = ("DiskPressure", "MemoryPressure", "NetworkUnavailable", "PIDPressure")
        expected = ["disk-pressure", "memory-pressure", "network-unavailable", "pid-pressure"]
        self.assertEqual(self.taints(dict.fromkeys(kinds, "True")), [f"{one}:NoSchedule" for one in expected])
        self.assertEqual(self.taints({"Ready": "True"}, unschedulable=True), ["unschedulable:NoSchedule"])

    def test_changes(self) -> None:
        """Other taints and the times of existing taints are kept, and obsolete taints go."""
        other = {"key": "mine", "effect": "NoExecute"}
        old = {"key": UNREACHABLE, "effect": "NoSchedule", "timeAdded": "t"}
        node = {"spec": {"taints": [other, old]}, "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}
        added = {"key": UNREACHABLE, "effect": "NoExecute", "timeAdded": format_time(NOW)}
        self.assertEqual(updated_taints(node, NOW, evict=True), [other, old, added])
        self.assertEqual(self.taints({"Ready": "True"}, taints=[other, old, added]), ["mine:NoExecute"])

    def test_new_node(self) -> None:
        """A node that has not reported keeps the taint from admission."""
        self.assertIsNone(self.taints({}, taints=[{"key": NOT_READY, "effect": "NoSchedule"}]))
        self.assertEqual(self.taints({"Ready": "True"}, taints=[{"key": NOT_READY, "effect": "NoSchedule"}]), [])


class DelayTests(SynchronousTestCase):
    """L{eviction_delay}."""

    def test_delays(self) -> None:
        """The shortest time of the tolerations in use counts, and without a toleration there is none."""
        taints = [{"key": UNREACHABLE, "effect": "NoExecute"}, {"key": "b", "effect": "NoExecute"}]

        def toleration(key: str, seconds: int | None = None) -> dict[str, Any]:
            limit = {} if seconds is None else {"tolerationSeconds": seconds}
            return {"key": key, "operator": "Exists", "effect": "NoExecute", **limit}

        self.assertEqual(eviction_delay(taints, []), 0.0)
        self.assertEqual(eviction_delay(taints, [toleration(UNREACHABLE, 300)]), 0.0)
        self.assertEqual(eviction_delay(taints, [toleration(UNREACHABLE, 300), toleration("b")]), 300.0)
        self.assertEqual(eviction_delay(taints, [toleration(UNREACHABLE, 300), toleration("b", 20)]), 20.0)
        self.assertEqual(eviction_delay(taints[:1], [toleration(UNREACHABLE, -5)]), 0.0)
        self.assertIsNone(eviction_delay(taints, [{"operator": "Exists"}]))
