"""
Computes the status of a pod on a simulated node at a time, as a kubelet would report it.

Nothing runs. The behavior of a pod is set by annotations, or by its images (L{kubetwist.controllers.fakeimages}):

- C{kubetwist.dev/run-seconds}: seconds until its containers exit,
- C{kubetwist.dev/exit-code}: their exit code; C{"1,0"} is 1 for the first run and 0 for later ones,
- C{kubetwist.dev/stop-seconds}: seconds until they exit when the pod is deleted, within its grace period,
- C{kubetwist.dev/ready}: C{"false"} keeps the pod unready,
- C{kubetwist.dev/fail-probes}: probes that fail: C{"liveness,readiness"}.

@see: kubernetes, C{pkg/kubelet/kubelet_pods.go}, C{pkg/kubelet/status/generate.go}.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Final

from attrs import frozen

from ...api.resource import JSONObject
from ...api.times import format_time, seconds_since_epoch
from ...registry.core.node.kubelets import SIMULATED_RUNTIME_PREFIX
from ..fakeimages import FakeImages
from ..workloads.pods import ENDED, condition_of, phase_of
from .probes import ProbeTimes

_PREFIX: Final = "kubetwist.dev/"
RUN_SECONDS: Final = _PREFIX + "run-seconds"
EXIT_CODE: Final = _PREFIX + "exit-code"
STOP_SECONDS: Final = _PREFIX + "stop-seconds"
READY: Final = _PREFIX + "ready"
FAIL_PROBES: Final = _PREFIX + "fail-probes"
#: Default seconds until the containers of a job's pod exit.
_JOB_SECONDS: Final = 1.0
#: First and maximum delay, in seconds, until a container is restarted. The delay doubles after each restart.
_CRASH_BACKOFF_INITIAL: Final = 10.0
_CRASH_BACKOFF_MAX: Final = 300.0
#: Exit code of a process that was terminated by SIGTERM.
_SIGTERM_EXIT_CODE: Final = 143
#: Exit code of a process that was killed.
_SIGKILL_EXIT_CODE: Final = 137
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


@frozen
class SimulatedBehavior:
    """
    Simulated behavior of the containers of a pod.

    @ivar seconds: Seconds until they exit; L{None} for never.
    @ivar codes: Exit codes of the first and of later runs.
    @ivar ready: Whether the pod becomes ready.
    @ivar delay: Seconds until it is ready.
    @ivar stop: Seconds from SIGTERM to exit.
    @ivar pulled: Whether the images can be pulled.
    @ivar unready_after: Seconds until a readiness probe has failed; L{None} for never.
    @ivar killed_after: Seconds until a liveness or startup probe has failed; L{None} for never.
    """

    seconds: float | None
    codes: tuple[int, ...]
    ready: bool
    delay: float
    stop: float
    pulled: bool
    unready_after: float | None = None
    killed_after: float | None = None

    def code(self, restarts: int) -> int:
        """Return the exit code after a number of restarts."""
        return self.codes[min(restarts, len(self.codes) - 1)]


def read_behavior(pod: JSONObject, images: FakeImages = _DEFAULT_IMAGES) -> SimulatedBehavior:
    """
    Return the behavior of a pod from its annotations and images. Invalid annotations are ignored.

    All containers of a pod exit together: with the first one that its image lets exit.

    @param images: The behavior of images.
    """
    annotations, spec = pod["metadata"].get("annotations") or {}, pod["spec"]
    containers = spec.get("containers") or ()
    behaviors = [images.find(one.get("image") or "") for one in containers]
    codes = tuple(_numbers(annotations.get(EXIT_CODE)))
    seconds = _seconds(annotations.get(RUN_SECONDS))
    durations = [one.run_for for one in behaviors if one.run_for is not None]
    if seconds is None and durations:
        seconds = min(durations)
    elif seconds is None and (codes or _of_job(pod)):
        seconds = _JOB_SECONDS
    stop = _seconds(annotations.get(STOP_SECONDS))
    probes = ProbeTimes(annotations.get(FAIL_PROBES) or "")
    for container, behavior in zip(containers, behaviors, strict=True):
        probes.add(container, behavior)
    for container in _sidecars(spec):
        probes.add(container, images.find(container.get("image") or ""))
    return SimulatedBehavior(
        seconds,
        codes or max((one.exit for one in behaviors if one.exit), default=(0,)),
        annotations.get(READY) != "false" and all(one.ready for one in behaviors),
        probes.ready_after,
        max((one.stop_after for one in behaviors), default=0.0) if stop is None else stop,
        not any(one.pull_error for one in behaviors),
        probes.unready_after,
        probes.killed_after,
    )


def _of_job(pod: JSONObject) -> bool:
    owners = pod["metadata"].get("ownerReferences") or ()
    return any(one.get("controller") and one.get("kind") == "Job" for one in owners)


def _seconds(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if 0 <= number < 1e9 else None


def _numbers(text: str | None) -> list[int]:
    try:
        return [int(one) % 256 for one in (text or "").split(",", 100)[:100]]
    except ValueError:
        return []


def _sidecars(spec: JSONObject) -> list[JSONObject]:
    return [one for one in spec.get("initContainers") or () if one.get("restartPolicy") == "Always"]


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
    return max(0.0, deleted_at + min(read_behavior(pod, images).stop, grace) - now)


class PodStatusSimulator:
    """Computes C{status}, the status of a pod at a time, and C{wait}, the seconds until it changes, or L{None}."""

    def __init__(
        self, pod: JSONObject, addresses: PodAddresses, now: float, images: FakeImages = _DEFAULT_IMAGES
    ) -> None:
        self._pod = pod
        self._spec: JSONObject = pod["spec"]
        self._addresses = addresses
        self._now = now
        self._now_text = format_time(now)
        self._behavior = read_behavior(pod, images)
        self._old_status: JSONObject = pod.get("status") or {}
        self.wait: float | None = None
        self.status: JSONObject = dict(self._old_status)
        self._generation = pod["metadata"].get("generation") or 0
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
        self._set_terminated(_SIGKILL_EXIT_CODE, "Evicted", message)
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
                self._set_terminated(137, "DeadlineExceeded", message)
                status["phase"] = "Failed"
                return
            self._check_after(remaining)
        if not self._behavior.pulled:
            self._set_pull_error()
            return
        status["podIP"] = self._addresses.pod_ip
        status["podIPs"] = [{"ip": self._addresses.pod_ip}]
        self._set_running()

    def _set_running(self) -> None:
        """Set the status for containers that run, exit, and are restarted."""
        old_statuses = self._old_container_statuses("containerStatuses")
        containers = self._spec.get("containers") or ()
        restarts = max((one.get("restartCount") or 0 for one in old_statuses.values()), default=0)
        state: JSONObject = next((one.get("state") or {} for one in old_statuses.values()), {})
        started_at = self._now
        if "running" in state:
            started_at = seconds_since_epoch(state["running"]["startedAt"])
        elif "terminated" in state or (state.get("waiting") or {}).get("reason") == "CrashLoopBackOff":
            last = next(iter(old_statuses.values()))
            finished_at = (state.get("terminated") or (last.get("lastState") or {}).get("terminated") or {}).get(
                "finishedAt"
            )
            wait = min(_CRASH_BACKOFF_INITIAL * 2.0 ** min(restarts, 30), _CRASH_BACKOFF_MAX)
            due = (seconds_since_epoch(finished_at) if finished_at else self._now) + wait
            if due > self._now:
                self._check_after(due - self._now)
                self._set_crash_loop(old_statuses)
                return
            restarts += 1
        seconds, killed_after = self._behavior.seconds, self._behavior.killed_after
        killed = killed_after is not None and (seconds is None or killed_after < seconds)
        if killed:
            seconds = killed_after
        if seconds is not None and started_at + seconds <= self._now:
            code = _SIGKILL_EXIT_CODE if killed else self._behavior.code(restarts)
            policy = self._spec.get("restartPolicy") or "Always"
            if policy == "Never" or (policy == "OnFailure" and not code):
                self._set_terminated(code, "", "")
            else:
                self._check_after(min(_CRASH_BACKOFF_INITIAL * 2.0 ** min(restarts, 30), _CRASH_BACKOFF_MAX))
                self._set_crash_loop({name: self._with_end(one, code) for name, one in old_statuses.items()})
            return
        if seconds is not None:
            self._check_after(started_at + seconds - self._now)
        until_ready = started_at + self._behavior.delay - self._now
        if until_ready > 0:
            self._check_after(until_ready)
        ready = until_ready <= 0 and self._behavior.ready
        unready_after = self._behavior.unready_after
        if unready_after is not None:
            until_unready = started_at + unready_after - self._now
            ready = ready and until_unready > 0
            if until_unready > 0:
                self._check_after(until_unready)
        running = {"running": {"startedAt": format_time(started_at)}}
        self.status["phase"] = "Running"
        self.status["containerStatuses"] = [
            self._container(one, running, ready, old_statuses.get(one["name"]), restarts, started=until_ready <= 0)
            for one in containers
        ]
        self._init_containers()
        self._ephemeral()
        names = [] if ready else [one["name"] for one in containers]
        self._conditions(ready, names)

    def _set_terminated(self, code: int, reason: str, message: str) -> None:
        """Set the status after all containers have exited for good."""
        status = self.status
        old_statuses = self._old_container_statuses("containerStatuses")
        finished = [self._with_end(one, code) for one in old_statuses.values()]
        for one in finished:
            one.update(ready=False, started=False)
        status["containerStatuses"] = finished
        status["phase"] = "Failed" if code else "Succeeded"
        if reason:
            status["reason"], status["message"] = reason, message
        for sidecar in self._old_container_statuses("initContainerStatuses").values():
            if "running" in (sidecar.get("state") or {}):
                one = self._with_end(sidecar, 0)
                one.update(ready=False, started=False)
                statuses = status["initContainerStatuses"]
                status["initContainerStatuses"] = [one if old["name"] == one["name"] else old for old in statuses]
        self._conditions(False, [one["name"] for one in finished], "PodFailed" if code else "PodCompleted")

    def _set_crash_loop(self, old_statuses: Mapping[str, JSONObject]) -> None:
        """Set the status between the exit of containers and their restart."""
        statuses = []
        for one in old_statuses.values():
            new = dict(one)
            terminated = (one.get("state") or {}).get("terminated")
            if terminated:
                message = f"back-off restarting failed container={one['name']} pod={self._pod['metadata']['name']}"
                new["state"] = {"waiting": {"reason": "CrashLoopBackOff", "message": message}}
                new["lastState"] = {"terminated": terminated}
            new.update(ready=False, started=False)
            statuses.append(new)
        self.status["containerStatuses"] = statuses
        self.status["phase"] = "Running"
        self._conditions(False, [one["name"] for one in statuses])

    def _set_pull_error(self) -> None:
        old_statuses = self._old_container_statuses("containerStatuses")
        names = []
        statuses = []
        for one in self._spec.get("containers") or ():
            message = f'Back-off pulling image "{one.get("image")}"'
            waiting = {"waiting": {"reason": "ImagePullBackOff", "message": message}}
            statuses.append(self._container(one, waiting, False, old_statuses.get(one["name"]), 0, started=False))
            names.append(one["name"])
        self.status.update(phase="Pending", containerStatuses=statuses)
        self._conditions(False, names)

    def _check_after(self, seconds: float) -> None:
        self.wait = seconds if self.wait is None else min(self.wait, seconds)

    # --- containers

    def _old_container_statuses(self, field: str) -> dict[str, JSONObject]:
        return {one["name"]: one for one in self._old_status.get(field) or ()}

    def _container(
        self,
        spec: JSONObject,
        state: JSONObject,
        ready: bool,
        old_status: JSONObject | None,
        restarts: int,
        *,
        started: bool,
    ) -> JSONObject:
        image = spec.get("image") or ""
        uid = self._pod["metadata"]["uid"]
        running = "running" in state
        status: JSONObject = {
            "name": spec["name"],
            "state": state,
            "lastState": self._last_state(old_status),
            "ready": ready,
            "restartCount": restarts,
            "image": image,
            "imageID": "" if "waiting" in state else f"{image.partition('@')[0]}@sha256:{_digest(image)}",
            "started": running and started,
        }
        if "waiting" not in state:
            name = spec["name"]
            status["containerID"] = f"{SIMULATED_RUNTIME_PREFIX}{_digest(f'{uid}/{name}/{restarts}')}"
        resources = spec.get("resources") or {}
        if running and resources:
            status["resources"] = {name: resources[name] for name in ("limits", "requests") if resources.get(name)}
            if resources.get("requests"):
                status["allocatedResources"] = resources["requests"]
        return status

    def _last_state(self, old_status: JSONObject | None) -> JSONObject:
        if old_status is None:
            return {}
        terminated = (old_status.get("state") or {}).get("terminated")
        return {"terminated": terminated} if terminated else old_status.get("lastState") or {}

    def _with_end(self, old_status: JSONObject, code: int) -> JSONObject:
        state = old_status.get("state") or {}
        if "terminated" in state:
            return dict(old_status)
        started_at = (state.get("running") or {}).get("startedAt")
        terminated: JSONObject = {
            "exitCode": code,
            "reason": "Error" if code else "Completed",
            "startedAt": started_at,
            "finishedAt": self._now_text,
        }
        if old_status.get("containerID"):
            terminated["containerID"] = old_status["containerID"]
        return {**old_status, "state": {"terminated": terminated}}

    def _init_containers(self) -> None:
        old_statuses = self._old_container_statuses("initContainerStatuses")
        statuses = []
        for one in self._spec.get("initContainers") or ():
            old_status = old_statuses.get(one["name"])
            if one.get("restartPolicy") == "Always":
                running = (old_status or {}).get("state") or {"running": {"startedAt": self._now_text}}
                statuses.append(self._container(one, running, True, old_status, 0, started=True))
                continue
            if old_status is None:
                first_state = self._container(
                    one, {"running": {"startedAt": self._now_text}}, True, None, 0, started=False
                )
                old_status = self._with_end(first_state, 0)
            statuses.append(old_status)
        if statuses:
            self.status["initContainerStatuses"] = statuses

    def _ephemeral(self) -> None:
        old_statuses = self._old_container_statuses("ephemeralContainerStatuses")
        statuses = []
        for one in self._spec.get("ephemeralContainers") or ():
            old_status = old_statuses.get(one["name"])
            running = (old_status or {}).get("state") or {"running": {"startedAt": self._now_text}}
            status = self._container(one, running, False, old_status, 0, started=False)
            del status["started"]
            statuses.append(status)
        if statuses:
            self.status["ephemeralContainerStatuses"] = statuses

    # --- conditions

    def _conditions(self, ready: bool, unready: Sequence[str], done: str = "") -> None:
        """
        Set the conditions.

        @param ready: Whether the pod is ready.
        @param unready: The names of the containers that are not ready.
        @param done: The reason why the pod will never be ready again; C{""} if it may.
        """
        unready_reason = {
            "reason": "ContainersNotReady",
            "message": f"containers with unready status: [{' '.join(unready)}]",
        }
        if done:
            unready_reason = {"reason": done}
        desired: dict[str, tuple[bool, dict[str, str]]] = {
            "PodReadyToStartContainers": (bool(self._behavior.pulled and self.status["phase"] not in ENDED), {}),
            "Initialized": (True, {"reason": "PodCompleted"} if done == "PodCompleted" else {}),
            "Ready": (ready, {} if ready else unready_reason),
            "ContainersReady": (ready, {} if ready else unready_reason),
        }
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


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()
