"""Test case with a server whose metrics are read."""

from __future__ import annotations

from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from twisted.internet.threads import deferToThread
from twisted.trial.unittest import TestCase

from kubetwist.testing import InProcessServer
from kubetwist.testing.trial import KubeAPIMixin


class MetricsTestCase(KubeAPIMixin, TestCase):
    """Test case with a server and helpers to read metrics."""

    timeout = 60
    #: Flags of the server.
    arguments: tuple[str, ...] = ("--controllers=",)

    async def setUp(self) -> None:
        """Start a server."""
        self.server: InProcessServer = await self.startKubeAPI(*self.arguments)

    async def ask(self, method: str, path: str, body: Any = None, **more: Any) -> tuple[int, Any]:
        """Send a request as admin, or with a token."""
        connection = self.server.connection.with_token(more.pop("token", self.server.connection.token))
        return await deferToThread(connection.request, method, path, body, **more)

    async def counted(self, name: str, path: str = "/metrics", /, **labels: str) -> float:
        """Return the sum of all samples of a name with these labels."""
        code, text = await self.ask("GET", path)
        assert code == 200, text
        return sum(
            sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            # The parser appends this suffix to the names of counters.
            if sample.name in (name, f"{name}_total") and labels.items() <= sample.labels.items()
        )
