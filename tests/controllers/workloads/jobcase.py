"""Test case for jobs."""

from __future__ import annotations

from typing import Any

from kubetwist.api.times import format_time, use_clock
from tests.controllers.harness import ControllerTestCase

TRACKING_FINALIZER = "batch.kubernetes.io/job-tracking"


INDEX = "batch.kubernetes.io/job-completion-index"


class JobTestCase(ControllerTestCase):
    """Test case with a job and its pods."""

    resources = ("namespaces", "pods", "jobs", "events")

    def setUp(self) -> None:
        """Create a namespace."""
        super().setUp()
        use_clock(self.clock.seconds)
        self.addCleanup(use_clock)
        self.make("namespaces", "default")

    def job(self, restart: str = "Never", node: str = "", **spec: Any) -> Any:
        """Create a job, and let its controller run."""
        pod = {"containers": [{"name": "c", "image": "c"}], "restartPolicy": restart}
        template = {"spec": {**pod, "nodeName": node} if node else pod}
        made = self.make("jobs", "a", "default", "batch", spec={"template": template, **spec})
        self.settle()
        return made

    def current(self) -> Any:
        """Return the current job."""
        return self.find("jobs", "a", "default", "batch")

    @property
    def status(self) -> Any:
        """Return the status of the job."""
        return self.current().get("status", {})

    def conditions(self) -> dict[str, tuple[str, str]]:
        """Return the reasons and messages of true conditions."""
        return {
            one["type"]: (one["reason"], one["message"])
            for one in self.status.get("conditions", ())
            if one["status"] == "True"
        }

    def events(self) -> list[str]:
        """Return the reasons of the events of the job."""
        self.settle()
        found = [self.find("events", one, "default") for one in self.names("events", "default")]
        return [one["reason"] for one in found]

    def pods(self, phase: str = "Pending") -> list[Any]:
        """Return the pods in a phase that are not being deleted."""
        found = [self.find("pods", name, "default") for name in self.names("pods", "default")]
        return [pod for pod in found if pod["status"]["phase"] == phase and "deletionTimestamp" not in pod["metadata"]]

    def terminate(self, *pods: Any, code: int = 0, condition: str = "", **status: Any) -> None:
        """Terminate pods."""
        stamp = format_time(self.clock.seconds())
        ended = {"name": "c", "state": {"terminated": {"exitCode": code, "finishedAt": stamp}}, "image": "c"}
        ended.update(imageID="c", ready=False, restartCount=0)
        new: dict[str, Any] = {"phase": "Failed" if code else "Succeeded", "containerStatuses": [ended], **status}
        if condition:
            new["conditions"] = [{"type": condition, "status": "True"}]
        for pod in pods:
            name = pod["metadata"]["name"]
            self.change("pods", name, lambda obj: obj.update(status=new), "default", subresource="status")
        self.settle()

    def index(self, pod: Any) -> int:
        """Return the index of a pod."""
        return int(pod["metadata"]["annotations"][INDEX])

    def succeed(self, pod: Any) -> None:
        """Let a pod succeed."""
        status = {"phase": "Succeeded"}
        self.change(
            "pods", pod["metadata"]["name"], lambda obj: obj.update(status=status), "default", subresource="status"
        )

    def succeed_all(self, rounds: int) -> None:
        """Let all pods succeed, repeatedly."""
        for _ in range(rounds):
            fails, self.backend.fails = self.backend.fails, lambda number: False
            for pod in self.pods()[:3]:
                self.succeed(pod)
            self.backend.fails = fails
            self.settle(20)
