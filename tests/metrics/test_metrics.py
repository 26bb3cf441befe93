"""C{/metrics} of a whole server."""

from __future__ import annotations

from twisted.internet.threads import deferToThread
from twisted.trial.unittest import TestCase

from kubetwist.testing.trial import KubeAPIMixin


class ControllerMetricsTests(KubeAPIMixin, TestCase):
    """What controllers count."""

    timeout = 60

    async def test_queues(self) -> None:
        """Queues tell how much was put in them, and how long it waited and took."""
        server = await self.startKubeAPI("--controllers=namespace-controller")
        connection = server.connection
        path = "/api/v1/namespaces"
        await deferToThread(connection.request, "POST", path, {"metadata": {"name": "a"}})
        await deferToThread(connection.request, "DELETE", f"{path}/a")
        await server.settle()
        _, text = await deferToThread(connection.request, "GET", "/metrics")
        for name in ("adds_total", "queue_duration_seconds_count", "work_duration_seconds_count"):
            (line,) = [one for one in text.splitlines() if one.startswith(f"workqueue_{name}{{")]
            self.assertGreater(float(line.split()[-1]), 0, line)
