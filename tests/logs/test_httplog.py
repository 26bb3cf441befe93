"""Tests for L{kubetwist.logs.httplog}."""

from __future__ import annotations

import base64
import json
import re
from io import StringIO
from pathlib import Path
from time import perf_counter
from typing import Any

from twisted.internet.threads import deferToThread
from twisted.logger import globalLogPublisher
from twisted.trial.unittest import TestCase

from kubetwist.logs.structured import file_observer
from kubetwist.server import apiserver
from kubetwist.testing import InProcessServer
from kubetwist.testing.trial import KubeAPIMixin

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


SECRETS = "/api/v1/namespaces/default/secrets"


#: Marks values that must not be logged.
HUNTER = "hunter2-5ecr3t"


#: The kubeconfig of a webhook that cannot be reached, with secrets.
KUBECONFIG = f"""
apiVersion: v1
kind: Config
clusters: [{{name: a, cluster: {{server: "https://127.0.0.1:1/tokens"}}}}]
users: [{{name: a, user: {{token: {HUNTER}}}}}]
contexts: [{{name: a, context: {{cluster: a, user: a}}}}]
current-context: a
"""


class RequestLogTests(KubeAPIMixin, TestCase):
    """The access log and slow requests."""

    timeout = 60

    async def serve(self, *arguments: str, as_json: bool = False) -> InProcessServer:
        """Start a server whose log is captured."""
        self.file = StringIO()
        server: InProcessServer = await self.startKubeAPI("--controllers=", *arguments)
        self.verbosity = server._service.server.config.options.verbosity
        observer = file_observer(self.file, self.verbosity, json=as_json)
        globalLogPublisher.addObserver(observer)
        self.addCleanup(globalLogPublisher.removeObserver, observer)
        self.server = server
        return server

    async def ask(self, method: str, path: str, body: Any = None, **more: Any) -> tuple[int, Any]:
        """Send a request as admin, or with a token."""
        connection = self.server.connection.with_token(more.pop("token", self.server.connection.token))
        return await deferToThread(connection.request, method, path, body, **more)

    def lines(self) -> list[str]:
        """Return the access log lines."""
        return [line for line in self.file.getvalue().splitlines() if '"HTTP"' in line]

    async def test_access(self) -> None:
        """At -v=3 each request has one line with verb, URI, latency, durations of phases, client and status code."""
        await self.serve("-v=3")
        await self.ask("POST", f"{CONFIG_MAPS}?pretty=1", {"metadata": {"name": "a"}, "data": {"a": HUNTER}})
        (line,) = self.lines()
        amount = r'"[0-9.]+(µs|ms|s)"'
        self.assertRegex(
            line,
            r'\[kubetwist\.logs\.httplog#info\] "HTTP" verb="POST" '
            rf'URI="/api/v1/namespaces/default/configmaps\?pretty=1" latency={amount} userAgent="[^"]*"'
            r' audit-ID="[0-9a-f-]{36}" srcIP="127\.0\.0\.1:[0-9]+"'
            rf" authentication={amount} authorization={amount} admission={amount} storage={amount}"
            rf' serialization={amount} apf_pl="[a-z-]+" apf_fs="[a-z-]+" resp=201$',
        )
        self.assertNotIn(HUNTER, self.file.getvalue())

    async def test_verbs(self) -> None:
        """The verb is the API verb, and the code is the status code of the response."""
        await self.serve("-v=3")
        await self.ask("GET", CONFIG_MAPS)
        await self.ask("GET", f"{CONFIG_MAPS}/none")
        await self.ask("GET", "/version")
        await self.ask("GET", "/version", token="none")
        await self.ask("GET", f"{CONFIG_MAPS}?watch=true&timeoutSeconds=1")
        found = [re.sub(r'.*verb="(\w+)".*(resp=\d+)$', r"\1 \2", line) for line in self.lines()]
        self.assertEqual(found, ["LIST resp=200", "GET resp=404", "GET resp=200", "GET resp=401", "WATCH resp=200"])

    async def test_access_disabled(self) -> None:
        """Below -v=3 there are no access log lines, unless the module httplog is enabled."""
        await self.serve()
        await self.ask("GET", CONFIG_MAPS)
        self.assertEqual(self.lines(), [])
        self.verbosity.set(3)
        await self.ask("GET", CONFIG_MAPS)
        self.assertEqual(len(self.lines()), 1)

    async def test_json(self) -> None:
        """In the JSON format each value has a key."""
        await self.serve("--vmodule=httplog=3", as_json=True)
        await self.ask("GET", f"{CONFIG_MAPS}?access_token={HUNTER}")
        (line,) = [json.loads(one) for one in self.lines()]
        self.assertEqual((line["msg"], line["verb"], line["resp"], line["v"]), ("HTTP", "LIST", 200, 3))
        self.assertEqual(line["URI"], f"{CONFIG_MAPS}?access_token=REDACTED")

    async def test_slow(self) -> None:
        """A request that takes more than 500 ms is logged with durations of its phases at any level, a watch is not."""
        await self.serve()
        self.patch(apiserver, "perf_counter", lambda: perf_counter() + 0.75)
        await self.ask("GET", f"{CONFIG_MAPS}?watch=true&timeoutSeconds=1")
        self.assertEqual(self.file.getvalue(), "")
        await self.ask("POST", f"{CONFIG_MAPS}?token={HUNTER}", {"metadata": {"name": "a"}})
        text = self.file.getvalue()
        head, *steps, end = text.splitlines()
        self.assertRegex(
            head,
            r'Trace\[\d+\]: "Create" accept:[^,]*,audit-id:[^,]*,client:127\.0\.0\.1,api-group:,api-version:v1,name:,'
            r"subresource:,namespace:default,protocol:HTTP/1\.1,resource:configmaps,"
            r"url:/api/v1/namespaces/default/configmaps,user-agent:[^,]*,verb:POST,resp:201 "
            r"\(\d\d-[A-Z][a-z]{2}-\d{4} [0-9:.]{12}\) \(total time: 7\d\dms\):$",
        )
        self.assertEqual(
            [step.split('"')[1] for step in steps],
            ["authentication", "authorization", "admission", "storage", "serialization"],
        )
        self.assertRegex(end, r"Trace\[\d+\]: \[7\d\dms\] \[7\d\dms\] END$")
        self.assertNotIn(HUNTER, text)

    async def test_slow_requests_are_limited(self) -> None:
        """At most twenty slow requests per second are logged. The number of suppressed ones is logged."""
        await self.serve()
        moment = perf_counter() + 1000.0
        self.patch(apiserver, "perf_counter", lambda: moment)
        for _ in range(25):
            await self.ask("GET", CONFIG_MAPS)
        self.assertEqual(self.file.getvalue().count("total time"), 20)
        moment += 1.5
        await self.ask("GET", CONFIG_MAPS)
        self.assertIn("rate limit: 5 slow requests were not logged", self.file.getvalue())

    async def test_secrets(self) -> None:
        """The log contains no secrets at any level: tokens, passwords, Secrets, kubeconfigs, bodies."""
        reviewer = Path(self.mktemp())
        reviewer.write_text(KUBECONFIG)
        await self.serve("-v=10", f"--authentication-token-webhook-config-file={reviewer}")
        encoded = base64.b64encode(HUNTER.encode()).decode()
        secret = {"metadata": {"name": "a"}, "data": {"a": encoded}, "stringData": {"b": HUNTER}}
        await self.ask("POST", SECRETS, secret)
        await self.ask("PUT", f"{SECRETS}/a", {**secret, "type": HUNTER})
        patch = "application/merge-patch+json"
        await self.ask("PATCH", f"{SECRETS}/a", {"stringData": {"c": HUNTER}}, content_type=patch)
        await self.ask("PATCH", f"{SECRETS}/a", {"stringData": HUNTER}, content_type=patch)
        await self.ask("GET", f"{SECRETS}/a")
        await self.ask("GET", f"{SECRETS}?watch=1&timeoutSeconds=1")
        await self.ask("GET", "/api", token=HUNTER)
        await self.ask("GET", f"/api?access_token={HUNTER}&password={HUNTER}&client_secret={HUNTER}")
        await self.ask("GET", f"/api/v1/namespaces/default/pods/a/exec?command=mysql&command=-p{HUNTER}")
        await self.ask("GET", f"/api/v1/namespaces/default/services/a/proxy/?login={HUNTER}")
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": HUNTER}}
        await self.ask("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)
        await self.ask("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "a"}})
        code, response = await self.ask("POST", "/api/v1/namespaces/default/serviceaccounts/a/token", {"spec": {}})
        self.assertEqual(code, 201)
        token = response["status"]["token"]
        await self.ask("GET", CONFIG_MAPS, token=token)
        await self.ask("GET", CONFIG_MAPS, token=f"{token}x")
        hook = {
            "metadata": {"name": "a"},
            "webhooks": [
                {
                    "name": "a.example.com",
                    "clientConfig": {"url": "https://127.0.0.1:1/hook"},
                    "rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["*"], "resources": ["secrets"]}],
                    "sideEffects": "None",
                    "failurePolicy": "Ignore",
                    "admissionReviewVersions": ["v1"],
                }
            ],
        }
        path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
        code, response = await self.ask("POST", path, hook)
        self.assertEqual(code, 201, response)
        await self.ask("POST", SECRETS, {**secret, "metadata": {"name": "b"}})
        text = self.file.getvalue()
        self.assertGreater(len(self.lines()), 15)
        for wanted in (HUNTER, encoded, token, token.split(".")[2], self.server.connection.token):
            self.assertNotIn(wanted, text)
