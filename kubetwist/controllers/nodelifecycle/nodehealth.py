"""
The health of nodes: when they last reported, and the conditions of nodes that no longer report.

@see: kubernetes, C{pkg/controller/nodelifecycle/node_lifecycle_controller.go}: C{tryUpdateNodeHealth}.
"""

from __future__ import annotations

from typing import Final

from attrs import define

from ...api.resource import JSONObject
from ...api.times import format_time

#: Seconds without reports after which a node is unhealthy (C{--node-monitor-grace-period}).
GRACE_PERIOD: Final = 50.0
#: The same before Kubernetes 1.32.
_GRACE_PERIOD_BEFORE_132: Final = 40.0
#: Seconds from its creation until a node must have reported (C{--node-startup-grace-period}).
STARTUP_GRACE_PERIOD: Final = 60.0
#: Seconds between two checks (C{--node-monitor-period}).
MONITOR_INTERVAL: Final = 5.0
#: Seconds after which a check is repeated before nodes are declared unhealthy.
CONFIRM_INTERVAL: Final = 1.0
#: Conditions that become unknown when a node no longer reports.
REPORTED_CONDITIONS: Final = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
_STOPPED: Final = "NodeStatusUnknown"
_NEVER: Final = "NodeStatusNeverUpdated"


def grace_period(release: str) -> float:
    """Return the grace period of a release of Kubernetes: C{"1.36"}."""
    _, _, minor = release.partition(".")
    return _GRACE_PERIOD_BEFORE_132 if minor.isdecimal() and int(minor) < 32 else GRACE_PERIOD


def node_condition(node: JSONObject, kind: str) -> JSONObject | None:
    """Return the condition of a node, or L{None}."""
    for one in (node.get("status") or {}).get("conditions") or ():
        if one.get("type") == kind:
            condition: JSONObject = one
            return condition
    return None


def ready_status(node: JSONObject) -> str:
    """Return the status of the condition C{Ready}; C{""} without it."""
    return str((node_condition(node, "Ready") or {}).get("status") or "")


def heartbeat_of(node: JSONObject) -> str | None:
    """
    Return the time of the last status that the kubelet of a node has reported, as stored.

    It is L{None} if the stored condition is not from a kubelet.
    """
    ready = node_condition(node, "Ready")
    if ready is None or ready.get("reason") in (_STOPPED, _NEVER):
        return None
    return str(ready.get("lastHeartbeatTime") or ready.get("lastTransitionTime") or "")


@define
class _Health:
    """
    The health of a node.

    @ivar deadline: When it becomes unhealthy without a further report.
    @ivar heartbeat: See L{heartbeat_of}.
    """

    deadline: float
    heartbeat: str | None


class NodeHealthMonitor:
    """
    Decides which nodes no longer report.

    A check compares one number for each node. It declares a node unhealthy only if a second check shortly after the
    first finds no progress: after a jump of the clock or a long pause of the process, nodes first get the time to
    report.
    """

    def __init__(self, grace_period: float = GRACE_PERIOD) -> None:
        """
        @param grace_period: Seconds without reports after which a node is unhealthy.
        """
        self._grace_period = grace_period
        self._nodes: dict[str, _Health] = {}
        self._unhealthy: set[str] = set()
        self._suspects: set[str] = set()

    def observe(self, name: str, created: float, heartbeat: str | None, now: float) -> None:
        """
        Record the state of a node.

        @param name: The name of the node.
        @param created: When it was created.
        @param heartbeat: See L{heartbeat_of}.
        @param now: The current time.
        """
        health = self._nodes.get(name)
        if health is None:
            deadline = created + STARTUP_GRACE_PERIOD if heartbeat is None else now + self._grace_period
            self._nodes[name] = _Health(deadline, heartbeat)
        elif heartbeat is not None and heartbeat != health.heartbeat:
            health.heartbeat = heartbeat
            self.renew(name, now)

    def renew(self, name: str, now: float) -> None:
        """Record that a node has reported."""
        health = self._nodes.get(name)
        if health is not None:
            health.deadline = max(health.deadline, now + self._grace_period)
            self._unhealthy.discard(name)

    def remove(self, name: str) -> None:
        """Forget a deleted node."""
        self._nodes.pop(name, None)
        self._unhealthy.discard(name)

    def is_unhealthy(self, name: str) -> bool:
        """Return whether a node no longer reports."""
        return name in self._unhealthy

    def check(self, now: float) -> tuple[list[str], float]:
        """
        Check all nodes.

        @return: The nodes that have become unhealthy, and the seconds until the next check.
        """
        overdue = {name for name, health in self._nodes.items() if health.deadline < now} - self._unhealthy
        confirmed, self._suspects = overdue == self._suspects, overdue
        if not overdue:
            return [], MONITOR_INTERVAL
        if not confirmed:
            return [], CONFIRM_INTERVAL
        self._unhealthy |= overdue
        self._suspects = set()
        return sorted(overdue), MONITOR_INTERVAL


def unknown_conditions(node: JSONObject, now: float) -> list[JSONObject] | None:
    """
    Return the conditions of a node that no longer reports; L{None} if they are stored already.

    @param now: The current time.
    """
    timestamp = format_time(now)
    old_conditions = (node.get("status") or {}).get("conditions") or ()
    stopped = {"status": "Unknown", "lastTransitionTime": timestamp, "reason": _STOPPED}
    stopped["message"] = "Kubelet stopped posting node status."
    conditions = [
        {**one, **stopped} if one.get("type") in REPORTED_CONDITIONS and one.get("status") != "Unknown" else one
        for one in old_conditions
    ]
    known = {one.get("type") for one in old_conditions}
    for kind in REPORTED_CONDITIONS:
        if kind not in known:
            conditions.append(
                {
                    "type": kind,
                    "status": "Unknown",
                    "lastHeartbeatTime": node["metadata"].get("creationTimestamp"),
                    "lastTransitionTime": timestamp,
                    "reason": _NEVER,
                    "message": "Kubelet never posted node status.",
                }
            )
    return None if conditions == list(old_conditions) else conditions
