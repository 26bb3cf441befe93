"""Tests for L{kubetwist.controllers.fakekubelet.kubelet} over HTTP: logs, ports, and the list of pods."""

from __future__ import annotations

from typing import Any

from twisted.internet.threads import deferToThread
from twisted.trial.unittest import TestCase

from kubetwist.testing import InProcessServer

PODS = "/api/v1/namespaces/default/pods"
IMAGES: dict[str, Any] = {
    "web": {
        "logs": ["one", "two", "three"],
        "ports": {
            80: {"http": {"status": 202, "headers": {"X-A": "b"}, "body": "hello"}},
            81: {"response": "not HTTP"},
        },
    },
    "done": {"logs": "finished", "run_for": "1s"},
}


class KubeletTests(TestCase):
    """The simulated kubelet of a server with one node."""

    async def setUp(self) -> None:
        """Start a server with a running pod."""
        self.server = InProcessServer("--fake-nodes=1", images=IMAGES)
        self.addCleanup(self.server.stop)
        await self.server.start()
        await self.server.settle()
        await self.run_pod("web")
        await self.server.wait_for("pods/web", condition="Ready", timeout=30)

    async def run_pod(self, image: str, **spec: Any) -> None:
        """Create a pod with the name of its image."""
        containers = [{"name": "main", "image": f"registry.example.org/{image}:1"}]
        pod = {"metadata": {"name": image}, "spec": {"containers": containers, **spec}}
        self.assertEqual((await self.ask("POST", PODS, pod))[0], 201)

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Send a request as the admin; return the status code and the content."""
        return await deferToThread(self.server.connection.request, method, path, body)

    async def test_logs(self) -> None:
        """A log has the lines of the image, as far as the request selects them."""
        log = f"{PODS}/web/log"
        self.assertEqual(await self.ask("GET", log), (200, "one\ntwo\nthree\n"))
        self.assertEqual(await self.ask("GET", f"{log}?tailLines=1"), (200, "three\n"))
        self.assertEqual(await self.ask("GET", f"{log}?limitBytes=5"), (200, "one\nt"))
        _, stamped = await self.ask("GET", f"{log}?timestamps=true")
        self.assertEqual([line.partition("Z ")[2] for line in stamped.splitlines()], ["one", "two", "three"])

    async def test_no_log(self) -> None:
        """A container that has not restarted has no previous log."""
        code, status = await self.ask("GET", f"{PODS}/web/log?previous=true")
        self.assertEqual((code, status["reason"]), (400, "BadRequest"))
        self.assertIn('previous terminated container "main" in pod "web" not found', status["message"])

    async def test_finished(self) -> None:
        """The log of a finished container can be followed to its end."""
        await self.run_pod("done", restartPolicy="Never")
        await self.server.wait_for("pods/done", jsonpath="{.status.phase}=Succeeded", timeout=30)
        self.assertEqual(await self.ask("GET", f"{PODS}/done/log?follow=true"), (200, "finished\n"))

    async def test_ports(self) -> None:
        """A port answers as the image configures it; without configuration, nothing listens."""
        self.assertEqual(await self.ask("GET", f"{PODS}/web:80/proxy/any/path"), (202, "hello"))
        for port in (81, 82):
            code, status = await self.ask("GET", f"{PODS}/web:{port}/proxy/")
            self.assertEqual((code, status["reason"]), (503, "ServiceUnavailable"), port)

    async def test_pods_of_node(self) -> None:
        """The kubelet lists the pods of its node."""
        code, found = await self.ask("GET", "/api/v1/nodes/pretend-node-0/proxy/pods")
        self.assertEqual((code, [pod["metadata"]["name"] for pod in found["items"]]), (200, ["web"]))
        code, _ = await self.ask("GET", "/api/v1/nodes/pretend-node-0/proxy/nothing")
        self.assertEqual(code, 404)

    async def test_exec_without_upgrade(self) -> None:
        """A command needs a connection that can be upgraded."""
        code, status = await self.ask("POST", f"{PODS}/web/exec?command=ls&stdout=true")
        self.assertEqual((code, status["reason"]), (400, "BadRequest"))
