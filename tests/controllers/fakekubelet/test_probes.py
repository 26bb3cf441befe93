"""Tests for L{kubetwist.controllers.fakekubelet.probes}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.times import format_time
from kubetwist.controllers.fakeimages import FakeImages, parse_images
from kubetwist.controllers.fakekubelet.podstatus import PodAddresses, PodStatusSimulator

START = 1_800_000_000.0


class ProbeTests(SynchronousTestCase):
    """L{ProbeTimes}, in the status of a pod."""

    def setUp(self) -> None:
        """Create a pod whose container has all probes."""
        self.images = FakeImages()
        probe = {"periodSeconds": 2, "failureThreshold": 3, "initialDelaySeconds": 1}
        container = {"name": "c", "image": "web"}
        container |= {f"{kind}Probe": probe for kind in ("liveness", "readiness", "startup")}  # type: ignore[dict-item]
        meta: dict[str, Any] = {"name": "p", "uid": "u", "annotations": {}}
        self.pod: dict[str, Any] = {"metadata": meta, "spec": {"containers": [container]}, "status": {}}

    def simulate(self, now: float) -> tuple[str, bool, int]:
        """Return the state, the readiness and the restarts of the container at a time."""
        run = PodStatusSimulator(self.pod, PodAddresses("192.0.2.1", "10.0.0.1"), START + now, self.images)
        self.pod["status"] = run.status
        self.wait = run.wait
        self.events = [(one.type, one.reason, one.message) for one in run.events]
        (status,) = run.status["containerStatuses"]
        (state,) = status["state"]
        return state, status["ready"], status["restartCount"]

    def test_default(self) -> None:
        """Probes succeed after their delay."""
        self.assertEqual((self.simulate(0), self.wait), (("running", False, 0), 1.0))
        self.assertEqual((self.simulate(1), self.wait), (("running", True, 0), None))

    def test_liveness(self) -> None:
        """A failing liveness probe restarts the container, with backoff."""
        self.images.replace(parse_images({"web": {"probes": {"liveness": {"fail_after": 20}}}}))
        self.simulate(0)
        self.assertEqual((self.simulate(1), self.wait), (("running", True, 0), 23.0))
        self.assertEqual((self.simulate(24), self.wait), (("waiting", False, 0), 10.0))
        (status,) = self.pod["status"]["containerStatuses"]
        terminated = status["lastState"]["terminated"]
        self.assertEqual((terminated["exitCode"], terminated["reason"]), (137, "Error"))
        self.assertEqual(terminated["finishedAt"], format_time(START + 24))
        self.assertEqual(self.simulate(34), ("running", False, 1))

    def test_readiness(self) -> None:
        """A failing readiness probe leaves the container running and unready."""
        self.images.replace(parse_images({"web": {"probes": {"readiness": {"fail_after": 20, "pass_after": 3}}}}))
        self.assertEqual((self.simulate(0), self.wait), (("running", False, 0), 1.0))
        # The startup probe has succeeded.
        self.assertEqual((self.simulate(1), self.wait), (("running", False, 0), 2.0))
        self.assertTrue(self.pod["status"]["containerStatuses"][0]["started"])
        self.assertEqual((self.simulate(3), self.wait), (("running", True, 0), 21.0))
        self.assertEqual((self.simulate(24), self.wait), (("running", False, 0), None))
        self.images.replace(parse_images({"web": {"probes": {"readiness": False}}}))
        self.assertFalse(self.simulate(10)[1])

    def test_annotation(self) -> None:
        """An annotation makes probes fail on request."""
        self.simulate(0)
        self.assertTrue(self.simulate(100)[1])
        self.pod["metadata"]["annotations"]["kubetwist.dev/fail-probes"] = "readiness"
        self.assertEqual(self.simulate(101), ("running", False, 0))
        self.pod["metadata"]["annotations"]["kubetwist.dev/fail-probes"] = "liveness, startup"
        self.assertEqual(self.simulate(102), ("waiting", False, 0))
        del self.pod["metadata"]["annotations"]["kubetwist.dev/fail-probes"]
        self.assertEqual(self.simulate(113)[::2], ("running", 1))

    def test_events(self) -> None:
        """A failed probe has an event for each attempt, with the text of its handler; a kill has another."""
        container = self.pod["spec"]["containers"][0]
        self.simulate(0)
        self.simulate(100)
        self.assertEqual(self.events, [])
        for handler, output in (
            ({"httpGet": {"port": 80}}, "HTTP probe failed with statuscode: 500"),
            ({"tcpSocket": {"port": "web"}}, "dial tcp 10.0.0.1:8080: connect: connection refused"),
            ({"grpc": {"port": 1}}, 'service unhealthy (responded with "NOT_SERVING")'),
            ({"exec": {"command": ["x"]}}, ""),
        ):
            container["ports"] = [{"name": "web", "containerPort": 8080}]
            container["readinessProbe"] = {"failureThreshold": 2, **handler}
            self.pod["metadata"]["annotations"]["kubetwist.dev/fail-probes.c"] = "readiness"
            self.assertFalse(self.simulate(101)[1])
            self.assertEqual(self.events, [("Warning", "Unhealthy", f"Readiness probe failed: {output}")] * 2)
            self.simulate(102)
            self.assertEqual(self.events, [])
            self.pod["metadata"]["annotations"].clear()
            self.assertTrue(self.simulate(103)[1])
        self.pod["metadata"]["annotations"]["kubetwist.dev/fail-probes"] = "liveness"
        self.simulate(104)
        self.assertEqual(
            self.events[2:],
            [
                ("Warning", "Unhealthy", "Liveness probe failed: "),
                ("Normal", "Killing", "Container c failed liveness probe, will be restarted"),
                ("Warning", "BackOff", "Back-off restarting failed container c in pod p_(u)"),
            ],
        )

    def test_startup(self) -> None:
        """A container whose startup probe fails is neither started nor ready, and is killed."""
        self.images.replace(parse_images({"web": {"probes": {"startup": False}}}))
        self.assertEqual((self.simulate(0), self.wait), (("running", False, 0), 5.0))
        self.assertFalse(self.pod["status"]["containerStatuses"][0]["started"])
        self.assertEqual(self.simulate(5), ("waiting", False, 0))
        self.assertIn("Container c failed startup probe, will be restarted", self.events[-2])

    def test_undefined(self) -> None:
        """Probes that the container does not define have no result."""
        self.pod["spec"]["containers"] = [{"name": "c", "image": "web"}]
        self.pod["metadata"]["annotations"]["kubetwist.dev/fail-probes"] = "liveness,readiness,startup"
        self.assertEqual((self.simulate(0), self.wait), (("running", True, 0), None))

    def test_images(self) -> None:
        """Images have durations, exit codes and delays; annotations override them."""
        settings = {"ready_after": 5, "run_for": 60, "exit": [3, 0], "stop_after": 7}
        self.images.replace(parse_images({"web": settings}))
        self.assertEqual((self.simulate(0), self.wait), (("running", False, 0), 1.0))
        self.assertEqual((self.simulate(1), self.wait), (("running", False, 0), 4.0))
        self.assertEqual((self.simulate(5), self.wait), (("running", True, 0), 55.0))
        self.assertEqual(self.simulate(60), ("waiting", False, 0))
        (status,) = self.pod["status"]["containerStatuses"]
        self.assertEqual(status["lastState"]["terminated"]["exitCode"], 3)
        self.images.replace(parse_images({"web": {"pull_error": True}}))
        self.pod["status"] = {}
        self.assertEqual(self.simulate(0), ("waiting", False, 0))
