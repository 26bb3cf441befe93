"""
Faults of simulated nodes, which annotations of the Node request:

- C{kubetwist.dev/lost}: C{"true"} stops the kubelet of the node: its lease, its status, the status of its pods, and its
  server,
- C{kubetwist.dev/pressure}: conditions that the kubelet reports: C{"MemoryPressure,DiskPressure,PIDPressure"}. It then
  rejects and evicts pods (L{kubetwist.controllers.fakekubelet.evictions}).

@see: kubernetes, C{pkg/kubelet/nodestatus/setters.go}.
"""

from __future__ import annotations

from typing import Final

from attrs import frozen

from ...api.record import Record
from ...api.resource import JSONObject
from ...registry.stores import decoded_object
from .evictions import DISK_PRESSURE, MEMORY_PRESSURE, PID_PRESSURE

LOST: Final = "kubetwist.dev/lost"
PRESSURE: Final = "kubetwist.dev/pressure"
#: Reason and message of each condition, without and with pressure.
_CONDITIONS: Final = {
    MEMORY_PRESSURE: (
        ("KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("KubeletHasInsufficientMemory", "kubelet has insufficient memory available"),
    ),
    DISK_PRESSURE: (
        ("KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("KubeletHasDiskPressure", "kubelet has disk pressure"),
    ),
    PID_PRESSURE: (
        ("KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("KubeletHasInsufficientPID", "kubelet has insufficient PID available"),
    ),
}
_READY: Final = ("Ready", "True", "KubeletReady", "kubelet is posting ready status")


@frozen
class NodeFaults:
    """
    Faults of a simulated node.

    @ivar lost: Whether its kubelet has stopped.
    @ivar pressures: The types of conditions with pressure.
    """

    lost: bool = False
    pressures: frozenset[str] = frozenset()

    def conditions(self) -> list[tuple[str, str, str, str]]:
        """Return type, status, reason and message of the conditions that the kubelet reports."""
        found = []
        for kind, texts in _CONDITIONS.items():
            pressure = kind in self.pressures
            found.append((kind, "True" if pressure else "False", *texts[pressure]))
        return [*found, _READY]


NO_FAULTS: Final = NodeFaults()
_MARKS: Final = (LOST.encode(), PRESSURE.encode())


def read_faults(record: Record) -> NodeFaults:
    """Return the faults that the annotations of a Node request. Unknown values are ignored."""
    # Most nodes have no such annotation, and are not decoded.
    if not any(mark in record.item for mark in _MARKS):
        return NO_FAULTS
    return faults_of(decoded_object(record))


def faults_of(node: JSONObject) -> NodeFaults:
    """Return the faults that the annotations of a Node request. See L{read_faults}."""
    annotations = node["metadata"].get("annotations") or {}
    requested = {one.strip() for one in (annotations.get(PRESSURE) or "").split(",")}
    return NodeFaults(annotations.get(LOST) == "true", frozenset(requested & _CONDITIONS.keys()))
