"""
Computes the status of a pod on a simulated node at a time, as a kubelet would report it.

Nothing runs. The behavior of containers is set by annotations, or by their images (L{containerbehavior}). Each
container exits and is restarted independently (L{containerstatus}).

@see: kubernetes, C{pkg/kubelet/kubelet_pods.go}, C{pkg/kubelet/status/generate.go}.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from attrs import evolve, frozen

from ...api.resource import JSONObject
from ...api.times import format_time, seconds_since_epoch
from ..fakeimages import FakeImages
from ..workloads.pods import ENDED, condition_of, phase_of
from .containerbehavior import is_sidecar, read_behavior
from .containerstatus import (
    CRASH_LOOP,
    SIGKILL_EXIT_CODE,
    ContainerEvent,
    ContainerResult,
    ContainerSimulator,
    PodTerms,
    end_status,
)

#: Exit code of a process that was terminated by SIGTERM.
_SIGTERM_EXIT_CODE: Final = 143
_INIT: Final = "initContainers"
_DEFAULT_IMAGES: Final = FakeImages()


@frozen
class PodAddresses:
    """
    IP addresses of a pod.

    @ivar host_ip: The address of the node.
    @ivar pod_ip: The address of the pod; the address of the node if the pod uses the host network.
    """

    host_ip: str
    pod_ip: str


def stop_wait(pod: JSONObject, now: float, images: FakeImages = _DEFAULT_IMAGES) -> float:
    """
    Return the seconds until all containers of a deleted pod have stopped; 0 if they have.

    @param images: The behavior of images.
    """
    meta = pod["metadata"]
    if phase_of(pod) in ENDED or not (pod.get("status") or {}).get("containerStatuses"):
        return 0.0
    grace = float(meta.get("deletionGracePeriodSeconds") or 0)
    deleted_at = seconds_since_epoch(meta["deletionTimestamp"]) - grace
    stop = max((read_behavior(pod, one, images).stop for one in pod["spec"].get("containers") or ()), default=0.0)
    return max(0.0, deleted_at + min(stop, grace) - now)


class PodStatusSimulator:
    """
    Computes the status of a pod at a time.

    @ivar status: The status.
    @ivar wait: Seconds until it changes; L{None} for never.
    @ivar events: The events of its containers since the old status.
    """

    def __init__(
        self, pod: JSONObject, addresses: PodAddresses, now: float, images: FakeImages = _DEFAULT_IMAGES
    ) -> None:
        self._pod = pod
        self._spec: JSONObject = pod["spec"]
        self._addresses = addresses
        self._images = images
        self._now = now
        self._now_text = format_time(now)
        meta = pod["metadata"]
        self._terms = PodTerms(
            meta["name"],
            meta.get("namespace") or "",
            meta["uid"],
            addresses.pod_ip,
            self._spec.get("restartPolicy") or "Always",
            now,
            self._now_text,
        )
        self._old_status: JSONObject = pod.get("status") or {}
        self.wait: float | None = None
        self.events: list[ContainerEvent] = []
        self.status: JSONObject = dict(self._old_status)
        self._generation = meta.get("generation") or 0
        if phase_of(pod) not in ENDED:
            self._compute()

    def stopped(self) -> JSONObject:
        """Return the status after all containers have stopped."""
        if phase_of(self._pod) in ENDED or not self._old_status.get("containerStatuses"):
            return dict(self._old_status)
        self._set_terminated(_SIGTERM_EXIT_CODE, "", "")
        return self.status

    def evicted(self, message: str) -> JSONObject:
        """
        Return the status after the kubelet has evicted the pod.

        @param message: Describes the missing resource.
        """
        self._set_terminated(SIGKILL_EXIT_CODE, "Evicted", message)
        disrupted = self._condition("DisruptionTarget", True, {"reason": "TerminationByKubelet", "message": message})
        conditions = [one for one in self.status["conditions"] if one["type"] != "DisruptionTarget"]
        self.status["conditions"] = [*conditions, disrupted]
        return self.status

    # --- phases

    def _compute(self) -> None:
        status = self.status
        status["startTime"] = self._old_status.get("startTime") or self._now_text
        status["hostIP"] = self._addresses.host_ip
        status["hostIPs"] = [{"ip": self._addresses.host_ip}]
        limit = self._spec.get("activeDeadlineSeconds")
        if limit is not None:
            remaining = seconds_since_epoch(status["startTime"]) + limit - self._now
            if remaining <= 0:
                message = "Pod was active on the node longer than the specified deadline"
                self._set_terminated(SIGKILL_EXIT_CODE, "DeadlineExceeded", message)
                status["phase"] = "Failed"
                return
            self._check_after(remaining)
        status["podIP"] = self._addresses.pod_ip
        status["podIPs"] = [{"ip": self._addresses.pod_ip}]
        inits = self._run_init_containers()
        incomplete = [name for name, one in inits.items() if not self._is_initialized(name, one)]
        if any(one.exit_code for one in inits.values()):
            self._set_init_failed(inits, incomplete)
            return
        mains = self._run_containers(waiting=bool(incomplete))
        if mains and all(one.exit_code is not None for one in mains.values()):
            status["containerStatuses"] = [one.status for one in mains.values()]
            code = next((one.exit_code for one in mains.values() if one.exit_code), 0)
            self._set_statuses("initContainerStatuses", inits)
            self._end_sidecars()
            self._set_phase_ended(code)
            return
        for one in (*inits.values(), *mains.values()):
            if one.wait is not None:
                self._check_after(one.wait)
        self._set_statuses("initContainerStatuses", inits)
        self._set_statuses("containerStatuses", mains)
        self._ephemeral()
        waiting = any("waiting" in one.status["state"] and not one.status["lastState"] for one in mains.values())
        status["phase"] = "Pending" if incomplete or waiting else "Running"
        checked = [*(self._sidecar(name, one) for name, one in inits.items()), *mains.values()]
        unready = [one.status["name"] for one in checked if one is not None and not one.status["ready"]]
        self._conditions(not unready, unready, incomplete=incomplete)

    def _run_init_containers(self) -> dict[str, ContainerResult]:
        """
        Return the states of the init containers by name.

        They start one after the other: when the one before has succeeded, or has started, if it is a sidecar. When the
        containers have been started, sidecars are restarted independently of each other.
        """
        old_statuses = self._old_container_statuses("initContainerStatuses")
        initialized = self._is_started()
        blocked = False
        results = {}
        for spec in self._spec.get(_INIT) or ():
            name = spec["name"]
            old_status = old_statuses.get(name)
            behavior = read_behavior(self._pod, spec, self._images, init=True)
            simulator = ContainerSimulator(self._terms, spec, behavior, old_status, _INIT)
            if initialized and not is_sidecar(spec) and old_status is not None:
                results[name] = ContainerResult(old_status)
            elif blocked:
                results[name] = simulator.waiting("PodInitializing")
            else:
                results[name] = simulator.compute()
                self.events += results[name].events
                blocked = not (initialized or self._is_initialized(name, results[name]))
        return results

    def _is_started(self) -> bool:
        """Return whether a container that is no init container has been started."""
        statuses = self._old_container_statuses("containerStatuses").values()
        return any(
            {"running", "terminated"} & (one.get("state") or {}).keys() or one.get("lastState") for one in statuses
        )

    def _is_initialized(self, name: str, result: ContainerResult) -> bool:
        """Return whether the next container can start after an init container."""
        if self._sidecar(name, result) is not None:
            return bool(result.status["started"]) or self._is_started()
        terminated = result.status["state"].get("terminated")
        return terminated is not None and not terminated["exitCode"]

    def _sidecar(self, name: str, result: ContainerResult) -> ContainerResult | None:
        """Return the state of an init container if it is a sidecar."""
        found = any(one["name"] == name and is_sidecar(one) for one in self._spec.get(_INIT) or ())
        return result if found else None

    def _run_containers(self, *, waiting: bool) -> dict[str, ContainerResult]:
        """
        Return the states of the containers by name.

        @param waiting: Whether they wait for init containers.
        """
        old_statuses = self._old_container_statuses("containerStatuses")
        results = {}
        for spec in self._spec.get("containers") or ():
            name = spec["name"]
            behavior = read_behavior(self._pod, spec, self._images)
            simulator = ContainerSimulator(self._terms, spec, behavior, old_statuses.get(name))
            results[name] = simulator.waiting("PodInitializing") if waiting else simulator.compute()
            self.events += results[name].events
        return results

    def _set_statuses(self, field: str, results: Mapping[str, ContainerResult]) -> None:
        if results:
            self.status[field] = [one.status for one in results.values()]

    def _set_init_failed(self, inits: Mapping[str, ContainerResult], incomplete: Sequence[str]) -> None:
        """Set the status after an init container has failed that is not restarted."""
        self._set_statuses("initContainerStatuses", inits)
        mains = self._run_containers(waiting=True)
        self._set_statuses("containerStatuses", mains)
        self._end_sidecars()
        self.status["phase"] = "Failed"
        self._conditions(False, list(mains), "PodFailed", incomplete=incomplete)

    def _set_terminated(self, code: int, reason: str, message: str) -> None:
        """
        Set the status after all containers have been stopped.

        @param code: The exit code of the running containers.
        @param reason: The reason in the status; C{""} for none.
        @param message: Its message.
        """
        finished = [
            {**end_status(one, code, self._now_text), "ready": False, "started": False}
            for one in self._old_container_statuses("containerStatuses").values()
        ]
        self.status["containerStatuses"] = finished
        if reason:
            self.status["reason"], self.status["message"] = reason, message
        self._end_sidecars()
        self._set_phase_ended(code)

    def _set_phase_ended(self, code: int) -> None:
        self.wait = None
        self.status["phase"] = "Failed" if code else "Succeeded"
        names = [one["name"] for one in self.status["containerStatuses"]]
        self._conditions(False, names, "PodFailed" if code else "PodCompleted")

    def _end_sidecars(self) -> None:
        """Stop the sidecars, and an init container that runs."""
        statuses = self.status.get("initContainerStatuses") or ()
        ended = [
            {**end_status(one, 0, self._now_text), "ready": False, "started": False}
            if "running" in one["state"] or (one["state"].get("waiting") or {}).get("reason") == CRASH_LOOP
            else one
            for one in statuses
        ]
        if ended:
            self.status["initContainerStatuses"] = ended

    def _check_after(self, seconds: float) -> None:
        self.wait = seconds if self.wait is None else min(self.wait, seconds)

    # --- containers

    def _old_container_statuses(self, field: str) -> dict[str, JSONObject]:
        return {one["name"]: one for one in self._old_status.get(field) or ()}

    def _ephemeral(self) -> None:
        old_statuses = self._old_container_statuses("ephemeralContainerStatuses")
        statuses = []
        for one in self._spec.get("ephemeralContainers") or ():
            behavior = read_behavior(self._pod, {"name": one["name"]}, _DEFAULT_IMAGES, init=True)
            simulator = ContainerSimulator(
                self._terms,
                {**one, "restartPolicy": "Always"},
                evolve(behavior, seconds=None, ready=False),
                old_statuses.get(one["name"]),
                "ephemeralContainers",
            )
            status = dict(simulator.compute().status)
            del status["started"]
            statuses.append(status)
        if statuses:
            self.status["ephemeralContainerStatuses"] = statuses

    # --- conditions

    def _conditions(
        self, ready: bool, unready: Sequence[str], done: str = "", *, incomplete: Sequence[str] = ()
    ) -> None:
        """
        Set the conditions.

        @param ready: Whether the pod is ready.
        @param unready: The names of the containers that are not ready.
        @param done: The reason why the pod will never be ready again; C{""} if it may.
        @param incomplete: The names of the init containers that have not completed.
        """
        unready_reason = {
            "reason": "ContainersNotReady",
            "message": f"containers with unready status: [{' '.join(unready)}]",
        }
        if done:
            unready_reason = {"reason": done}
        desired: dict[str, tuple[bool, dict[str, str]]] = {
            "PodReadyToStartContainers": (self.status["phase"] not in ENDED, {}),
            "Initialized": (True, {"reason": "PodCompleted"} if done == "PodCompleted" else {}),
            "Ready": (ready, {} if ready else unready_reason),
            "ContainersReady": (ready, {} if ready else unready_reason),
        }
        if incomplete:
            message = f"containers with incomplete status: [{' '.join(incomplete)}]"
            desired["Initialized"] = (False, {"reason": "ContainersNotInitialized", "message": message})
        failed_gates = self._failed_gates() if ready else []
        if failed_gates:
            desired["Ready"] = (False, {"reason": "ReadinessGatesNotReady", "message": ", ".join(failed_gates)})
        conditions = [self._condition(kind, *status_and_reason) for kind, status_and_reason in desired.items()]
        scheduled = condition_of(self._pod, "PodScheduled")
        if scheduled is None or scheduled.get("status") != "True":
            conditions.append(self._condition("PodScheduled", True, {}))
        else:
            conditions.append({**scheduled, **self._observed_generation()})
        types = {one["type"] for one in conditions}
        other_conditions = [one for one in self._old_status.get("conditions") or () if one.get("type") not in types]
        self.status["conditions"] = conditions + other_conditions
        if self._generation:
            self.status["observedGeneration"] = self._generation

    def _failed_gates(self) -> list[str]:
        messages = []
        for gate in self._spec.get("readinessGates") or ():
            kind = gate["conditionType"]
            condition = condition_of(self._pod, kind)
            if condition is None:
                messages.append(f'corresponding condition of pod readiness gate "{kind}" does not exist.')
            elif condition.get("status") != "True":
                message = f'the status of pod readiness gate "{kind}" is not "True", but {condition.get("status")}'
                messages.append(message)
        return messages

    def _observed_generation(self) -> JSONObject:
        return {"observedGeneration": self._generation} if self._generation else {}

    def _condition(self, kind: str, holds: bool, reason: Mapping[str, str]) -> JSONObject:
        old_condition = condition_of(self._pod, kind)
        status = "True" if holds else "False"
        since = self._now_text
        if (
            old_condition is not None
            and old_condition.get("status") == status
            and old_condition.get("lastTransitionTime")
        ):
            since = old_condition["lastTransitionTime"]
        return {
            "type": kind,
            "status": status,
            "lastProbeTime": None,
            "lastTransitionTime": since,
            **reason,
            **self._observed_generation(),
        }
