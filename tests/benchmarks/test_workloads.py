"""Tests for F{benchmarks/workloads.py}: the sizes of workloads, when they are done, and how a phase is measured."""

from __future__ import annotations

import os
from typing import Any

from attrs import define

from twisted.trial.unittest import SynchronousTestCase

from ..checkout import load_script

script = load_script("benchmarks/workloads.py")
SIZES = script.Sizes.of(1000, 10000)


@define
class Server:
    """
    A server whose storage makes ten writes between two requests.

    @ivar pid: The process whose CPU time is read.
    """

    pid: int = os.getpid()
    revision: int = 100

    def call(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """Return an empty list."""
        self.revision += 10
        return {"metadata": {"resourceVersion": str(self.revision)}, "items": []}

    def memory(self) -> float:
        """Return the resident memory."""
        return 100.0


class WorkloadsTests(SynchronousTestCase):
    """The sizes, the ends and the figures of phases."""

    def test_sizes(self) -> None:
        """The workloads together have the number of pods."""
        self.assertEqual(SIZES, script.Sizes(1000, 5000, 1000, 2500, 500))
        specs = {name: obj["spec"] for name, obj in script.workloads(SIZES).items()}
        self.assertEqual(list(specs), list(script.PATHS))
        self.assertEqual((specs["deployment"]["replicas"], specs["statefulset"]["replicas"]), (5000, 1000))
        self.assertEqual(specs["job"]["completions"], 2500)
        self.assertEqual(specs["cronjob"]["jobTemplate"]["spec"]["completions"], 500)

    def test_done(self) -> None:
        """A workload is done when all its pods are ready, or have succeeded."""
        done: dict[str, dict[str, Any]] = {
            "daemonset": {"numberReady": 1000, "desiredNumberScheduled": 1000},
            "deployment": {"availableReplicas": 5000},
            "statefulset": {"readyReplicas": 1000, "currentRevision": "a", "updateRevision": "a"},
            "job": {"succeeded": 2500},
            "cronjob": {"lastSuccessfulTime": "2027-01-15T08:00:00Z"},
        }
        for name, status in done.items():
            self.assertTrue(script.is_done(name, {"status": status}, SIZES), name)
            self.assertFalse(script.is_done(name, {}, SIZES), name)
        rolling = {**done["statefulset"], "updateRevision": "b"}
        self.assertFalse(script.is_done("statefulset", {"status": rolling}, SIZES))

    def test_phase(self) -> None:
        """A phase ends with its condition; its writes are the difference of the revisions."""
        order: list[str] = []
        phases = script.Phases(Server(), 10, 100)
        self.patch(script, "show", lambda cost: order.append(cost.name))
        cost = phases.measure("up", lambda: order.append("begin"), lambda: bool(order))
        self.assertEqual((cost.name, cost.writes, cost.memory, order), ("up", 10, 100.0, ["begin", "up"]))
        self.assertGreaterEqual(cost.cpu, 0)
