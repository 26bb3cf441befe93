"""
Computes the status of a container on a simulated node at a time, with its restarts and events.

@see: kubernetes, C{pkg/kubelet/kuberuntime/kuberuntime_manager.go}, C{pkg/kubelet/container/helpers.go}.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Final

from attrs import frozen

from ...api.go.durations import format_duration
from ...api.resource import JSONObject
from ...api.times import format_time, seconds_since_epoch
from ...registry.core.node.kubelets import SIMULATED_RUNTIME_PREFIX
from ..fakeimages import READINESS
from ..machinery.events import NORMAL, WARNING
from .containerbehavior import ContainerBehavior
from .probes import probe_failures

#: First and maximum delay, in seconds, until a container is restarted. The delay doubles after each restart.
_CRASH_BACKOFF_INITIAL: Final = 10.0
_CRASH_BACKOFF_MAX: Final = 300.0
#: Exit code of a process that was killed.
SIGKILL_EXIT_CODE: Final = 137
#: Reason of a container that waits for a restart, and of one that waits for its image.
CRASH_LOOP: Final = "CrashLoopBackOff"
PULL_BACKOFF: Final = "ImagePullBackOff"


@frozen
class ContainerEvent:
    """
    An event about a container.

    @ivar type: L{NORMAL} or L{WARNING}.
    @ivar reason: The reason: C{Unhealthy}.
    @ivar message: The message.
    @ivar field_path: The container in the pod: C{"spec.containers{web}"}.
    """

    type: str
    reason: str
    message: str
    field_path: str


@frozen
class PodTerms:
    """
    What the containers of a pod have in common.

    @ivar name: The name of the pod.
    @ivar namespace: Its namespace.
    @ivar uid: Its uid.
    @ivar ip: Its address.
    @ivar policy: Its restart policy.
    @ivar now: The time, in POSIX seconds.
    @ivar now_text: The time as in the status.
    """

    name: str
    namespace: str
    uid: str
    ip: str
    policy: str
    now: float
    now_text: str

    @property
    def full_name(self) -> str:
        """Return the name of the pod in messages of a kubelet."""
        return f"{self.name}_{self.namespace}({self.uid})"


@frozen
class ContainerResult:
    """
    The state of a container at a time.

    @ivar status: The status of the container.
    @ivar wait: Seconds until it changes; L{None} for never.
    @ivar events: The events that led to it.
    @ivar exit_code: The exit code of a container that has exited, and will not be restarted; otherwise L{None}.
    """

    status: JSONObject
    wait: float | None = None
    events: Sequence[ContainerEvent] = ()
    exit_code: int | None = None

    @property
    def runs(self) -> bool:
        """Return whether the container runs."""
        return "running" in self.status["state"]


class ContainerSimulator:
    """Computes the state of one container."""

    def __init__(
        self,
        pod: PodTerms,
        container: JSONObject,
        behavior: ContainerBehavior,
        old_status: JSONObject | None,
        list_name: str = "containers",
    ) -> None:
        """
        @param pod: What the containers of the pod have in common.
        @param container: The container in the spec of the pod.
        @param behavior: Its behavior.
        @param old_status: Its status until now; L{None} for a new container.
        @param list_name: The field of the spec that has the container: C{"initContainers"}.
        """
        self._pod = pod
        self._spec = container
        self._name: str = container["name"]
        self._behavior = behavior
        self._old: JSONObject = old_status or {}
        self._path = f"spec.{list_name}{{{self._name}}}"
        self._init = list_name == "initContainers"
        self._events: list[ContainerEvent] = []

    def compute(self) -> ContainerResult:
        """Return the state at the time of the pod."""
        old_state = self._old.get("state") or {}
        restarts: int = self._old.get("restartCount") or 0
        if "running" in old_state:
            return self._run(seconds_since_epoch(old_state["running"]["startedAt"]), restarts)
        last = old_state.get("terminated")
        if last is not None and not self._restarts(last["exitCode"]):
            return ContainerResult(self._old, exit_code=last["exitCode"])
        if last is None and (old_state.get("waiting") or {}).get("reason") == CRASH_LOOP:
            last = (self._old.get("lastState") or {}).get("terminated")
        if last is not None:
            finished_at = last.get("finishedAt")
            due = (seconds_since_epoch(finished_at) if finished_at else self._pod.now) + _backoff(last, restarts)
            if due > self._pod.now:
                return self._crash_loop(last, restarts, due - self._pod.now)
            restarts += 1
        if not self._behavior.pulled:
            return self._pull_backoff(restarts)
        return self._run(self._pod.now, restarts)

    def waiting(self, reason: str, message: str = "") -> ContainerResult:
        """
        Return the state of a container that has not been started.

        @param reason: The reason for the wait.
        @param message: Describes the reason.
        """
        waiting = {"reason": reason, "message": message} if message else {"reason": reason}
        return ContainerResult(self._status({"waiting": waiting}, False, self._old.get("restartCount") or 0))

    # --- runs

    def _run(self, started_at: float, restarts: int) -> ContainerResult:
        """Return the state of a run, or the state after its end."""
        now, behavior, probes = self._pod.now, self._behavior, self._behavior.probes
        seconds, killed_after = behavior.seconds, probes.killed_after
        killed = killed_after is not None and (seconds is None or killed_after < seconds)
        if killed:
            seconds = killed_after
        if seconds is not None and started_at + seconds <= now:
            return self._ended(started_at, restarts, killed)
        # Changes to come: the exit, the end of the startup, readiness and its end.
        changes = [started_at + one - now for one in (probes.started_after, probes.ready_after)]
        ready = changes[1] <= 0 and behavior.ready
        if seconds is not None:
            changes.append(started_at + seconds - now)
        if probes.unready_after is not None:
            changes.append(started_at + probes.unready_after - now)
            if changes[-1] <= 0:
                ready = False
                if self._old.get("ready") or "running" not in (self._old.get("state") or {}):
                    self._fail_probe(READINESS)
        state = {"running": {"startedAt": format_time(started_at)}}
        status = self._status(state, ready, restarts, started=changes[0] <= 0)
        wait = min((one for one in changes if 0 < one < float("inf")), default=None)
        return ContainerResult(status, wait, self._events)

    def _ended(self, started_at: float, restarts: int, killed: bool) -> ContainerResult:
        """Return the state at the end of a run."""
        code = SIGKILL_EXIT_CODE if killed else self._behavior.code(restarts)
        again = self._restarts(code)
        if killed:
            probe = self._behavior.probes.killed_by
            self._fail_probe(probe)
            restarting = ", will be restarted" if again else ""
            self._event(NORMAL, "Killing", f"Container {self._name} failed {probe} probe{restarting}")
        running = {"running": {"startedAt": format_time(started_at)}}
        status = self._old if "running" in (self._old.get("state") or {}) else self._status(running, False, restarts)
        status = end_status(status, code, self._pod.now_text)
        if not again:
            # An init container that has completed counts as ready.
            status.update(ready=self._init and not code, started=False)
            return ContainerResult(status, None, self._events, code)
        last = status["state"]["terminated"]
        return self._crash_loop(last, restarts, _backoff(last, restarts))

    def _crash_loop(self, last: JSONObject, restarts: int, wait: float) -> ContainerResult:
        """
        Return the state between an exit and the restart.

        @param last: The state of the last run.
        @param restarts: The number of restarts before.
        @param wait: Seconds until the restart.
        """
        name, pod = self._name, self._pod.full_name
        if ((self._old.get("state") or {}).get("waiting") or {}).get("reason") != CRASH_LOOP:
            self._event(WARNING, "BackOff", f"Back-off restarting failed container {name} in pod {pod}")
        backoff = format_duration(int(_backoff(last, restarts) * 1e9))
        message = f"back-off {backoff} restarting failed container={name} pod={pod}"
        status = self._status({"waiting": {"reason": CRASH_LOOP, "message": message}}, False, restarts)
        status["lastState"] = {"terminated": last}
        # The image and the container of the last run remain.
        status.update({name: last[name] for name in ("containerID",) if name in last}, imageID=self._image_id())
        return ContainerResult(status, wait, self._events)

    def _pull_backoff(self, restarts: int) -> ContainerResult:
        message = f'Back-off pulling image "{self._spec.get("image")}"'
        if ((self._old.get("state") or {}).get("waiting") or {}).get("reason") != PULL_BACKOFF:
            self._event(NORMAL, "BackOff", message)
        waiting = {"waiting": {"reason": PULL_BACKOFF, "message": message}}
        return ContainerResult(self._status(waiting, False, restarts), None, self._events)

    def _restarts(self, code: int) -> bool:
        """
        Return whether the container is restarted after an exit.

        @see: kubernetes, C{pkg/api/v1/pod/util.go}, C{ContainerShouldRestart}.
        """
        for rule in self._spec.get("restartPolicyRules") or ():
            codes = rule.get("exitCodes") or {}
            included = code in (codes.get("values") or ())
            if rule.get("action") == "Restart" and included == (codes.get("operator") == "In"):
                return True
        policy = self._spec.get("restartPolicy") or self._pod.policy
        if self._init and policy == "Always" and "restartPolicy" not in self._spec:
            # Init containers of a pod that is restarted always run until they succeed.
            policy = "OnFailure"
        return policy == "Always" or (policy == "OnFailure" and code != 0)

    # --- events

    def _event(self, type: str, reason: str, message: str) -> None:
        self._events.append(ContainerEvent(type, reason, message, self._path))

    def _fail_probe(self, kind: str) -> None:
        for message in probe_failures(self._spec, kind, self._pod.ip):
            self._event(WARNING, "Unhealthy", message)

    # --- status

    def _image_id(self) -> str:
        image = self._spec.get("image") or ""
        return f"{image.partition('@')[0]}@sha256:{_digest(image)}"

    def _status(self, state: JSONObject, ready: bool, restarts: int, *, started: bool = False) -> JSONObject:
        running = "running" in state
        status: JSONObject = {
            "name": self._name,
            "state": state,
            "lastState": self._last_state(),
            "ready": ready,
            "restartCount": restarts,
            "image": self._spec.get("image") or "",
            "imageID": "" if "waiting" in state else self._image_id(),
            "started": running and started,
        }
        if "waiting" not in state:
            status["containerID"] = container_id(self._pod.uid, self._name, restarts)
        resources = self._spec.get("resources") or {}
        if running and resources:
            status["resources"] = {name: resources[name] for name in ("limits", "requests") if resources.get(name)}
            if resources.get("requests"):
                status["allocatedResources"] = resources["requests"]
        return status

    def _last_state(self) -> JSONObject:
        terminated = (self._old.get("state") or {}).get("terminated")
        return {"terminated": terminated} if terminated else self._old.get("lastState") or {}


def end_status(old_status: JSONObject, code: int, now_text: str) -> JSONObject:
    """
    Return the status of a container after its exit.

    @param old_status: The status until now.
    @param code: The exit code.
    @param now_text: The time of the exit.
    """
    state = old_status.get("state") or {}
    if "terminated" in state:
        return dict(old_status)
    last = (old_status.get("lastState") or {}).get("terminated")
    if "running" not in state and last is not None:
        # The container waits for its restart.
        return {**old_status, "state": {"terminated": last}, "lastState": {}}
    terminated: JSONObject = {
        "exitCode": code,
        "reason": "Error" if code else "Completed",
        "startedAt": (state.get("running") or {}).get("startedAt"),
        "finishedAt": now_text,
    }
    if old_status.get("containerID"):
        terminated["containerID"] = old_status["containerID"]
    return {**old_status, "state": {"terminated": terminated}}


def container_id(uid: str, name: str, restarts: int) -> str:
    """Return the ID of a run of a container."""
    return f"{SIMULATED_RUNTIME_PREFIX}{_digest(f'{uid}/{name}/{restarts}')}"


def _backoff(last: JSONObject, restarts: int) -> float:
    """
    Return the seconds between an exit and the restart.

    @param last: The state of the last run.
    @param restarts: The number of restarts before.
    """
    started, finished = last.get("startedAt"), last.get("finishedAt")
    if started and finished and seconds_since_epoch(finished) - seconds_since_epoch(started) > 2 * _CRASH_BACKOFF_MAX:
        # The backoff of a container that ran for this time has been forgotten.
        restarts = 0
    return float(min(_CRASH_BACKOFF_INITIAL * 2.0 ** min(restarts, 30), _CRASH_BACKOFF_MAX))


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()
