"""Results of the probes of simulated containers, by the time since their start. Nothing is probed."""

from __future__ import annotations

from typing import Final

from ...api.resource import JSONObject
from ..fakeimages import LIVENESS, READINESS, STARTUP, ImageBehavior, ProbeScript

_FAILING: Final = ProbeScript(0.0)
_PERIOD: Final = 10
_THRESHOLD: Final = 3


class ProbeTimes:
    """
    The times at which the probes of a pod change its state, in seconds since the start of its containers.

    Only probes that a container defines have results. A probe fails after its delay, as often as its threshold demands.

    @ivar ready_after: Time at which all containers are ready.
    @ivar unready_after: Time at which a readiness probe has failed; L{None} for never.
    @ivar killed_after: Time at which a liveness or startup probe has failed; L{None} for never.
    """

    def __init__(self, failing: str) -> None:
        """
        @param failing: The kinds of probes that fail regardless of images, separated by commas.
        """
        self._failing = {one.strip() for one in failing.split(",")}
        self.ready_after = 0.0
        self.unready_after: float | None = None
        self.killed_after: float | None = None

    def add(self, container: JSONObject, behavior: ImageBehavior) -> None:
        """
        Add the probes of a container.

        @param container: The container of the pod.
        @param behavior: The behavior of its image.
        """
        self.ready_after = max(self.ready_after, behavior.ready_after)
        for kind in (LIVENESS, READINESS, STARTUP):
            probe = container.get(f"{kind}Probe")
            if probe is None:
                continue
            script = _FAILING if kind in self._failing else behavior.probes.get(kind, ProbeScript())
            delay = float(probe.get("initialDelaySeconds") or 0)
            if kind != LIVENESS:
                self.ready_after = max(self.ready_after, delay, script.pass_after)
            if script.fail_after is None:
                continue
            repeated = (probe.get("periodSeconds") or _PERIOD) * ((probe.get("failureThreshold") or _THRESHOLD) - 1)
            if kind == READINESS:
                # A probe that never succeeds leaves the container unready.
                failed = max(delay, script.fail_after) + repeated if script.fail_after else 0.0
                self.unready_after = failed if self.unready_after is None else min(failed, self.unready_after)
            else:
                failed = max(delay, script.fail_after) + repeated
                self.killed_after = failed if self.killed_after is None else min(failed, self.killed_after)
