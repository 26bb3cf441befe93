"""Rows of Tables for Pods, which summarize the containers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from attrs import define

from ....api.resource import JSONObject
from ...generic.printers.ages import AgeCell, Cell, age, parse_time
from ...generic.printers.columns import AGE, NAME, Column, Rows, core_field, wide
from ...generic.printers.texts import NONE, condition, name_of, spec_of, status_of

#: The reason of pods on unreachable nodes.
NODE_LOST = "NodeLost"


@define
class _Restarts:
    """The number of restarts of containers, and the time of the last one."""

    count: int = 0
    last: float = 0.0

    def add(self, container: JSONObject) -> None:
        self.count += container.get("restartCount", 0)
        ended = (container.get("lastState") or {}).get("terminated") or {}
        self.last = max(self.last, parse_time(ended.get("finishedAt")) or 0.0)

    def cell(self) -> AgeCell | str:
        if self.count and self.last:
            return AgeCell(self.last, f"{self.count} (", " ago)")
        return str(self.count)


def pod(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a pod; since 1.35, a failed container is the reason of a pod with a completed one."""
    return _pod(obj, shows_failures=True)


def pod_before(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a pod before 1.35."""
    return _pod(obj, shows_failures=False)


def _pod(obj: JSONObject, shows_failures: bool) -> Iterator[Cell]:
    """Return the cells of a pod: name, ready containers, status, restarts and age; and those of wide output."""
    spec, status, metadata = spec_of(obj), status_of(obj), obj["metadata"]
    reason = status.get("reason") or status.get("phase") or ""
    for one in status.get("conditions") or ():
        if one.get("type") == "PodScheduled" and one.get("reason") == "SchedulingGated":
            reason = "SchedulingGated"
    sidecars = _sidecars(spec)
    total = len(spec.get("containers") or ()) + len(sidecars)
    init_reason, ready, restarts, sidecar_restarts = _init_containers(spec, status, sidecars)
    initialized = condition(status, "Initialized")
    if init_reason and not (initialized is not None and initialized.get("status") == "True"):
        reason = init_reason
    else:
        restarts = sidecar_restarts
        reason, more_ready = _containers(status, init_reason or reason, restarts, shows_failures)
        ready += more_ready
    if metadata.get("deletionTimestamp"):
        if status.get("reason") == NODE_LOST:
            reason = "Unknown"
        elif status.get("phase") not in ("Succeeded", "Failed"):
            reason = "Terminating"
    yield name_of(obj)
    yield f"{ready}/{total}"
    yield reason
    yield restarts.cell()
    yield age(obj)
    addresses = status.get("podIPs") or ()
    yield (addresses[0].get("ip") if addresses else "") or NONE
    yield spec.get("nodeName") or NONE
    yield status.get("nominatedNodeName") or NONE
    yield _readiness_gates(spec, status)


def row_conditions(obj: JSONObject) -> list[JSONObject]:
    """Return the row conditions by which clients hide completed pods."""
    match status_of(obj).get("phase"):
        case "Succeeded":
            return [_completed("Succeeded", "The pod has completed successfully.")]
        case "Failed":
            return [_completed("Failed", "The pod failed.")]
    return []


def _completed(reason: str, message: str) -> JSONObject:
    return {"type": "Completed", "status": "True", "reason": reason, "message": message}


def _sidecars(spec: JSONObject) -> set[str]:
    """Return the names of the restartable init containers."""
    return {
        container.get("name", "")
        for container in spec.get("initContainers") or ()
        if container.get("restartPolicy") == "Always"
    }


def _init_containers(spec: JSONObject, status: JSONObject, sidecars: set[str]) -> tuple[str, int, _Restarts, _Restarts]:
    """Return the reason of the first init container that is not done (C{""} for none), ready sidecars, and restarts."""
    ready = 0
    restarts, sidecar_restarts = _Restarts(), _Restarts()
    for place, container in enumerate(status.get("initContainerStatuses") or ()):
        restarts.add(container)
        sidecar = container.get("name") in sidecars
        if sidecar:
            sidecar_restarts.add(container)
        state = container.get("state") or {}
        terminated, waiting = state.get("terminated"), state.get("waiting") or {}
        if terminated is not None and not terminated.get("exitCode"):
            continue
        if sidecar and container.get("started"):
            ready += bool(container.get("ready"))
            continue
        if terminated is not None:
            reason = terminated.get("reason") or _exit(terminated)
        elif waiting.get("reason") and waiting["reason"] != "PodInitializing":
            reason = waiting["reason"]
        else:
            reason = f"{place}/{len(spec.get('initContainers') or ())}"
        return f"Init:{reason}", ready, restarts, sidecar_restarts
    return "", ready, restarts, sidecar_restarts


def _containers(status: JSONObject, reason: str, restarts: _Restarts, shows_failures: bool) -> tuple[str, int]:
    """Return the reason of the first container that has one, and the number of ready containers."""
    ready = 0
    running = False
    failure = ""
    for container in reversed(status.get("containerStatuses") or ()):
        restarts.add(container)
        state = container.get("state") or {}
        terminated = state.get("terminated")
        if (state.get("waiting") or {}).get("reason"):
            reason = state["waiting"]["reason"]
        elif terminated is not None:
            reason = terminated.get("reason") or _exit(terminated)
            if shows_failures and terminated.get("exitCode"):
                failure = reason
        elif container.get("ready") and state.get("running") is not None:
            running = True
            ready += 1
    if reason == "Completed":
        fit = condition(status, "Ready")
        if running and fit is not None and fit.get("status") == "True":
            reason = "Running"
        elif failure:
            reason = failure
        elif running:
            reason = "NotReady"
    return reason, ready


def _exit(terminated: JSONObject) -> str:
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def _readiness_gates(spec: JSONObject, status: JSONObject) -> str:
    gates = spec.get("readinessGates") or ()
    if not gates:
        return NONE
    met = 0
    for gate in gates:
        gate_condition = condition(status, gate.get("conditionType", ""))
        met += gate_condition is not None and gate_condition.get("status") == "True"
    return f"{met}/{len(gates)}"


#: The columns of a kind's Tables.
COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = {
    "Pod": (
        NAME,
        Column("Ready", "The aggregate readiness state of this pod for accepting traffic."),
        Column("Status", "The aggregate status of the containers in this pod."),
        Column(
            "Restarts",
            "The number of times the containers in this pod have been restarted and when the last container in this "
            "pod has restarted.",
        ),
        AGE,
        wide("IP", core_field("PodStatus", "podIP")),
        wide("Node", core_field("PodSpec", "nodeName")),
        wide("Nominated Node", core_field("PodStatus", "nominatedNodeName")),
        wide("Readiness Gates", core_field("PodSpec", "readinessGates")),
    ),
}

#: Makes the cells of a kind's row.
ROWS: Final[Mapping[str, Rows]] = {
    "Pod": {"<1.35": pod_before, "": pod},
}
