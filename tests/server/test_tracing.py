"""Tests of L{kubetwist.server.tracing}, with a whole server, a webhook and a collector."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import socket
import ssl
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any, cast
from urllib.error import HTTPError

from twisted.internet import reactor
from twisted.internet.threads import deferToThread
from twisted.trial.unittest import SynchronousTestCase, TestCase

from kubetwist.server.errors import StartError
from kubetwist.server.tracing import Tracing
from kubetwist.testing._inprocess import InProcessServer
from kubetwist.testing.webhooks import Call, WebhookServer
from kubetwist.tracing.configuration import TracingConfiguration
from tests.collector import Collected, Collector
from tests.resources.customserver import definition

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
MUTATING = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN = "00f067aa0ba902b7"

SERVER, CLIENT = 2, 3

#: Program that starts a server, sends a request, stops it, and prints the imported modules of OpenTelemetry.
UNTRACED = """
import sys
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThread
from kubetwist.testing._inprocess import InProcessServer

async def run():
    async with InProcessServer() as server:
        code, _ = await deferToThread(server.request, "POST", "/api/v1/namespaces", {"metadata": {"name": "a"}})
    print(code, sorted(name for name in sys.modules if name.partition(".")[0] in ("opentelemetry", "grpc")))

Deferred.fromCoroutine(run()).addBoth(lambda result: (print(result), reactor.stop()))
reactor.run()
"""


def send(server: InProcessServer, method: str, path: str, body: Any = None, token: str = "", **headers: str) -> int:
    """Send a request. Blocking."""
    connection = server.connection
    fields = {"Authorization": f"Bearer {token or connection.token}", "Content-Type": "application/json", **headers}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(connection.url + path, data, fields, method=method)
    context = ssl.create_default_context(cadata=connection.ca)
    with urllib.request.urlopen(request, context=context, timeout=30) as answer:
        answer.read()
        return int(answer.status)


class TracedServerTests(TestCase):
    """A traced server."""

    timeout = 60

    def setUp(self) -> None:
        """Start a collector."""
        self.collector = Collector()
        self.collector.start()
        self.addCleanup(self.collector.stop)

    def file(self, *, endpoint: str | None = None, **more: Any) -> str:
        """Write a tracing configuration; return the flag for it."""
        about = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "TracingConfiguration"}
        path = Path(self.mktemp())
        path.write_text(json.dumps({**about, "endpoint": endpoint or self.collector.endpoint, **more}))
        return f"--tracing-config-file={path.absolute()}"

    def traces(self, collected: list[Collected]) -> set[str]:
        """Return the trace ids of spans."""
        return {span.trace_id for span in collected}

    async def test_create(self) -> None:
        """A create with a webhook is one trace from the filters to the webhook."""
        webhook = WebhookServer(reactor, _allow)
        await webhook.start()
        self.addCleanup(webhook.stop)
        async with InProcessServer(self.file(samplingRatePerMillion=1_000_000), controllers="") as server:
            for path in (WEBHOOKS, MUTATING):
                self.assertEqual(await deferToThread(send, server, "POST", path, _configuration(webhook)), 201)
            body = {"metadata": {"name": "traced"}, "data": {"password": "hush-hush"}}
            state = {"traceparent": f"00-{TRACE}-{SPAN}-01", "tracestate": "v=1", "baggage": "who=me"}
            state["Audit-ID"] = "of-this-one"
            self.assertEqual(await deferToThread(lambda: send(server, "POST", CONFIG_MAPS, body, **state)), 201)
        spans = [span for span in self.collector.spans if span.trace_id == TRACE]
        (root,) = [span for span in spans if span.kind == SERVER]
        self.assertEqual(root.name, "POST /api/v1/namespaces/{:namespace}/configmaps")
        self.assertEqual((root.parent_id, root.state), (SPAN, "v=1"))
        self.assertEqual(root.attributes["audit-id"], "of-this-one")
        self.assertEqual(root.attributes["http.response.status_code"], 201)
        within = [span.name for span in self.collector.within(root)]
        filters = ["authentication", "constrainedimpersonation", "priorityandfairness", "authorization", "Create"]
        self.assertEqual(within, filters)
        (create,) = self.collector.named("Create")[-1:]
        names = [span.name for span in self.collector.within(create)]
        self.assertEqual(names[-2:], ["Create etcd3", "SerializeObject"])
        (write,) = [span for span in self.collector.within(create) if span.name == "Create etcd3"]
        (commit,) = self.collector.within(write)
        self.assertEqual((commit.name, commit.attributes["db.system.name"]), ("memory commit", "memory"))
        self.assertIn("ValidatingAdmissionWebhook", names)
        for call_of_webhook, kind in zip(webhook.calls, ("Mutating", "Validating"), strict=True):
            (plugin,) = [span for span in self.collector.within(create) if span.name == f"{kind}AdmissionWebhook"]
            (call,) = self.collector.within(plugin)
            self.assertEqual(call.name, f"Call {kind.lower()} webhook")
            self.check_call(webhook, call, call_of_webhook)
        for span in spans:
            self.assertLessEqual(span.began, span.ended)
            self.assertNotIn("hush-hush", str(span.attributes))
        self.assertEqual(self.collector.resources[0]["service.name"], "apiserver")
        self.assertTrue(str(self.collector.resources[0]["service.instance.id"]).startswith("apiserver-"))

    def check_call(self, webhook: WebhookServer, call: Collected, call_of_webhook: Call) -> None:
        """Assert that a webhook call has a span and sends its context."""
        uid = call_of_webhook.json()["request"]["uid"]
        self.assertEqual(
            call.attributes,
            {
                "configuration": "hooks",
                "webhook": "a.example.org",
                "resource": "/v1, Resource=configmaps",
                "subresource": "",
                "operation": "CREATE",
                "UID": uid,
            },
        )
        (sent,) = self.collector.within(call)
        self.assertEqual((sent.name, sent.kind), ("HTTP POST", CLIENT))
        self.assertEqual(sent.attributes["url.full"], f"{webhook.url}/validate?timeout=10s")
        self.assertEqual(sent.attributes["http.response.status_code"], 200)
        self.assertEqual(call_of_webhook.headers["traceparent"], f"00-{TRACE}-{sent.span_id}-01")
        self.assertEqual((call_of_webhook.headers["tracestate"], call_of_webhook.headers["baggage"]), ("v=1", "who=me"))

    async def test_chain(self) -> None:
        """The span of a request shows each server of the chain that it passed, and the rule and handler at the end."""
        crd = definition()
        kites = "/apis/example.com/v1/namespaces/default/kites"
        async with InProcessServer(self.file(samplingRatePerMillion=1_000_000), controllers="") as server:
            await server.load([crd])
            for path in (f"{CONFIG_MAPS}/kube-root-ca.crt", "/healthz/ping", kites, "/no/such/path"):
                with contextlib.suppress(HTTPError):
                    await deferToThread(send, server, "GET", path)
            with contextlib.suppress(HTTPError):
                await deferToThread(send, server, "PUT", CONFIG_MAPS, {})
        passed = {
            span.attributes["url.path"]: (span.attributes.get("http.route"), span.events)
            for span in self.collector.spans
            if span.kind == SERVER and span.attributes["http.request.method"] != "POST"
        }
        first = ("kube-aggregator", {"delegate": "kube-apiserver"})
        second = ("kube-apiserver", {"delegate": "apiextensions-apiserver"})

        def handled(name: str, handler: str) -> Any:
            return name, {"code.function.name": handler}

        self.assertEqual(
            passed["/healthz/ping"],
            ("/<path>/<rest:name>", (handled("kube-aggregator", "HealthEndpoints._one"),)),
        )
        self.assertEqual(
            passed[f"{CONFIG_MAPS}/kube-root-ca.crt"],
            (
                "/api/v1/namespaces/<namespace>/configmaps/<name>",
                (first, handled("kube-apiserver", "ReadHandlers.get")),
            ),
        )
        self.assertEqual(
            passed[kites],
            (
                "/apis/<group>/<version>/namespaces/<namespace>/<plural>",
                (first, second, handled("apiextensions-apiserver", "CustomRoutes._serve")),
            ),
        )
        self.assertEqual(
            passed["/no/such/path"], (None, (first, second, ("apiextensions-apiserver", {"delegate": "NotFound"})))
        )
        self.assertEqual(passed[CONFIG_MAPS], (None, (first, handled("kube-apiserver", "refuse_method"))))

    async def test_access_webhooks(self) -> None:
        """
        An authorization webhook gets the trace context; an authentication webhook, which runs before the trace starts,
        does not.
        """
        webhook = WebhookServer(reactor, _grant)
        await webhook.start()
        self.addCleanup(webhook.stop)
        folder = Path(self.mktemp())
        folder.mkdir()
        arguments = (
            self.file(samplingRatePerMillion=1_000_000),
            f"--authentication-token-webhook-config-file={webhook.kubeconfig(folder, '/tokens', name='tokens')}",
            "--authentication-token-webhook-version=v1",
            "--authorization-mode=Webhook",
            f"--authorization-webhook-config-file={webhook.kubeconfig(folder, '/access', name='access')}",
            "--authorization-webhook-version=v1",
        )
        async with InProcessServer(*arguments, controllers="") as server:
            await deferToThread(send, server, "GET", CONFIG_MAPS, None, "jane-token")
        (tokens,) = [call for call in webhook.calls if call.path == "/tokens"]
        self.assertNotIn("traceparent", tokens.headers)
        (access,) = [call for call in webhook.calls if call.path == "/access"]
        (root,) = self.collector.named("GET /api/v1/namespaces/{:namespace}/configmaps")
        (sent,) = [span for span in self.collector.within(root) if span.kind == CLIENT]
        self.assertEqual(access.headers["traceparent"], f"00-{root.trace_id}-{sent.span_id}-01")
        self.assertEqual(sent.attributes["url.full"], f"{webhook.url}/access?timeout=30s")

    async def test_sampling(self) -> None:
        """Without a sampling rate only trusted callers are traced; webhooks get the decision."""
        webhook = WebhookServer(reactor, _allow)
        await webhook.start()
        self.addCleanup(webhook.stop)
        tokens = Path(self.mktemp())
        tokens.write_text('admin,admin,1,"system:masters"\nann,ann,2,"team"\n')
        arguments = ("--authorization-mode=AlwaysAllow", self.file())
        async with InProcessServer(*arguments, token_auth_file=tokens.absolute(), controllers="") as server:
            sampled, not_sampled = (f"00-{TRACE}-{SPAN}-{flags}" for flags in ("01", "00"))

            def ask(token: str, name: str, **headers: str) -> None:
                send(server, "POST", CONFIG_MAPS, {"metadata": {"name": name}}, token, **headers)

            await deferToThread(send, server, "POST", WEBHOOKS, _configuration(webhook), "admin")
            await deferToThread(ask, "admin", "a")
            await deferToThread(lambda: ask("ann", "b", traceparent=sampled))
            await deferToThread(lambda: ask("admin", "c", traceparent=not_sampled))
            await deferToThread(lambda: ask("admin", "d", traceparent="nonsense"))
            await deferToThread(lambda: ask("admin", "e", traceparent=sampled))
        self.assertEqual(
            [span.attributes["key"] for span in self.collector.named("Create etcd3")], ["/configmaps/default/e"]
        )
        self.assertEqual(self.traces(self.collector.spans), {TRACE})
        call_of_webhook = [call.headers["traceparent"].split("-") for call in webhook.calls]
        self.assertEqual([parts[3] for parts in call_of_webhook], ["00", "00", "00", "00", "01"])
        self.assertEqual([parts[1] == TRACE for parts in call_of_webhook], [False, False, True, False, True])

    async def test_untrusted(self) -> None:
        """The trace of an untrusted caller is linked."""
        tokens = Path(self.mktemp())
        tokens.write_text('ann,ann,2,"team"\n')
        arguments = ("--authorization-mode=AlwaysAllow", self.file(samplingRatePerMillion=1_000_000))
        async with InProcessServer(*arguments, token_auth_file=tokens.absolute()) as server:
            parent = {"traceparent": f"00-{TRACE}-{SPAN}-00"}
            await deferToThread(lambda: send(server, "GET", CONFIG_MAPS, None, "ann", **parent))
        (root,) = self.collector.named("GET /api/v1/namespaces/{:namespace}/configmaps")
        self.assertNotEqual(root.trace_id, TRACE)
        self.assertEqual((root.parent_id, root.links), ("", ((TRACE, SPAN),)))

    async def test_dead_collector(self) -> None:
        """An unavailable collector affects neither requests nor the stop."""
        with socket.socket() as taken:
            # The port is bound, but not listening.
            taken.bind(("127.0.0.1", 0))
            endpoint = f"127.0.0.1:{taken.getsockname()[1]}"
            async with InProcessServer(self.file(endpoint=endpoint, samplingRatePerMillion=1_000_000)) as server:
                for number in range(20):
                    body = {"metadata": {"name": f"m-{number}"}}
                    self.assertEqual(await deferToThread(send, server, "POST", CONFIG_MAPS, body), 201)

    async def refused(self, *arguments: str) -> str:
        """Return the error of a failing start."""
        try:
            async with InProcessServer(*arguments):
                pass
        except StartError as error:
            return str(error)
        raise AssertionError("it starts")

    async def test_invalid_files(self) -> None:
        """An invalid file fails the start with the reference's text."""
        self.assertEqual(await self.refused("--tracing-config-file=/none"), "tracing-config-file /none does not exist")
        self.assertEqual(
            await self.refused("--tracing-config-file=/"),
            'failed to read tracing config: unable to read tracing configuration from "/": is a directory',
        )
        self.assertEqual(
            await self.refused(self.file(samplingRatePerMillion=-5)),
            "failed to validate tracing configuration: samplingRatePerMillion: Invalid value: -5: sampling rate must be"
            " positive",
        )
        self.assertEqual(
            await self.refused(self.file(), "--feature-gates=APIServerTracing=false", "--kubernetes-version=1.33"),
            "APIServerTracing feature is not enabled, but tracing config file was provided",
        )


class MissingTests(SynchronousTestCase):
    """Missing packages."""

    def test_missing_package(self) -> None:
        """The error names the package to install."""
        before = dict(sys.modules)
        self.addCleanup(sys.modules.update, before)
        sys.modules.pop("kubetwist.tracing.exporting", None)
        self.addCleanup(sys.modules.pop, "opentelemetry.sdk.resources")
        sys.modules["opentelemetry.sdk.resources"] = None
        tracing = Tracing(TracingConfiguration())
        reactor, server = cast("Any", None), cast("Any", None)
        error = self.assertRaises(StartError, tracing.start, reactor, server)
        self.assertEqual(
            str(error),
            "--tracing-config-file needs opentelemetry.sdk.resources, which is not installed: pip install"
            " 'kubetwist[tracing]'",
        )


class UntracedServerTests(SynchronousTestCase):
    """An untraced server."""

    def test_nothing_imported(self) -> None:
        """Without the flag OpenTelemetry is not imported."""
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        done = subprocess.run(
            [sys.executable, "-c", UNTRACED], capture_output=True, text=True, timeout=60, env=environment
        )
        self.assertTrue(re.match(r"201 \[\]\n", done.stdout), done.stdout + done.stderr)


def _allow(call: Call) -> dict[str, Any]:
    review = call.json()
    response = {"uid": review["request"]["uid"], "allowed": True}
    return {"kind": "AdmissionReview", "apiVersion": review["apiVersion"], "response": response}


def _grant(call: Call) -> dict[str, Any]:
    user = {"username": "jane", "groups": ["developers"]}
    status = {"/tokens": {"authenticated": True, "user": user}, "/access": {"allowed": True}}
    return {**call.json(), "status": status[call.path]}


def _configuration(webhook: WebhookServer) -> dict[str, Any]:
    rule = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
    one = {
        "name": "a.example.org",
        "clientConfig": {"url": f"{webhook.url}/validate", "caBundle": base64.b64encode(webhook.ca).decode()},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    return {"metadata": {"name": "hooks"}, "webhooks": [one]}
