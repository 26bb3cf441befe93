"""Results of the probes of simulated containers, by the time since their start. Nothing is probed."""

from __future__ import annotations

from collections.abc import Collection
from math import inf
from typing import Final

from attrs import frozen

from ...api.resource import JSONObject
from ..fakeimages import LIVENESS, READINESS, STARTUP, ImageBehavior, ProbeScript

_FAILING: Final = ProbeScript(0.0)
_PERIOD: Final = 10
_THRESHOLD: Final = 3
#: Maximum number of failed attempts of which events are recorded.
_MAX_FAILURES: Final = 10


@frozen
class ProbeTimes:
    """
    The times at which the probes of a container change its state, in seconds since its start.

    Only probes that the container defines have results. A probe has failed after its delay, and as many attempts as its
    threshold demands.

    @ivar started_after: Time at which the startup probe has succeeded.
    @ivar ready_after: Time at which the container is ready.
    @ivar unready_after: Time at which the readiness probe has failed; L{None} for never.
    @ivar killed_after: Time at which a liveness or startup probe has failed; L{None} for never.
    @ivar killed_by: The kind of that probe.
    """

    started_after: float = 0.0
    ready_after: float = 0.0
    unready_after: float | None = None
    killed_after: float | None = None
    killed_by: str = ""


NO_PROBES: Final = ProbeTimes()


def probe_times(container: JSONObject, behavior: ImageBehavior, failing: Collection[str] = ()) -> ProbeTimes:
    """
    Return the times of the probes of a container.

    @param container: The container of the pod.
    @param behavior: The behavior of its image.
    @param failing: The kinds of probes that fail regardless of the image.
    """
    started_after, ready_after = 0.0, behavior.ready_after
    unready_after: float | None = None
    killed_after: float | None = None
    killed_by = ""
    for kind in (LIVENESS, READINESS, STARTUP):
        probe = container.get(f"{kind}Probe")
        if probe is None:
            continue
        script = _FAILING if kind in failing else behavior.probes.get(kind, ProbeScript())
        delay = float(probe.get("initialDelaySeconds") or 0)
        passed = max(delay, script.pass_after)
        if kind == STARTUP:
            # A startup probe that never succeeds leaves the container unstarted.
            started_after = inf if script.fail_after == 0.0 else passed
            ready_after = max(ready_after, started_after)
        elif kind == READINESS:
            ready_after = max(ready_after, passed)
        if script.fail_after is None:
            continue
        repeated = (probe.get("periodSeconds") or _PERIOD) * (_threshold(probe) - 1)
        failed = max(delay, script.fail_after) + repeated
        if kind == READINESS:
            # A probe that never succeeds leaves the container unready.
            unready_after = failed if script.fail_after else 0.0
        elif killed_after is None or failed < killed_after:
            killed_after, killed_by = failed, kind
    return ProbeTimes(started_after, ready_after, unready_after, killed_after, killed_by)


def _threshold(probe: JSONObject) -> int:
    return int(probe.get("failureThreshold") or _THRESHOLD)


def probe_failures(container: JSONObject, kind: str, pod_ip: str) -> list[str]:
    """
    Return the messages of the events C{Unhealthy} of a probe that has failed: one for each attempt.

    @param container: The container of the pod.
    @param kind: The kind of the probe.
    @param pod_ip: The address of the pod.
    @see: kubernetes, C{pkg/kubelet/prober/prober.go}, C{pkg/probe}.
    """
    probe: JSONObject = container[f"{kind}Probe"]
    output = ""
    if "httpGet" in probe:
        output = "HTTP probe failed with statuscode: 500"
    elif "tcpSocket" in probe:
        host = probe["tcpSocket"].get("host") or pod_ip
        output = f"dial tcp {host}:{_port(container, probe['tcpSocket'].get('port'))}: connect: connection refused"
    elif "grpc" in probe:
        output = 'service unhealthy (responded with "NOT_SERVING")'
    return [f"{kind.capitalize()} probe failed: {output}"] * min(_threshold(probe), _MAX_FAILURES)


def _port(container: JSONObject, port: int | str | None) -> int | str | None:
    """Return the number of a port that a probe names."""
    for one in container.get("ports") or ():
        if one.get("name") == port:
            return one.get("containerPort")  # type: ignore[no-any-return] # decoded JSON
    return port
