"""Tests of L{kubetwist.server.history.endpoint}, with a server over HTTP."""

from __future__ import annotations

import json
from typing import Any

from twisted.internet import reactor
from twisted.internet.task import deferLater

from kubetwist.server.history import endpoint, recording
from tests.server.endpoints.endpointcase import EndpointCase

RBAC = "/apis/rbac.authorization.k8s.io/v1"
MAPS = "/api/v1/namespaces/default/configmaps"


class HistoryEndpointTests(EndpointCase):
    """C{/ui/history}."""

    def setUp(self) -> None:
        """Take samples often."""
        self.patch(recording, "FIRST", 0.01)
        self.patch(endpoint, "INTERVAL", 0.05)

    async def history(self, enough: Any, path: str = "/ui/history") -> Any:
        """Return the first history that satisfies a condition."""
        while True:
            code, document = await self.ask("GET", path)
            self.assertEqual(code, 200)
            if enough(document):
                return document
            await deferLater(reactor, 0.02, lambda: None)

    @staticmethod
    def total(document: Any, name: str, **labels: str) -> float:
        """Return the sum of the values of a series."""
        return sum(
            sum(filter(None, one["values"]))
            for one in document["series"]
            if (one["name"], one["labels"]) == (name, labels)
        )

    async def test_history(self) -> None:
        """Requests, errors, latencies, and the state of the process are in the samples."""
        await self.serve("--enable-ui")
        await self.ask("POST", MAPS, {"metadata": {"name": "x"}})
        await self.ask("GET", f"{MAPS}/missing")
        document = await self.history(
            lambda found: self.total(found, "request_errors", verb="GET", resource="configmaps")
        )
        self.assertTrue(self.total(document, "requests", verb="POST", resource="configmaps"))
        self.assertTrue(self.total(document, "request_p99", verb="POST", resource="configmaps"))
        self.assertTrue(self.total(document, "verbs", verb="POST"))
        self.assertTrue(self.total(document, "errors", code="4xx"))
        self.assertTrue(self.total(document, "memory"))
        self.assertTrue(self.total(document, "ready"))
        self.assertTrue(self.total(document, "storage_requests"))
        levels = {one["labels"]["level"] for one in document["series"] if one["name"] == "executing"}
        self.assertIn("workload-low", levels)
        self.assertEqual([one["kind"] for one in document["marks"]], ["start"])
        last = document["times"][-1]
        newer = await self.history(lambda found: found["times"], f"/ui/history?since={last}")
        self.assertGreater(newer["times"][0], last)
        self.assertEqual(newer["marks"], [])

    async def test_invalid(self) -> None:
        """The time must be a number, and only GET is served."""
        await self.serve("--enable-ui")
        for since in ("x", "nan", "inf", "1e999"):
            code, answer = await self.ask("GET", f"/ui/history?since={since}")
            self.assertEqual((code, answer["reason"]), (400, "BadRequest"), since)
        self.assertEqual((await self.ask("POST", "/ui/history"))[0], 405)

    async def test_access(self) -> None:
        """The permission to get C{/metrics} is required, and sufficient."""
        await self.serve("--enable-ui", "--authorization-mode=RBAC")
        await self.ask("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "robot"}})
        _, made = await self.ask("POST", "/api/v1/namespaces/default/serviceaccounts/robot/token", {"spec": {}})
        token = made["status"]["token"]
        code, answer = await self.ask("GET", "/ui/history", token=token)
        self.assertEqual(code, 403)
        self.assertIn('cannot get path "/metrics"', json.dumps(answer).replace('\\"', '"'))
        binding = {
            "metadata": {"name": "robot"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:monitoring"},
            "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": "default"}],
        }
        code, _ = await self.ask("POST", f"{RBAC}/clusterrolebindings", binding)
        self.assertEqual(code, 201)
        self.assertEqual((await self.ask("GET", "/ui/history", token=token))[0], 200)
        self.assertEqual((await self.ask("GET", "/ui/history", token="wrong"))[0], 401)

    async def test_no_page(self) -> None:
        """Without the page there is no history, and no permission for it."""
        await self.serve("--enable-ui=false")
        self.assertEqual((await self.ask("GET", "/ui/history"))[0], 404)
