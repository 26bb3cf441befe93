"""Tests for L{kubetwist.controllers.fakekubelet.podstatus}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.times import format_time
from kubetwist.controllers.fakekubelet.podstatus import (
    EXIT_CODE,
    READY,
    RUN_SECONDS,
    STOP_SECONDS,
    PodAddresses,
    PodStatusSimulator,
    read_behavior,
    stop_wait,
)

PLACE = PodAddresses("192.0.2.1", "10.0.0.1")
START = 1_800_000_000.0
#: All annotations of simulated pods.
ALL = {"run_seconds": "3.5", "exit_code": "1,-1,0", "stop_seconds": "7", "ready": "false"}


def pod(image: str = "app", spec: Any = None, **annotations: str) -> dict[str, Any]:
    """Return a pod with one container."""
    named = {name.replace("_", "-"): value for name, value in annotations.items()}
    meta = {"name": "p", "uid": "u", "annotations": {f"kubetwist.dev/{name}": value for name, value in named.items()}}
    return {"metadata": meta, "spec": {"containers": [{"name": "c", "image": image}], **(spec or {})}, "status": {}}


class ReadBehaviorTests(SynchronousTestCase):
    """Tests for L{read_behavior}."""

    def test_images(self) -> None:
        """The name of an image sets its exit code, regardless of registry, tag and digest."""
        for image, seconds, code, pulled in (
            ("app", None, 0, True),
            ("example.com:5000/true:1", 1.0, 0, True),
            ("false@sha256:0", 1.0, 1, True),
            ("x/pull-error", None, 0, False),
        ):
            plan = read_behavior(pod(image))
            self.assertEqual((plan.seconds, plan.code(0), plan.pulled), (seconds, code, pulled), image)

    def test_annotations(self) -> None:
        """Annotations override images. Invalid annotations are ignored."""
        self.assertEqual({RUN_SECONDS, EXIT_CODE, STOP_SECONDS, READY}, set(pod(**ALL)["metadata"]["annotations"]))
        plan = read_behavior(pod("true", **ALL))
        self.assertEqual((plan.seconds, plan.stop, plan.ready), (3.5, 7.0, False))
        self.assertEqual([plan.code(restarts) for restarts in range(4)], [1, 255, 0, 0])
        odd = read_behavior(pod("false", run_seconds="-1", exit_code="x", stop_seconds="nan", ready="x"))
        self.assertEqual((odd.seconds, odd.code(0), odd.stop, odd.ready), (1.0, 1, 0.0, True))

    def test_jobs(self) -> None:
        """Containers of pods of jobs exit."""
        of_job = pod()
        of_job["metadata"]["ownerReferences"] = [{"kind": "Job", "controller": True}]
        self.assertEqual(read_behavior(of_job).seconds, 1.0)


class PodStatusSimulatorTests(SynchronousTestCase):
    """Tests for L{PodStatusSimulator}."""

    def simulate(self, obj: dict[str, Any], now: float) -> PodStatusSimulator:
        """Compute the status of a pod, and store it in the pod."""
        run = PodStatusSimulator(obj, PLACE, START + now)
        obj["status"] = run.status
        return run

    def state(self, obj: dict[str, Any]) -> str:
        """Return the state of the container."""
        (state,) = obj["status"]["containerStatuses"][0]["state"]
        return str(state)

    def ready(self, obj: dict[str, Any]) -> str:
        """Return the condition Ready of the pod."""
        return next(str(one["status"]) for one in obj["status"]["conditions"] if one["type"] == "Ready")

    def test_runs(self) -> None:
        """A pod without annotations runs, is ready, and does not change any more."""
        obj = pod()
        run = self.simulate(obj, 0)
        self.assertEqual((run.wait, obj["status"]["phase"], self.ready(obj)), (None, "Running", "True"))
        self.assertEqual((obj["status"]["hostIP"], obj["status"]["podIP"]), ("192.0.2.1", "10.0.0.1"))
        before = dict(obj["status"])
        self.simulate(obj, 100)
        self.assertEqual(obj["status"], before)

    def test_probe(self) -> None:
        """A pod becomes ready after the initial delay of its probes."""
        obj = pod()
        obj["spec"]["containers"][0]["readinessProbe"] = {"initialDelaySeconds": 5}
        self.assertEqual((self.simulate(obj, 0).wait, self.ready(obj)), (5.0, "False"))
        self.assertEqual((self.simulate(obj, 5).wait, self.ready(obj)), (None, "True"))

    def test_ends(self) -> None:
        """A container with restart policy Never terminates with success or failure."""
        for image, phase, code in (("true", "Succeeded", 0), ("false", "Failed", 1)):
            obj = pod(image, {"restartPolicy": "Never"})
            self.assertEqual(self.simulate(obj, 0).wait, 1.0)
            self.assertIsNone(self.simulate(obj, 1).wait)
            ended = obj["status"]["containerStatuses"][0]["state"]["terminated"]
            self.assertEqual((obj["status"]["phase"], ended["exitCode"]), (phase, code))
            self.assertEqual(ended["finishedAt"], format_time(START + 1))
            before = dict(obj["status"])
            self.simulate(obj, 50)
            self.assertEqual(obj["status"], before)

    def test_crashes(self) -> None:
        """A container that crashes is restarted with increasing backoff."""
        obj = pod("false", {"restartPolicy": "OnFailure"}, exit_code="1,1,0")
        now = 0.0
        for wait in (1.0, 10.0, 1.0, 20.0, 1.0):
            self.assertEqual(self.simulate(obj, now).wait, wait)
            self.assertEqual(self.state(obj), "running" if wait == 1.0 else "waiting")
            now += wait
        self.assertIsNone(self.simulate(obj, now).wait)
        self.assertEqual(obj["status"]["phase"], "Succeeded")

    def test_not_pulled(self) -> None:
        """A pod whose image cannot be pulled waits."""
        obj = pod("pull-error")
        self.simulate(obj, 0)
        waiting = obj["status"]["containerStatuses"][0]["state"]["waiting"]
        self.assertEqual((obj["status"]["phase"], waiting["reason"]), ("Pending", "ImagePullBackOff"))
        self.assertNotIn("podIP", obj["status"])

    def test_deadline(self) -> None:
        """A pod that is active longer than its deadline fails."""
        obj = pod(spec={"activeDeadlineSeconds": 5})
        self.assertEqual(self.simulate(obj, 0).wait, 5.0)
        self.simulate(obj, 5)
        self.assertEqual((obj["status"]["phase"], obj["status"]["reason"]), ("Failed", "DeadlineExceeded"))

    def test_stopped(self) -> None:
        """A deleted pod stops after its stop time, but within its grace period."""
        obj = pod(stop_seconds="7")
        self.assertEqual(stop_wait(obj, START), 0.0)
        self.simulate(obj, 0)
        for grace, wait in ((30, 7.0), (2, 2.0), (0, 0.0)):
            obj["metadata"].update(deletionTimestamp=format_time(START + grace), deletionGracePeriodSeconds=grace)
            self.assertEqual(stop_wait(obj, START), wait)
            self.assertEqual(stop_wait(obj, START + wait + 1), 0.0)
        stopped = PodStatusSimulator(obj, PLACE, START + 1).stopped()
        self.assertEqual(stopped["containerStatuses"][0]["state"]["terminated"]["exitCode"], 143)

    def test_gates(self) -> None:
        """A pod with a readiness gate is ready when its condition is True."""
        obj = pod(spec={"readinessGates": [{"conditionType": "x/y"}]})
        self.simulate(obj, 0)
        self.assertEqual(self.ready(obj), "False")
        obj["status"]["conditions"].append({"type": "x/y", "status": "True"})
        self.simulate(obj, 1)
        self.assertEqual(self.ready(obj), "True")
