"""Tests of L{kubetwist.metrics.impersonation}."""

from __future__ import annotations

from contextlib import closing
from http.client import HTTPSConnection

from twisted.internet.threads import deferToThread

from tests.metrics.servercase import MetricsTestCase

PREFIX = "apiserver_impersonation_"


class ImpersonationTests(MetricsTestCase):
    """L{kubetwist.metrics.impersonation.ImpersonationMetrics}, over HTTP."""

    def impersonate(self, token: str, user: str) -> int:
        """Send a request as another user. Call it in a thread."""
        connection = self.server.connection
        headers = {"Authorization": f"Bearer {token}", "Impersonate-User": user}
        client = HTTPSConnection("127.0.0.1", connection.port, context=connection.ssl_context())
        with closing(client):
            client.request("GET", "/version", headers=headers)
            return client.getresponse().status

    async def counts(self, name: str, **labels: str) -> tuple[float, float]:
        """Return a counter, and the number of observations of its histogram."""
        counter = await self.counted(f"{PREFIX}{name}_total", **labels)
        return counter, await self.counted(f"{PREFIX}{name}_duration_seconds_count", **labels)

    async def test_allowed(self) -> None:
        """An administrator may impersonate in the first mode that applies, which needs two checks."""
        await deferToThread(self.impersonate, self.server.connection.token, "jane")
        mode = "user-info"
        self.assertEqual(await self.counts("attempts", mode=mode, decision="allowed"), (1, 1))
        self.assertEqual(await self.counts("authorization_attempts", mode=mode, decision="allowed"), (2, 2))
        self.assertEqual(await self.counts("attempts", decision="denied"), (0, 0))

    async def test_denied(self) -> None:
        """A user without permission is denied in all modes."""
        path = "/api/v1/namespaces/default/serviceaccounts"
        await self.ask("POST", path, {"metadata": {"name": "a"}})
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        code, answer = await self.ask("POST", f"{path}/a/token", body)
        self.assertEqual(code, 201, answer)
        self.assertEqual(await deferToThread(self.impersonate, answer["status"]["token"], "jane"), 403)
        self.assertEqual(await self.counts("attempts", mode="", decision="denied"), (1, 1))
        for mode in ("user-info", "legacy"):
            self.assertEqual(await self.counts("authorization_attempts", mode=mode, decision="denied"), (1, 1), mode)
