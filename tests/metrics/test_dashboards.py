"""
Tests that the metrics of common dashboards and alerts for kube-apiserver exist after some use.

The names, and the labels that they are selected and grouped by, come from the rules, alerts and dashboards of
kubernetes-mixin, and of other widely used ones.
"""

from __future__ import annotations

import base64
import json
import re
import ssl
from pathlib import Path
from typing import Any, Final
from urllib.request import Request, urlopen

from twisted.internet import reactor
from twisted.internet.threads import deferToThread

from kubetwist.testing.webhooks import Reply, WebhookServer
from tests.resources.aggregation.aggregated import (
    NAME,
    AggregatedCase,
)

#: Lines with a metric and its labels.
ASKED: Final = Path(__file__).with_name("dashboards.txt")
_SAMPLE: Final = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? \S+")
_LABEL: Final = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"')
DEFAULT: Final = "/api/v1/namespaces/default"


def samples(text: str) -> list[tuple[str, dict[str, str]]]:
    """Return the name and labels of all samples in a text."""
    found = []
    for line in text.splitlines():
        match = None if line.startswith("#") else _SAMPLE.fullmatch(line)
        if match is not None:
            found.append((match[1], dict(_LABEL.findall(match[2] or ""))))
    return found


class DashboardTests(AggregatedCase):
    """A server after requests of all kinds."""

    async def use(self) -> None:
        """Send requests of all kinds."""
        await self.done("POST", "/api/v1/namespaces", {"metadata": {"name": "a"}})
        await self.done("DELETE", "/api/v1/namespaces/a")
        await self.call_webhook()
        for path in (f"{DEFAULT}/endpoints", "/api/v1/configmaps", f"{DEFAULT}/configmaps/a"):
            await self.done("GET", path)
        # Wait until the APIService is available.
        code, _, _ = await self.ask("GET", "/api/v1/nodes?resourceVersion=999999999&timeout=50ms")
        self.assertEqual(code, 504)
        await deferToThread(self.show_certificate)
        await self.backend.kill()
        self.apis.availability.enqueue(NAME)
        await self.until_condition("FailedDiscoveryCheck")
        await self.server.settle()

    async def call_webhook(self) -> None:
        """Send a write that a validating webhook allows."""
        hook = WebhookServer(reactor, lambda call: Reply(200, self.allowed(call.json())))
        await hook.start()
        self.addCleanup(lambda: hook.stop())
        bundle = base64.b64encode(hook.ca).decode()
        webhook = {
            "name": "hook.example.org",
            "clientConfig": {"url": f"{hook.url}/", "caBundle": bundle},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
        await self.done("POST", path, {"metadata": {"name": "h"}, "webhooks": [webhook]})
        await self.done("POST", f"{DEFAULT}/configmaps", {"metadata": {"name": "a"}})
        self.assertEqual(len(hook.calls), 1)

    @staticmethod
    def allowed(review: dict[str, Any]) -> bytes:
        """Return the response of a webhook that allows the request."""
        response = {"uid": review["request"]["uid"], "allowed": True}
        return json.dumps({**{name: review[name] for name in ("kind", "apiVersion")}, "response": response}).encode()

    def show_certificate(self) -> None:
        """Connect with a client certificate."""
        connection = self.server.connection
        context = ssl.create_default_context(cadata=connection.ca)
        folder = Path(self.mktemp())
        folder.mkdir()
        (folder / "crt").write_text(connection.client_certificate)
        (folder / "key").write_text(connection.client_key)
        context.load_cert_chain(folder / "crt", folder / "key")
        urlopen(f"{connection.url}/api", context=context, timeout=30).close()

    async def test_all(self) -> None:
        """Every metric of the dashboards exists with all labels that they select and group by."""
        policy = Path(self.mktemp())
        policy.write_text("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n")
        audit = (f"--audit-policy-file={policy}", f"--audit-log-path={policy}.log")
        await self.begin("--storage-backend=sqlite", "--controllers=namespace-controller", *audit)
        watch = await deferToThread(self.watch)
        self.addCleanup(watch.close)
        await self.use()
        found: dict[str, list[dict[str, str]]] = {}

        async def all_sampled() -> bool:
            found.clear()
            _, body, _ = await self.ask("GET", "/metrics")
            all_samples = samples(body.decode())
            # Prometheus rejects duplicate samples.
            self.assertEqual(len({(name, *sorted(labels.items())) for name, labels in all_samples}), len(all_samples))
            for name, labels in all_samples:
                found.setdefault(name, []).append(labels)
            return "apiserver_flowcontrol_demand_seats_bucket" in found

        await self.until(all_sampled)
        levels = {one["level"] for one in found["apiserver_audit_level_total"]}
        self.assertEqual(levels, {"Metadata"})
        missing = []
        for line in ASKED.read_text().splitlines():
            name, *labels = line.split()
            if not any(set(labels) <= one.keys() for one in found.get(name, ())):
                missing.append(line)
        self.assertEqual(missing, [])
        self.check_buckets(found)

    def watch(self) -> Any:
        """Start a watch. Call it in a thread."""
        connection = self.server.connection
        url = f"{connection.url}{DEFAULT}/configmaps?watch=true"
        request = Request(url, headers={"Authorization": f"Bearer {connection.token}"})
        return urlopen(request, context=connection.ssl_context(), timeout=30)

    def check_buckets(self, found: dict[str, list[dict[str, str]]]) -> None:
        """
        The latency objectives of SIG Scalability are bucket bounds, by scope. Verbs and codes are separate labels.
        """
        buckets = found["apiserver_request_sli_duration_seconds_bucket"]
        for scope, bound in (("resource", "1"), ("namespace", "5"), ("cluster", "30")):
            those = [one for one in buckets if one["scope"] == scope and one["verb"] in ("GET", "LIST", "POST")]
            self.assertIn(bound, {one["le"] for one in those}, scope)
        total = found["apiserver_request_total"]
        self.assertLessEqual({"GET", "LIST", "POST", "DELETE"}, {one["verb"] for one in total})
        self.assertLessEqual({"200", "201", "504"}, {one["code"] for one in total})
        (version,) = {one["git_version"] for one in found["kubernetes_build_info"]}
        self.assertTrue(re.match(r"v[0-9]*\.[0-9]*", version), version)
