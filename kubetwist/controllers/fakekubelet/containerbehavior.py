"""
Behavior of the containers of simulated pods, from annotations of the pod and the configuration of images.

Each annotation may have the name of a container as suffix (C{kubetwist.dev/run-seconds.web}). Such an annotation is
for this container, and precedes the one without suffix, which is for all containers except init containers. Both
annotations of failing probes are effective, for sidecars too:

- C{kubetwist.dev/run-seconds}: seconds until the container exits,
- C{kubetwist.dev/exit-code}: its exit code; C{"1,0"} is 1 for the first run and 0 for later ones,
- C{kubetwist.dev/stop-seconds}: seconds until it exits when the pod is deleted, within its grace period,
- C{kubetwist.dev/ready}: C{"false"} keeps the container unready,
- C{kubetwist.dev/fail-probes}: probes that fail: C{"liveness,readiness"}.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import frozen

from ...api.resource import JSONObject
from ..fakeimages import FakeImages
from .probes import NO_PROBES, ProbeTimes, probe_times

_PREFIX: Final = "kubetwist.dev/"
RUN_SECONDS: Final = _PREFIX + "run-seconds"
EXIT_CODE: Final = _PREFIX + "exit-code"
STOP_SECONDS: Final = _PREFIX + "stop-seconds"
READY: Final = _PREFIX + "ready"
FAIL_PROBES: Final = _PREFIX + "fail-probes"
#: Default seconds until the containers of a job's pod exit.
_JOB_SECONDS: Final = 1.0


@frozen
class ContainerBehavior:
    """
    Simulated behavior of a container.

    @ivar seconds: Seconds until it exits; L{None} for never.
    @ivar codes: Exit codes of the first and of later runs.
    @ivar ready: Whether it becomes ready.
    @ivar stop: Seconds from SIGTERM to exit.
    @ivar pulled: Whether the image can be pulled.
    @ivar probes: The times of its probes.
    """

    seconds: float | None = None
    codes: tuple[int, ...] = (0,)
    ready: bool = True
    stop: float = 0.0
    pulled: bool = True
    probes: ProbeTimes = NO_PROBES

    def code(self, restarts: int) -> int:
        """Return the exit code after a number of restarts."""
        return self.codes[min(restarts, len(self.codes) - 1)]


def is_sidecar(container: JSONObject) -> bool:
    """Return whether an init container runs beside the containers of its pod, until they have exited."""
    return container.get("restartPolicy") == "Always"


def read_behavior(
    pod: JSONObject, container: JSONObject, images: FakeImages, *, init: bool = False
) -> ContainerBehavior:
    """
    Return the behavior of a container. Invalid annotations are ignored.

    @param pod: Its pod.
    @param container: The container in the spec of the pod.
    @param images: The behavior of images.
    @param init: Whether it is an init container. One that is no sidecar exits at once, if nothing else is configured.
    """
    annotations = _Annotations(pod["metadata"].get("annotations") or {}, container["name"], init)
    image = images.find(container.get("image") or "")
    codes = annotations.numbers(EXIT_CODE)
    seconds = annotations.seconds(RUN_SECONDS)
    if seconds is None:
        seconds = image.run_for
    if seconds is None and init:
        seconds = None if is_sidecar(container) else 0.0
    elif seconds is None and (codes or _is_of_job(pod)):
        seconds = _JOB_SECONDS
    stop = annotations.seconds(STOP_SECONDS)
    failing = {one.strip() for text in annotations.all(FAIL_PROBES) for one in text.split(",")}
    return ContainerBehavior(
        seconds,
        codes or image.exit or (0,),
        annotations.text(READY) != "false" and image.ready,
        image.stop_after if stop is None else stop,
        not image.pull_error,
        probe_times(container, image, failing),
    )


def _is_of_job(pod: JSONObject) -> bool:
    owners = pod["metadata"].get("ownerReferences") or ()
    return any(one.get("controller") and one.get("kind") == "Job" for one in owners)


@frozen
class _Annotations:
    """
    The annotations that are for a container.

    @ivar annotations: The annotations of the pod.
    @ivar container: The name of the container.
    @ivar init: Whether only annotations with its name are for it.
    """

    annotations: Mapping[str, str]
    container: str
    init: bool

    def text(self, name: str) -> str:
        """Return the value of an annotation; C{""} without one."""
        if not self.annotations:
            return ""
        own = self.annotations.get(f"{name}.{self.container}")
        if own is None and not self.init:
            own = self.annotations.get(name)
        return own or ""

    def all(self, name: str) -> list[str]:
        """Return the values of an annotation for the container and for all containers, also for an init container."""
        return [self.annotations.get(key) or "" for key in (f"{name}.{self.container}", name)]

    def seconds(self, name: str) -> float | None:
        """Return a duration; L{None} if it is missing or invalid."""
        try:
            number = float(self.text(name))
        except ValueError:
            return None
        return number if 0 <= number < 1e9 else None

    def numbers(self, name: str) -> tuple[int, ...]:
        """Return exit codes; none if they are missing or invalid."""
        try:
            return tuple(int(one) % 256 for one in self.text(name).split(",", 100)[:100])
        except ValueError:
            return ()
