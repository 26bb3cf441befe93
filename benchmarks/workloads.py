"""
Measure the workload controllers with 1,000 simulated nodes and 10,000 pods: what a phase costs the server.

  nodes        until all nodes are ready, from the start of the server
  daemonset    a DaemonSet with a pod on each node
  deployment   a Deployment with half of the pods
  statefulset  a StatefulSet with a tenth of the pods, in parallel
  job          a Job that runs a quarter of the pods to completion
  cronjob      a CronJob whose job runs the rest of the pods, within the next minute
  top          the metrics of all pods and nodes, as C{kubectl top} reads them, ten times
  idle         a minute without changes: the nodes renew their leases
  rollover     another template for the pods of the StatefulSet
  down         the deletion of all workloads, until there are no pods

The columns are seconds, CPU seconds of the server, the number of writes, the slowest request of the observing client in
milliseconds, and the resident memory at its end.

Usage: python benchmarks/workloads.py [--nodes 1000] [--pods 10000] [--flag=...]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from attrs import frozen
from load import Target, arguments
from twoservers import processor_time

from kubetwist.testing import SubprocessServer

NAMESPACE = "/namespaces/default"
PODS = f"/api/v1{NAMESPACE}/pods"
#: Paths of the workloads, in the order of the phases.
PATHS = {
    "daemonset": f"/apis/apps/v1{NAMESPACE}/daemonsets",
    "deployment": f"/apis/apps/v1{NAMESPACE}/deployments",
    "statefulset": f"/apis/apps/v1{NAMESPACE}/statefulsets",
    "job": f"/apis/batch/v1{NAMESPACE}/jobs",
    "cronjob": f"/apis/batch/v1{NAMESPACE}/cronjobs",
}
TOP = ("/apis/metrics.k8s.io/v1beta1/pods", "/apis/metrics.k8s.io/v1beta1/nodes")
#: Seconds between two polls, and until a phase counts as failed.
POLL_INTERVAL = 0.2
PHASE_TIMEOUT = 1800.0
IDLE = 60.0


@frozen
class Cost:
    """
    What one phase took.

    @ivar writes: The difference of the revisions of the storage.
    @ivar slowest: Seconds of the slowest request of the observer.
    @ivar memory: Resident memory at the end, in megabytes.
    """

    name: str
    seconds: float
    cpu: float
    writes: int
    slowest: float
    memory: float


@frozen
class Sizes:
    """
    The number of pods of each workload.

    @ivar finished: The pods of the Job.
    """

    daemonset: int
    deployment: int
    statefulset: int
    finished: int
    cronjob: int

    @classmethod
    def of(cls, nodes: int, pods: int) -> Sizes:
        """Return the sizes for a number of pods, of which each node has one of the DaemonSet."""
        deployment, statefulset, finished = pods // 2, pods // 10, pods // 4
        return cls(nodes, deployment, statefulset, finished, max(pods - nodes - deployment - statefulset - finished, 1))


def workloads(sizes: Sizes) -> dict[str, dict[str, Any]]:
    """Return the workloads by phase."""
    container = {"name": "c", "image": "example.org/web:1", "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}}}

    def labelled(app: str, **spec: Any) -> dict[str, Any]:
        template = {"metadata": {"labels": {"app": app}}, "spec": {"containers": [container]}}
        return {"selector": {"matchLabels": {"app": app}}, "template": template, **spec}

    def job(pods: int) -> dict[str, Any]:
        template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
        return {"completions": pods, "parallelism": pods, "template": template}

    template = {"spec": job(sizes.cronjob)}
    specs = {
        "daemonset": labelled("daemonset"),
        "deployment": labelled("deployment", replicas=sizes.deployment),
        "statefulset": labelled(
            "statefulset", replicas=sizes.statefulset, serviceName="none", podManagementPolicy="Parallel"
        ),
        "job": job(sizes.finished),
        "cronjob": {"schedule": "* * * * *", "concurrencyPolicy": "Forbid", "jobTemplate": template},
    }
    return {name: {"metadata": {"name": name}, "spec": spec} for name, spec in specs.items()}


def is_done(name: str, found: dict[str, Any], sizes: Sizes) -> bool:
    """
    Return whether a workload has all its pods: ready, or succeeded.

    @param name: The name of its phase.
    @param found: The workload.
    @param sizes: The number of pods.
    """
    status = found.get("status", {})
    if name == "daemonset":
        return int(status.get("numberReady", 0)) == sizes.daemonset == status.get("desiredNumberScheduled", 0)
    if name == "deployment":
        return int(status.get("availableReplicas", 0)) == sizes.deployment
    if name == "statefulset":
        ready = int(status.get("readyReplicas", 0)) == sizes.statefulset
        return ready and status.get("currentRevision") == status.get("updateRevision")
    if name == "job":
        return int(status.get("succeeded", 0)) == sizes.finished
    return "lastSuccessfulTime" in status


class Phases:
    """The phases on one server."""

    def __init__(self, server: Target, nodes: int, pods: int) -> None:
        """
        @param server: The server.
        @param nodes: The number of its nodes.
        @param pods: The number of pods.
        """
        self._server, self._nodes = server, nodes
        self._sizes = Sizes.of(nodes, pods)
        self._slowest = 0.0

    def _call(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        began = time.perf_counter()
        answer: dict[str, Any] = self._server.call(method, path, body)
        self._slowest = max(self._slowest, time.perf_counter() - began)
        return answer

    def _revision(self) -> int:
        return int(self._server.call("GET", f"{PODS}?limit=1")["metadata"]["resourceVersion"])

    def measure(self, name: str, begin: Callable[[], object], ended: Callable[[], bool]) -> Cost:
        """Run a phase, and print its cost."""
        assert self._server.pid is not None
        revision, cpu, began = self._revision(), processor_time(self._server.pid), time.perf_counter()
        self._slowest = 0.0
        begin()
        while not ended():
            if time.perf_counter() - began > PHASE_TIMEOUT:
                raise SystemExit(f"workloads: {name} did not end in {PHASE_TIMEOUT:.0f} s")
            time.sleep(POLL_INTERVAL)
        seconds, used = time.perf_counter() - began, processor_time(self._server.pid) - cpu
        cost = Cost(name, seconds, used, self._revision() - revision, self._slowest, self._server.memory())
        show(cost)
        return cost

    def _ready_nodes(self) -> bool:
        nodes = self._call("GET", "/api/v1/nodes")["items"]
        return len(nodes) == self._nodes and all("taints" not in one["spec"] for one in nodes)

    def _without_pods(self) -> bool:
        return not self._call("GET", f"{PODS}?limit=1")["items"]

    def _is_done(self, name: str) -> bool:
        return is_done(name, self._call("GET", f"{PATHS[name]}/{name}"), self._sizes)

    def _suspend(self) -> None:
        path = f"{PATHS['cronjob']}/cronjob"
        found = self._call("GET", path)
        found["spec"]["suspend"] = True
        self._call("PUT", path, found)

    def _top(self) -> None:
        for path in TOP * 10:
            self._call("GET", path)

    def _change(self) -> None:
        path = f"{PATHS['statefulset']}/statefulset"
        found = self._call("GET", path)
        found["spec"]["template"]["spec"]["containers"][0]["image"] = "example.org/web:2"
        self._call("PUT", path, found)

    def _rolled_over(self) -> bool:
        found = self._call("GET", f"{PATHS['statefulset']}/statefulset")
        is_seen = found["status"].get("observedGeneration", 0) >= found["metadata"]["generation"]
        return is_seen and is_done("statefulset", found, self._sizes)

    def _delete(self) -> None:
        for name, path in PATHS.items():
            self._call("DELETE", f"{path}/{name}?propagationPolicy=Background")

    def run(self) -> list[Cost]:
        """Run all phases."""
        costs = [self.measure("nodes", lambda: None, self._ready_nodes)]
        for name, obj in workloads(self._sizes).items():
            create = partial(self._call, "POST", PATHS[name], obj)
            costs.append(self.measure(name, create, partial(self._is_done, name)))
        self._suspend()
        costs.append(self.measure("top", self._top, lambda: True))
        costs.append(self.measure("idle", lambda: time.sleep(IDLE), lambda: True))
        costs.append(self.measure("rollover", self._change, self._rolled_over))
        costs.append(self.measure("down", self._delete, self._without_pods))
        return costs


def show(cost: Cost) -> None:
    """Print a line of the table."""
    figures = f"{cost.seconds:8.1f} {cost.cpu:8.1f} {cost.writes:8} {cost.slowest * 1000:8.0f} {cost.memory:8.0f}"
    print(f"{cost.name:12} {figures}", flush=True)


def main() -> int:
    """Measure and print."""
    assert __doc__
    parser = arguments(__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=10000)
    options = parser.parse_args()
    flags = ["--controllers=*,+workloads", f"--fake-nodes={options.nodes}", *options.flag]
    with SubprocessServer(*flags) as server:
        print(f"{'phase':12} {'seconds':>8} {'cpu s':>8} {'writes':>8} {'slow ms':>8} {'MB':>8}")
        Phases(Target(server.url, server.token, server.pid), options.nodes, options.pods).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
