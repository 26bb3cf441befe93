"""Tests for L{kubetwist.controllers.fakekubelet.nodefaults}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.record import Record
from kubetwist.controllers.fakekubelet.nodefaults import NO_FAULTS, NodeFaults, read_faults


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
