"""Tests for L{kubetwist.controllers.fakekubelet.nodefaults}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.record import Record
from kubetwist.api.times import format_time
from kubetwist.controllers.fakekubelet.nodefaults import NO_FAULTS, NodeFaults, eviction_wait, read_faults

NOW = 1_800_000_000.0


class NodeFaultTests(SynchronousTestCase):
    """L{read_faults} and L{NodeFaults}."""

    def read(self, **annotations: str) -> NodeFaults:
        """Return the faults of a node with annotations."""
        renamed = {f"kubetwist.dev/{name}": value for name, value in annotations.items()}
        return read_faults(Record.from_object({"metadata": {"name": "a", "annotations": renamed}}, 1))

    def test_annotations(self) -> None:
        """Annotations are read, and unknown values are ignored."""
        self.assertIs(self.read(other="true"), NO_FAULTS)
        self.assertEqual(self.read(lost="true"), NodeFaults(lost=True))
        self.assertEqual(self.read(lost="no", pressure="Pressure,,Ready"), NO_FAULTS)
        both = frozenset({"MemoryPressure", "PIDPressure"})
        self.assertEqual(self.read(pressure="MemoryPressure, PIDPressure"), NodeFaults(pressures=both))

    def test_conditions(self) -> None:
        """The conditions have the reasons and messages of a kubelet."""
        found = {one[0]: one[1:] for one in NodeFaults(pressures=frozenset({"DiskPressure"})).conditions()}
        self.assertEqual(found["DiskPressure"], ("True", "KubeletHasDiskPressure", "kubelet has disk pressure"))
        self.assertEqual(found["MemoryPressure"][:2], ("False", "KubeletHasSufficientMemory"))
        self.assertEqual(found["Ready"][0], "True")


class EvictionTests(SynchronousTestCase):
    """L{eviction_wait}."""

    def wait(self, started: float | None = NOW - 5, qos: str = "BestEffort", **spec: Any) -> float | None:
        """Return the time until a pod is evicted, if the pressure began a second ago."""
        status = {"qosClass": qos} | ({} if started is None else {"startTime": format_time(started)})
        return eviction_wait({"spec": spec, "status": status}, NOW - 1, NOW)

    def test_waits(self) -> None:
        """Pods from before the pressure are evicted at once, and later ones ten seconds after their start."""
        self.assertEqual(self.wait(), 0.0)
        self.assertEqual(self.wait(NOW), 10.0)
        self.assertEqual(self.wait(None), 10.0)

    def test_spared(self) -> None:
        """Pods with requests and critical pods are not evicted."""
        self.assertIsNone(self.wait(qos="Burstable"))
        self.assertIsNone(self.wait(priority=2_000_001_000))
        self.assertEqual(self.wait(priority=1000), 0.0)
