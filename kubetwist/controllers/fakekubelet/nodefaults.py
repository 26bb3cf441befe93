"""
Faults of simulated nodes, which annotations of the Node request:

- C{kubetwist.dev/lost}: C{"true"} stops the kubelet of the node: its lease, its status, the status of its pods, and its
  server,
- C{kubetwist.dev/pressure}: conditions that the kubelet reports: C{"MemoryPressure,DiskPressure,PIDPressure"}. Under
  C{MemoryPressure} it evicts pods of class C{BestEffort}.

@see: kubernetes, C{pkg/kubelet/nodestatus/setters.go}, C{pkg/kubelet/eviction/eviction_manager.go}.
"""

from __future__ import annotations

from typing import Final

from attrs import frozen

from ...api.record import Record
from ...api.resource import JSONObject
from ...api.times import seconds_since_epoch
from ...registry.stores import decoded_object

LOST: Final = "kubetwist.dev/lost"
PRESSURE: Final = "kubetwist.dev/pressure"
MEMORY_PRESSURE: Final = "MemoryPressure"
#: Reason and message of each condition, without and with pressure.
_CONDITIONS: Final = {
    MEMORY_PRESSURE: (
        ("KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("KubeletHasInsufficientMemory", "kubelet has insufficient memory available"),
    ),
    "DiskPressure": (
        ("KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("KubeletHasDiskPressure", "kubelet has disk pressure"),
    ),
    "PIDPressure": (
        ("KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("KubeletHasInsufficientPID", "kubelet has insufficient PID available"),
    ),
}
_READY: Final = ("Ready", "True", "KubeletReady", "kubelet is posting ready status")
#: Message of an eviction, with the default threshold of a kubelet. The available amount is below it.
EVICTION_MESSAGE: Final = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 64Mi. "
#: Seconds between two checks for evictions.
EVICTION_INTERVAL: Final = 10.0
#: The lowest priority of critical pods, which are not evicted.
_CRITICAL_PRIORITY: Final = 2_000_000_000


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


def eviction_wait(pod: JSONObject, since: float, now: float) -> float | None:
    """
    Return the seconds until a pod is evicted from a node under memory pressure; L{None} if it is not evicted.

    Pods that started before the pressure are evicted at once, later ones at the next check.

    @param since: When the pressure began.
    """
    status = pod.get("status") or {}
    if status.get("qosClass") != "BestEffort" or (pod["spec"].get("priority") or 0) >= _CRITICAL_PRIORITY:
        return None
    started = status.get("startTime")
    if not started:
        # The pod starts first.
        return EVICTION_INTERVAL
    started_at = seconds_since_epoch(started)
    return 0.0 if started_at < since else max(0.0, started_at + EVICTION_INTERVAL - now)
