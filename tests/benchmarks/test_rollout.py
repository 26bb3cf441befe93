"""Tests for F{benchmarks/rollout.py}: when a Deployment is complete, and how a phase is measured."""

from __future__ import annotations

import os
from typing import Any

from attrs import define

from twisted.trial.unittest import SynchronousTestCase

from ..checkout import load_script

script = load_script("benchmarks/rollout.py")


def deployed(**status: int) -> dict[str, Any]:
    """Return a Deployment of three pods in its second generation."""
    return {"metadata": {"generation": 2}, "spec": {"replicas": 3}, "status": status}


COMPLETE = {"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "availableReplicas": 3}


@define
class Server:
    """
    A server whose storage makes ten writes between two requests.

    @ivar pid: The process whose CPU time is read.
    """

    pid: int = os.getpid()
    revision: int = 100

    def call(self, method: str, path: str) -> dict[str, Any]:
        """Return an empty list."""
        self.revision += 10
        return {"metadata": {"resourceVersion": str(self.revision)}, "items": []}


class RolloutTests(SynchronousTestCase):
    """The end and the figures of a phase."""

    def test_complete(self) -> None:
        """A Deployment is complete if its controller has seen the change, and all pods are new and available."""
        self.assertTrue(script.is_complete(deployed(**COMPLETE)))

    def test_incomplete(self) -> None:
        """A Deployment without status, with old pods, or with pods that are not available is not complete."""
        for change in ({"observedGeneration": 1}, {"replicas": 4}, {"updatedReplicas": 2}, {"availableReplicas": 2}):
            self.assertFalse(script.is_complete(deployed(**{**COMPLETE, **change})), change)
        self.assertFalse(script.is_complete(deployed()))

    def test_phase(self) -> None:
        """A phase ends with its condition; its writes are the difference of the revisions."""
        order: list[str] = []
        phase = script.Rollout(Server(), 3).measure("up", lambda: order.append("begin"), lambda: bool(order))
        self.assertEqual(("up", 10, ["begin"]), (phase.name, phase.writes, order))
        self.assertGreaterEqual(phase.cpu, 0)
