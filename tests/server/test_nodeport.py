"""Tests of C{--kubernetes-service-node-port}, with a whole server."""

from __future__ import annotations

from twisted.internet.threads import deferToThread
from twisted.trial.unittest import TestCase

from kubetwist.testing.trial import KubeAPIMixin


class NodePortTests(KubeAPIMixin, TestCase):
    """The service C{kubernetes}."""

    timeout = 60

    async def test_node_port(self) -> None:
        """The service has the configured node port, which is not allocated to other services."""
        server = await self.startKubeAPI("--controllers=", "--kubernetes-service-node-port=30443")
        request = server.connection.request
        path = "/api/v1/namespaces/default/services"
        _, service = await deferToThread(request, "GET", f"{path}/kubernetes")
        self.assertEqual(service["spec"]["type"], "NodePort")
        self.assertEqual(service["spec"]["ports"][0]["nodePort"], 30443)
        other = {"metadata": {"name": "a"}, "spec": {"type": "NodePort", "ports": [{"port": 1, "nodePort": 30443}]}}
        code, answer = await deferToThread(request, "POST", path, other)
        self.assertEqual(code, 422, answer)
        self.assertIn("provided port is already allocated", answer["message"])
