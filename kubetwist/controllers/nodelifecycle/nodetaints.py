"""
Taints of nodes by their conditions, and the time for which pods tolerate them.

@see: kubernetes, C{pkg/controller/nodelifecycle/node_lifecycle_controller.go}: C{doNoScheduleTaintingPass};
    C{pkg/controller/tainteviction/taint_eviction.go}: C{getMinTolerationTime}.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...api.resource import JSONObject
from ...api.times import format_time
from ..workloads.nodeselection import NO_EXECUTE, NO_SCHEDULE, tolerates
from .nodehealth import ready_status

_PREFIX: Final = "node.kubernetes.io/"
NOT_READY: Final = _PREFIX + "not-ready"
UNREACHABLE: Final = _PREFIX + "unreachable"
_UNSCHEDULABLE: Final = _PREFIX + "unschedulable"
_BY_CONDITION: Final = {
    ("Ready", "False"): NOT_READY,
    ("Ready", "Unknown"): UNREACHABLE,
    ("MemoryPressure", "True"): _PREFIX + "memory-pressure",
    ("DiskPressure", "True"): _PREFIX + "disk-pressure",
    ("PIDPressure", "True"): _PREFIX + "pid-pressure",
    ("NetworkUnavailable", "True"): _PREFIX + "network-unavailable",
}
#: The managed taints. Other taints are kept.
_MANAGED: Final = {(key, NO_SCHEDULE) for key in (*_BY_CONDITION.values(), _UNSCHEDULABLE)} | {
    (NOT_READY, NO_EXECUTE),
    (UNREACHABLE, NO_EXECUTE),
}


def desired_taints(node: JSONObject, *, evict: bool) -> set[tuple[str, str]]:
    """
    Return keys and effects of the managed taints that a node should have.

    @param evict: Whether a node that is not ready gets taints with the effect C{NoExecute}.
    """
    conditions = (node.get("status") or {}).get("conditions") or ()
    keys = {_BY_CONDITION.get((one.get("type"), one.get("status"))) for one in conditions}
    desired = {(key, NO_SCHEDULE) for key in keys if key is not None}
    if evict:
        desired |= {(key, NO_EXECUTE) for key in keys if key in (NOT_READY, UNREACHABLE)}
    spec = node.get("spec") or {}
    if spec.get("unschedulable"):
        desired.add((_UNSCHEDULABLE, NO_SCHEDULE))
    if not ready_status(node) and any(_identity(one) == (NOT_READY, NO_SCHEDULE) for one in spec.get("taints") or ()):
        # From admission: the node has not reported yet.
        desired.add((NOT_READY, NO_SCHEDULE))
    return desired


def evicts_pods(node: JSONObject) -> bool:
    """Return whether a node has a managed taint with the effect C{NoExecute}."""
    taints = (node.get("spec") or {}).get("taints") or ()
    return any(_identity(one) in ((NOT_READY, NO_EXECUTE), (UNREACHABLE, NO_EXECUTE)) for one in taints)


def updated_taints(node: JSONObject, now: float, *, evict: bool) -> list[JSONObject] | None:
    """
    Return the taints that a node should have; L{None} if it has them.

    @param now: The current time.
    @param evict: See L{desired_taints}.
    """
    desired = desired_taints(node, evict=evict)
    old_taints = (node.get("spec") or {}).get("taints") or ()
    managed = {_identity(one) for one in old_taints} & _MANAGED
    if managed == desired:
        return None
    kept = [one for one in old_taints if _identity(one) not in _MANAGED or _identity(one) in desired]
    added = sorted(desired - managed)
    return [*kept, *({"key": key, "effect": effect, "timeAdded": format_time(now)} for key, effect in added)]


def _identity(taint: JSONObject) -> tuple[str, str]:
    return taint.get("key") or "", taint.get("effect") or ""


def eviction_delay(taints: Sequence[JSONObject], tolerations: Sequence[JSONObject]) -> float | None:
    """
    Return for how many seconds a pod tolerates the C{NoExecute} taints of its node; L{None} for an unlimited time.

    @param taints: The taints with the effect C{NoExecute}.
    @param tolerations: The tolerations of the pod.
    """
    used = []
    for taint in taints:
        toleration = next((one for one in tolerations if tolerates(one, taint)), None)
        if toleration is None:
            return 0.0
        used.append(toleration)
    limits = [one["tolerationSeconds"] for one in used if one.get("tolerationSeconds") is not None]
    return float(max(0, min(limits))) if limits else None
