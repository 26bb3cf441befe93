"""
Measure a Deployment of 1,000 pods that comes up, rolls over and goes, with the server's controllers and its nodes.

  up        from its creation until all pods are available
  rollover  from a change of its template until all pods are new and available, without old ones
  down      from its deletion until there are no pods

The controllers, the scheduler and the simulated kubelets run in the server and use its stores. They make the writes
that kube-controller-manager, kube-scheduler and kubelets make: events, bindings, statuses, leases. A client polls the
Deployment, or its pods. The columns are seconds, CPU seconds of the server, and the number of writes.

Usage: python benchmarks/rollout.py [--pods 1000] [--flag=...]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from attrs import frozen
from load import Target, arguments
from twoservers import processor_time

from kubetwist.testing import SubprocessServer

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
PODS = "/api/v1/namespaces/default/pods"
PODS_PER_NODE = 110
#: Seconds between two polls, and until a phase counts as failed.
POLL_INTERVAL = 0.05
PHASE_TIMEOUT = 600.0


@frozen
class Phase:
    """
    What one phase took.

    @ivar writes: The difference of the revisions of the storage.
    """

    name: str
    seconds: float
    cpu: float
    writes: int


def deployment(pods: int, image: str) -> dict[str, Any]:
    """Return the Deployment with an image."""
    container = {"name": "web", "image": image, "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": pods,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}},
        },
    }


def is_complete(found: dict[str, Any]) -> bool:
    """Return whether all pods of a Deployment are new and available, as C{kubectl rollout status} does."""
    status, replicas = found.get("status", {}), found["spec"]["replicas"]
    return (
        status.get("observedGeneration", 0) >= found["metadata"]["generation"]
        and status.get("updatedReplicas", 0)
        == status.get("replicas", 0)
        == status.get("availableReplicas", 0)
        == replicas
    )


class Rollout:
    """The phases on one server."""

    def __init__(self, server: Target, pods: int) -> None:
        self._server, self._pods = server, pods

    def _revision(self) -> int:
        return int(self._server.call("GET", f"{PODS}?limit=1")["metadata"]["resourceVersion"])

    def _deployed(self) -> bool:
        return is_complete(self._server.call("GET", f"{DEPLOYMENTS}/web"))

    def _count_pods(self) -> int:
        page = self._server.call("GET", f"{PODS}?limit=1")
        return len(page["items"]) + int(page["metadata"].get("remainingItemCount", 0))

    def _without_pods(self) -> bool:
        return not self._count_pods()

    def _without_old_pods(self) -> bool:
        return self._deployed() and self._count_pods() == self._pods

    def measure(self, name: str, begin: Callable[[], object], ended: Callable[[], bool]) -> Phase:
        """Run a phase."""
        assert self._server.pid is not None
        revision, cpu, began = self._revision(), processor_time(self._server.pid), time.perf_counter()
        begin()
        while not ended():
            if time.perf_counter() - began > PHASE_TIMEOUT:
                raise SystemExit(f"rollout: {name} did not end in {PHASE_TIMEOUT:.0f} s")
            time.sleep(POLL_INTERVAL)
        seconds, used = time.perf_counter() - began, processor_time(self._server.pid) - cpu
        return Phase(name, seconds, used, self._revision() - revision)

    def run(self) -> list[Phase]:
        """Run all phases."""
        call, path = self._server.call, f"{DEPLOYMENTS}/web"
        phases = [
            self.measure(
                "up", lambda: call("POST", DEPLOYMENTS, deployment(self._pods, "example.org/web:1")), self._deployed
            )
        ]

        def change() -> None:
            found = call("GET", path)
            found["spec"]["template"]["spec"]["containers"][0]["image"] = "example.org/web:2"
            call("PUT", path, found)

        phases.append(self.measure("rollover", change, self._without_old_pods))
        phases.append(self.measure("down", lambda: call("DELETE", path), self._without_pods))
        return phases


def main() -> int:
    """Measure and print."""
    assert __doc__
    parser = arguments(__doc__)
    parser.add_argument("--pods", type=int, default=1000)
    options = parser.parse_args()
    # A rollover has a quarter more pods, and those that end.
    nodes = options.pods * 2 // PODS_PER_NODE + 1
    flags = ["--controllers=*,+workloads", f"--fake-nodes={nodes}", *options.flag]
    with SubprocessServer(*flags) as server:
        target = Target(server.url, server.token, server.pid)
        while len(target.call("GET", "/api/v1/nodes")["items"]) < nodes:
            time.sleep(POLL_INTERVAL)
        phases = Rollout(target, options.pods).run()
        memory = target.memory()
    print(f"{'phase':10} {'seconds':>8} {'cpu s':>8} {'writes':>8}")
    for phase in phases:
        print(f"{phase.name:10} {phase.seconds:8.1f} {phase.cpu:8.1f} {phase.writes:8}")
    print(f"resident: {memory:.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
