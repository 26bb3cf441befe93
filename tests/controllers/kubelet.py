"""Test case with a simulated kubelet."""

from __future__ import annotations

from typing import Any

from kubetwist.api.times import format_time
from tests.controllers.harness import ControllerTestCase


class KubeletTestCase(ControllerTestCase):
    """
    Test case for controllers whose pods become ready.

    @ivar broken: The images of pods that never become ready.
    @ivar max_pods: Maximum number of pods during L{run_pods}, since it was last set.
    @ivar min_ready_pods: Minimum number of ready pods.
    """

    def setUp(self) -> None:
        """Reset the counters."""
        super().setUp()
        self.broken: set[str] = set()
        self.max_pods, self.min_ready_pods = 0, 10**6

    def pods(self) -> list[Any]:
        """Return all pods."""
        return [self.find("pods", name, "default") for name in self.names("pods", "default")]

    def run_pods(self, rounds: int = 60) -> None:
        """Run controllers and make pods ready alternately, one pod at a time, until nothing changes."""
        for _ in range(rounds):
            self.settle()
            pods = self.pods()
            works = [pod for pod in pods if pod.get("status", {}).get("conditions")]
            self.max_pods, self.min_ready_pods = max(self.max_pods, len(pods)), min(self.min_ready_pods, len(works))
            waiting = [
                pod["metadata"]["name"]
                for pod in pods
                if pod not in works and pod["spec"]["containers"][0]["image"] not in self.broken
            ]
            if not waiting:
                return
            self.run_pod(waiting[0])
        raise AssertionError("it does not come to an end")

    def run_pod(self, name: str) -> None:
        """Make a pod ready."""
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": format_time(self.clock.seconds())}
        status = {"phase": "Running", "conditions": [ready]}
        self.change("pods", name, lambda pod: pod.update(status=status), "default", subresource="status")
