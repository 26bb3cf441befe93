"""Test case for DaemonSets."""

from __future__ import annotations

from typing import Any

from kubetwist.api.times import format_time
from kubetwist.controllers.workloads import daemonpods
from kubetwist.controllers.workloads.daemonset import DaemonSetController
from tests.controllers.harness import ControllerTestCase

LABELS = {"app": "agent"}


def template(image: str = "a", **spec: Any) -> Any:
    """Return a pod template."""
    return {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": image}], **spec}}


class DaemonSetTestCase(ControllerTestCase):
    """Test case with a DaemonSet, nodes, and a simulated scheduler and kubelet."""

    resources = ("namespaces", "nodes", "pods", "daemonsets", "controllerrevisions", "events")

    def setUp(self) -> None:
        """Create a namespace."""
        super().setUp()
        #: The images of pods that never become ready.
        self.broken: set[str] = set()
        #: Minimum number of nodes with a ready pod, and maximum number of pods, during L{run_pods}.
        self.min_ready_nodes, self.max_pods = 10**6, 0
        self.make("namespaces", "default")

    def node(self, name: str, taints: Any = (), **labels: str) -> None:
        """Create a node."""
        spec = {"taints": [dict(one) for one in taints]} if taints else {}
        self.make("nodes", name, metadata={"labels": labels}, spec=spec)

    def nodes(self, number: int) -> None:
        """Create nodes n0, n1, ..."""
        for one in range(number):
            self.node(f"n{one}")

    def edit_node(self, name: str, taints: Any = None, **labels: str) -> None:
        """Change a node."""

        def change(obj: Any) -> None:
            if taints is not None:
                obj["spec"]["taints"] = [dict(one) for one in taints]
            obj["metadata"].setdefault("labels", {}).update(labels)

        self.change("nodes", name, change)
        self.settle()

    def daemon(self, image: str = "a", pod: Any = None, **spec: Any) -> Any:
        """Create a DaemonSet, and let its controller run."""
        spec = {"selector": {"matchLabels": LABELS}, "template": template(image, **(pod or {})), **spec}
        made = self.make("daemonsets", "agent", "default", "apps", spec=spec)
        self.settle()
        return made

    def edit(self, **spec: Any) -> None:
        """Change the spec."""
        self.change("daemonsets", "agent", lambda obj: obj["spec"].update(spec), "default", "apps")
        self.settle()

    @property
    def status(self) -> Any:
        """Return the status of the DaemonSet."""
        return self.find("daemonsets", "agent", "default", "apps")["status"]

    def pods(self) -> list[Any]:
        """Return all pods."""
        return [self.find("pods", name, "default") for name in self.names("pods", "default")]

    def placed(self) -> dict[str, list[str]]:
        """Return the images of the pods, by node."""
        found: dict[str, list[str]] = {}
        for pod in self.pods():
            name = daemonpods.target_node(pod)
            assert name is not None
            found.setdefault(name, []).append(pod["spec"]["containers"][0]["image"])
        return {name: sorted(images) for name, images in sorted(found.items())}

    def revisions(self) -> list[tuple[int, str]]:
        """Return the numbers and images of the revisions."""
        every = [
            self.find("controllerrevisions", name, "default", "apps")
            for name in self.names("controllerrevisions", "default", "apps")
        ]
        return sorted(
            (one["revision"], one["data"]["spec"]["template"]["spec"]["containers"][0]["image"]) for one in every
        )

    def events(self) -> list[str]:
        """Return the reasons of the events."""
        self.settle(1)
        return [self.find("events", name, "default")["reason"] for name in self.names("events", "default")]

    def set_status(self, pod: Any, phase: str, ready: bool = False) -> None:
        """Set the status of a pod."""
        status: Any = {"phase": phase}
        if ready:
            since = format_time(self.clock.seconds())
            status["conditions"] = [{"type": "Ready", "status": "True", "lastTransitionTime": since}]
        self.change(
            "pods", pod["metadata"]["name"], lambda obj: obj.update(status=status), "default", subresource="status"
        )

    def run_one(self) -> bool:
        """Do the next step of a kubelet for one pod, and return whether there was one."""
        for pod in self.pods():
            if "deletionTimestamp" in pod["metadata"]:
                self.remove("pods", pod["metadata"]["name"], "default", grace=0)
                return True
            works = pod.get("status", {}).get("conditions")
            if not works and pod["spec"]["containers"][0]["image"] not in self.broken:
                self.set_status(pod, "Running", ready=True)
                return True
        return False

    def run_pods(self) -> None:
        """Run the controller and the kubelets alternately, until nothing changes."""
        for _ in range(200):
            self.settle()
            pods = self.pods()
            works = {
                daemonpods.target_node(pod)
                for pod in pods
                if pod.get("status", {}).get("conditions") and "deletionTimestamp" not in pod["metadata"]
            }
            self.min_ready_nodes, self.max_pods = min(self.min_ready_nodes, len(works)), max(self.max_pods, len(pods))
            if not self.run_one():
                return
        raise AssertionError("it does not come to an end")


class UpdateTestCase(DaemonSetTestCase):
    """Test case for updates of a DaemonSet."""

    def setUp(self) -> None:
        """Create nodes, and start the controller."""
        super().setUp()
        self.nodes(4)
        self.start(DaemonSetController)

    def create_and_run(self, **rolling: Any) -> None:
        """Create a DaemonSet with a rolling update, and run its pods."""
        strategy = {"type": "RollingUpdate", "rollingUpdate": rolling} if rolling else {"type": "OnDelete"}
        self.daemon(updateStrategy=strategy)
        self.run_pods()
        self.min_ready_nodes, self.max_pods = 10**6, 0

    def every(self, image: str) -> dict[str, list[str]]:
        """Return the images by node if all nodes have one pod of an image."""
        return {f"n{number}": [image] for number in range(4)}
