"""Tests for L{kubetwist.testing._simulation} with a server on the reactor."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import TestCase

from kubetwist.testing import InProcessServer, SimulationError

FAIL = "kubetwist.dev/fail-probes"
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web"},
    "spec": {
        "containers": [
            {
                "name": "a",
                "image": "a",
                "readinessProbe": {"httpGet": {"port": 80}},
                "livenessProbe": {"grpc": {"port": 1}},
            },
            {"name": "b", "image": "b"},
        ]
    },
}


class ProbeRequestTests(TestCase):
    """C{fail_probe} and C{pass_probe}."""

    async def setUp(self) -> None:
        """Start a server with a running pod."""
        self.server = InProcessServer("--fake-nodes=1")
        self.addCleanup(self.server.stop)
        await self.server.start()
        await self.server.load([POD])
        self.pod = await self.server.wait_for("pods/web", condition="Ready", timeout=30)

    async def annotations(self) -> dict[str, str]:
        """Return the annotations of the pod."""
        pod = await self.server.wait_for("pods/web")
        return dict(pod["metadata"].get("annotations") or {})

    async def test_requests(self) -> None:
        """Probes fail until they pass again, each for itself, and make the pod unready and ready."""
        await self.server.fail_probe("web", "readiness")
        await self.server.wait_for("pods/web", condition="Ready=False", timeout=30)
        await self.server.fail_probe("pods/web", "readiness", namespace="default")
        await self.server.fail_probe(self.pod, "liveness")
        await self.server.fail_probe("web", "liveness", container="a")
        self.assertEqual(await self.annotations(), {FAIL: "readiness,liveness", f"{FAIL}.a": "liveness"})
        await self.server.pass_probe("web", "liveness")
        await self.server.pass_probe("web", "liveness", container="a")
        self.assertEqual(await self.annotations(), {FAIL: "readiness"})
        await self.server.pass_probe("web", "readiness")
        await self.server.wait_for("pods/web", condition="Ready", timeout=30)
        self.assertEqual(await self.annotations(), {})

    async def test_invalid(self) -> None:
        """A probe that the pod does not have is an error that names it; a missing pod is the server's error."""
        for pod, probe, container, error, text in (
            ("web", "live", "", ValueError, "unknown probe 'live': must be one of liveness, readiness, startup"),
            ("web", "startup", "", ValueError, "pod 'web' has no startup probe"),
            ("web", "liveness", "b", ValueError, "container 'b' of pod 'web' has no liveness probe"),
            ("web", "liveness", "c", ValueError, "pod 'web' has no container 'c'"),
            ("none", "liveness", "", SimulationError, 'pods "none" not found (404)'),
            (3, "liveness", "", TypeError, "3 is no pod: use its name, or an object with metadata"),
        ):
            with self.assertRaises(error) as caught:
                await self.server.fail_probe(pod, probe, container=container)
            self.assertEqual(str(caught.exception), text)
