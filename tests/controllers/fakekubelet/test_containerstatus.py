"""Tests for L{kubetwist.controllers.fakekubelet.containerstatus}."""

from __future__ import annotations

from typing import Any

from attrs import evolve
from hypothesis import given
from hypothesis.strategies import floats, integers, lists, none, sampled_from

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.times import format_time
from kubetwist.controllers.fakekubelet.containerbehavior import ContainerBehavior
from kubetwist.controllers.fakekubelet.containerstatus import ContainerSimulator, PodTerms, end_status

START = 1_800_000_000.0
TERMS = PodTerms("p", "default", "u", "10.0.0.1", "Always", START, format_time(START))


class ContainerSimulatorTests(SynchronousTestCase):
    """Tests for L{ContainerSimulator}."""

    @given(
        policy=sampled_from(["Always", "OnFailure", "Never"]),
        seconds=none() | floats(0, 1000),
        codes=lists(integers(0, 255), min_size=1, max_size=3),
        steps=lists(integers(1, 400), max_size=8),
    )
    def test_progress(self, policy: str, seconds: float | None, codes: list[int], steps: list[int]) -> None:
        """Restarts only grow, a final exit is final, and a second computation at the same time changes nothing."""
        behavior = ContainerBehavior(seconds, tuple(codes))
        now, status, restarts, ended = START, None, 0, False
        for step in (0, *steps):
            now += step
            terms = evolve(TERMS, policy=policy, now=now, now_text=format_time(now))
            container: dict[str, Any] = {"name": "c", "image": "i"}
            result = ContainerSimulator(terms, container, behavior, status).compute()
            self.assertGreaterEqual(result.status["restartCount"], restarts)
            self.assertLessEqual(len(result.status["state"]), 1)
            if ended:
                self.assertEqual((result.status, result.wait, result.events), (status, None, ()))
            again = ContainerSimulator(terms, container, behavior, result.status).compute()
            self.assertEqual((again.status, list(again.events)), (result.status, []))
            self.assertTrue(result.wait is None or result.wait > 0)
            ended = result.exit_code is not None
            self.assertEqual(ended and policy != "Never", policy == "OnFailure" and result.exit_code == 0)
            status, restarts = result.status, result.status["restartCount"]

    def test_waiting(self) -> None:
        """A container that waits has no image yet."""
        found = ContainerSimulator(TERMS, {"name": "c", "image": "i"}, ContainerBehavior(), None).waiting(
            "PodInitializing"
        )
        self.assertEqual(found.status["state"], {"waiting": {"reason": "PodInitializing"}})
        self.assertEqual((found.status["imageID"], found.status["ready"], found.runs), ("", False, False))

    def test_end(self) -> None:
        """The end of a container that waits for its restart is the end of its last run."""
        last = {"exitCode": 3, "finishedAt": format_time(START)}
        old = {"name": "c", "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": last}}
        self.assertEqual(end_status(old, 143, "later")["state"], {"terminated": last})
        new = end_status({"name": "c", "state": {"running": {"startedAt": "then"}}, "containerID": "x"}, 143, "now")
        self.assertEqual(
            new["state"]["terminated"],
            {"exitCode": 143, "reason": "Error", "startedAt": "then", "finishedAt": "now", "containerID": "x"},
        )
