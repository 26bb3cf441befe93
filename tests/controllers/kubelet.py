"""Tests of workloads, with something that runs pods."""

from __future__ import annotations

from typing import Any

from kubetwist.api.times import format_time
from tests.controllers.harness import ControllerTestCase


class KubeletTestCase(ControllerTestCase):
    """
    A test of controllers whose pods come to run.

    @ivar broken: The images of pods that never do.
    @ivar most: How many pods there were at most in L{run_pods}, since it was last set.
    @ivar least: How many there were at least that ran.
    """

    def setUp(self) -> None:
        """Nothing has run yet."""
        super().setUp()
        self.broken: set[str] = set()
        self.most, self.least = 0, 10**6

    def pods(self) -> list[Any]:
        """All pods."""
        return [self.find("pods", name, "default") for name in self.names("pods", "default")]

    def run_pods(self, rounds: int = 60) -> None:
        """Let controllers and a kubelet work in turns, a pod at a time, until nothing changes any more."""
        for _ in range(rounds):
            self.settle()
            pods = self.pods()
            works = [pod for pod in pods if pod.get("status", {}).get("conditions")]
            self.most, self.least = max(self.most, len(pods)), min(self.least, len(works))
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
        """Have a pod be ready from now on."""
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": format_time(self.clock.seconds())}
        status = {"phase": "Running", "conditions": [ready]}
        self.change("pods", name, lambda pod: pod.update(status=status), "default", subresource="status")
