"""A server whose metrics are read."""

from __future__ import annotations

from typing import Any

from attrs import evolve
from prometheus_client.parser import text_string_to_metric_families

from twisted.internet.threads import deferToThread
from twisted.trial.unittest import TestCase

from kubetwist.testing import InProcessServer
from kubetwist.testing.trial import KubeAPIMixin


class MetricsTestCase(KubeAPIMixin, TestCase):
    """A test with the tools of several test cases."""

    timeout = 60

    async def setUp(self) -> None:
        """A server, about which nobody else asks."""
        self.server: InProcessServer = await self.startKubeAPI("--controllers=")

    async def ask(self, method: str, path: str, body: Any = None, **more: Any) -> tuple[int, Any]:
        """A request of the admin, or with a token."""
        connection = evolve(self.server.connection, token=more.pop("token", self.server.connection.token))
        return await deferToThread(connection.request, method, path, body, **more)

    async def counted(self, name: str, path: str = "/metrics", /, **labels: str) -> float:
        """The sum of all samples of a name that have these labels."""
        code, text = await self.ask("GET", path)
        assert code == 200, text
        return sum(
            sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            # The parser takes every counter for one whose name ends so.
            if sample.name in (name, f"{name}_total") and labels.items() <= sample.labels.items()
        )
