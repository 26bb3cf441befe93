"""Tests for L{kubetwist.controllers.fakekubelet.podstatus}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.times import format_time
from kubetwist.controllers.fakeimages import FakeImages, parse_images
from kubetwist.controllers.fakekubelet.podstatus import PodAddresses, PodStatusSimulator, stop_wait

PLACE = PodAddresses("192.0.2.1", "10.0.0.1")
START = 1_800_000_000.0


def pod(image: str = "app", spec: Any = None, **annotations: str) -> dict[str, Any]:
    """Return a pod with one container."""
    named = {name.replace("_", "-"): value for name, value in annotations.items()}
    meta = {"name": "p", "uid": "u", "annotations": {f"kubetwist.dev/{name}": value for name, value in named.items()}}
    return {"metadata": meta, "spec": {"containers": [{"name": "c", "image": image}], **(spec or {})}, "status": {}}


class PodStatusSimulatorTests(SynchronousTestCase):
    """Tests for L{PodStatusSimulator}."""

    images = FakeImages()

    def simulate(self, obj: dict[str, Any], now: float) -> PodStatusSimulator:
        """Compute the status of a pod, and store it in the pod."""
        run = PodStatusSimulator(obj, PLACE, START + now, self.images)
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
        # The sandbox of the pod exists.
        self.assertEqual(obj["status"]["podIP"], "10.0.0.1")

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

    def states(self, obj: dict[str, Any], field: str = "containerStatuses") -> dict[str, str]:
        """Return the states of containers by name, with the reason of a wait and the code of an exit."""
        found = {}
        for one in obj["status"][field]:
            ((state, more),) = one["state"].items()
            found[one["name"]] = f"{state} {more.get('reason', more.get('exitCode', ''))}".strip()
        return found

    def two(self, policy: str, **annotations: str) -> dict[str, Any]:
        """Return a pod with the containers a and b."""
        containers = [{"name": "a", "image": "app"}, {"name": "b", "image": "app"}]
        return pod(spec={"containers": containers, "restartPolicy": policy}, **annotations)

    def test_exit_separately(self) -> None:
        """Each container exits at a different time, with a different code; the pod ends with the last one."""
        obj = self.two("Never", **{"run_seconds.a": "2", "run_seconds.b": "5", "exit_code.b": "3"})
        self.assertEqual(self.simulate(obj, 0).wait, 2.0)
        self.assertEqual((self.simulate(obj, 2).wait, obj["status"]["phase"]), (3.0, "Running"))
        self.assertEqual(self.states(obj), {"a": "terminated Completed", "b": "running"})
        ready = next(one for one in obj["status"]["conditions"] if one["type"] == "Ready")
        self.assertEqual(ready["message"], "containers with unready status: [a]")
        self.assertEqual((self.simulate(obj, 5).wait, obj["status"]["phase"]), (None, "Failed"))
        self.assertEqual(self.states(obj), {"a": "terminated Completed", "b": "terminated Error"})
        codes = [one["state"]["terminated"]["exitCode"] for one in obj["status"]["containerStatuses"]]
        self.assertEqual(codes, [0, 3])

    def test_restart_separately(self) -> None:
        """A container that crashes is restarted, and another one runs on."""
        obj = self.two("Always", **{"run_seconds.a": "2"})
        self.simulate(obj, 0)
        self.assertEqual((self.simulate(obj, 2).wait, obj["status"]["phase"]), (10.0, "Running"))
        self.assertEqual(self.states(obj), {"a": "waiting CrashLoopBackOff", "b": "running"})
        waiting = obj["status"]["containerStatuses"][0]["state"]["waiting"]
        self.assertEqual(waiting["message"], "back-off 10s restarting failed container=a pod=p_(u)")
        self.simulate(obj, 12)
        self.assertEqual([one["restartCount"] for one in obj["status"]["containerStatuses"]], [1, 0])
        started = [one["state"]["running"]["startedAt"] for one in obj["status"]["containerStatuses"]]
        self.assertEqual(started, [format_time(START + 12), format_time(START)])

    def test_forgotten_backoff(self) -> None:
        """A container that has run for more than ten minutes is restarted after the first delay."""
        obj = self.two("Always", **{"run_seconds.a": "700"})
        for now, wait in ((0, 700.0), (700, 10.0), (710, 700.0), (1410, 10.0)):
            self.assertEqual(self.simulate(obj, now).wait, wait)

    def test_restart_rules(self) -> None:
        """The policy and the rules of a container precede the policy of the pod."""
        obj = self.two("Never", run_seconds="1", exit_code="7,1")
        rule = {"action": "Restart", "exitCodes": {"operator": "In", "values": [7]}}
        obj["spec"]["containers"][0].update(restartPolicy="Never", restartPolicyRules=[rule])
        self.simulate(obj, 0)
        self.simulate(obj, 1)
        self.assertEqual(self.states(obj), {"a": "waiting CrashLoopBackOff", "b": "terminated Error"})
        self.simulate(obj, 11)
        self.simulate(obj, 12)
        self.assertEqual((self.states(obj)["a"], obj["status"]["phase"]), ("terminated Error", "Failed"))

    def test_pull_separately(self) -> None:
        """A pod is pending while an image cannot be pulled; its other containers run."""
        obj = self.two("Always")
        obj["spec"]["containers"][1]["image"] = "pull-error"
        run = self.simulate(obj, 0)
        self.assertEqual([one.message for one in run.events], ['Back-off pulling image "pull-error"'])
        self.assertEqual(self.states(obj), {"a": "running", "b": "waiting ImagePullBackOff"})
        self.assertEqual(obj["status"]["phase"], "Pending")
        self.assertEqual(self.simulate(obj, 1).events, [])

    def initialized(self, **annotations: str) -> dict[str, Any]:
        """Return a pod with two init containers and a sidecar between them."""
        inits = [
            {"name": "first", "image": "app"},
            {"name": "side", "image": "app", "restartPolicy": "Always", "startupProbe": {"initialDelaySeconds": 3}},
            {"name": "last", "image": "app"},
        ]
        return pod(spec={"initContainers": inits}, **annotations)

    def init_states(self, obj: dict[str, Any]) -> list[str]:
        """Return the states of the init containers and of the container."""
        return [*self.states(obj, "initContainerStatuses").values(), *self.states(obj).values()]

    def test_init_order(self) -> None:
        """Init containers run one after the other; a sidecar must have started before the next one."""
        obj = self.initialized(**{"run_seconds.first": "5"})
        initializing = "waiting PodInitializing"
        self.assertEqual(self.simulate(obj, 0).wait, 5.0)
        self.assertEqual(self.init_states(obj), ["running", initializing, initializing, initializing])
        self.assertEqual(obj["status"]["phase"], "Pending")
        condition = next(one for one in obj["status"]["conditions"] if one["type"] == "Initialized")
        self.assertEqual(
            (condition["status"], condition["reason"], condition["message"]),
            ("False", "ContainersNotInitialized", "containers with incomplete status: [first side last]"),
        )
        self.assertEqual(self.simulate(obj, 5).wait, 3.0)
        self.assertEqual(self.init_states(obj), ["terminated Completed", "running", initializing, initializing])
        self.assertIsNone(self.simulate(obj, 8).wait)
        self.assertEqual(self.init_states(obj), ["terminated Completed", "running", "terminated Completed", "running"])
        self.assertEqual((obj["status"]["phase"], self.ready(obj)), ("Running", "True"))

    def test_init_fails(self) -> None:
        """An init container that fails is restarted, or its pod fails."""
        obj = self.initialized(**{"exit_code.first": "1,0"})
        self.assertEqual((self.simulate(obj, 0).wait, obj["status"]["phase"]), (10.0, "Pending"))
        self.assertEqual(self.init_states(obj)[0], "waiting CrashLoopBackOff")
        self.simulate(obj, 10)
        self.assertEqual(self.init_states(obj)[0], "terminated Completed")
        self.assertEqual(obj["status"]["initContainerStatuses"][0]["restartCount"], 1)
        obj = self.initialized(**{"exit_code.last": "4"})
        obj["spec"]["restartPolicy"] = "Never"
        self.simulate(obj, 0)
        self.assertIsNone(self.simulate(obj, 3).wait)
        self.assertEqual(obj["status"]["phase"], "Failed")
        completed = "terminated Completed"
        self.assertEqual(self.init_states(obj), [completed, completed, "terminated Error", "waiting PodInitializing"])

    def test_sidecar(self) -> None:
        """A sidecar is restarted independently, and ends after the containers of its pod."""
        obj = self.initialized(**{"run_seconds.side": "20", "run_seconds.c": "25"})
        obj["spec"]["restartPolicy"] = "Never"
        for now in (0, 3, 20):
            self.simulate(obj, now)
        self.assertEqual(self.init_states(obj)[1:], ["waiting CrashLoopBackOff", "terminated Completed", "running"])
        self.assertEqual((obj["status"]["phase"], self.ready(obj)), ("Running", "False"))
        self.simulate(obj, 28)
        self.assertEqual(
            self.init_states(obj)[1:], ["terminated Completed", "terminated Completed", "terminated Completed"]
        )
        self.assertEqual(obj["status"]["phase"], "Succeeded")

    def test_ephemeral(self) -> None:
        """An ephemeral container runs, regardless of annotations."""
        obj = pod(run_seconds="1")
        obj["spec"]["ephemeralContainers"] = [{"name": "debug", "image": "false"}]
        self.simulate(obj, 0)
        self.simulate(obj, 1)
        self.assertEqual(self.states(obj, "ephemeralContainerStatuses"), {"debug": "running"})

    def test_evicted(self) -> None:
        """The containers of an evicted pod are killed, and those that have exited keep their codes."""
        obj = self.two("Never", **{"run_seconds.a": "2"})
        self.simulate(obj, 0)
        self.simulate(obj, 2)
        evicted = PodStatusSimulator(obj, PLACE, START + 3).evicted("low")
        codes = [one["state"]["terminated"]["exitCode"] for one in evicted["containerStatuses"]]
        self.assertEqual((evicted["phase"], evicted["reason"], codes), ("Failed", "Evicted", [0, 137]))

    def test_images(self) -> None:
        """Each container behaves as its image."""
        self.images = FakeImages(parse_images({"one": {"run_for": 3, "exit": [2]}, "two": {"ready_after": 4}}))
        obj = self.two("OnFailure")
        for container, image in zip(obj["spec"]["containers"], ("one", "two"), strict=True):
            container["image"] = image
        self.simulate(obj, 0)
        self.simulate(obj, 3)
        self.assertEqual(self.states(obj), {"a": "waiting CrashLoopBackOff", "b": "running"})
        self.simulate(obj, 4)
        self.assertEqual([one["ready"] for one in obj["status"]["containerStatuses"]], [False, True])
