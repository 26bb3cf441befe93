"""Tests of webhooks over TLS: a server that calls another one."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from twisted.internet import reactor
from twisted.internet.threads import deferToThread
from twisted.logger import LogEvent, formatEvent, globalLogPublisher
from twisted.trial.unittest import TestCase

from kubetwist.testing.trial import KubeAPIMixin
from kubetwist.testing.webhooks import Call, Reply, WebhookServer

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
MAPS = "/api/v1/namespaces/default/configmaps"


def text(pem: bytes) -> str:
    """Return a certificate as in configurations."""
    return base64.b64encode(pem).decode()


class CallTests(KubeAPIMixin, TestCase):
    """Tests of the calls on the network."""

    async def start(self, **options: Any) -> None:
        """Start both servers; webhooks require a client certificate, which a kubeconfig contains."""
        self.hook = WebhookServer(reactor, lambda call: self.answer(call), require_client=True, **options)
        await self.hook.start()
        self.addCleanup(lambda: self.hook.stop())
        pair = self.hook.client_pair("the-api-server")
        shown = {"client-certificate-data": text(pair.certificate), "client-key-data": text(pair.key)}
        users = [
            {"name": "*.example.org", "user": {"token": "not this one"}},
            {"name": f"127.0.0.1:{self.hook.port}", "user": shown},
            {"name": "*.default.svc:8443", "user": shown},
        ]
        folder = Path(self.mktemp())
        folder.mkdir()
        kubeconfig = folder.resolve() / "kubeconfig"
        kubeconfig.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "users": users}))
        own = {
            "apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "WebhookAdmissionConfiguration",
            "kubeConfigFile": str(kubeconfig),
        }
        configuration = folder / "admission.yaml"
        configuration.write_text(
            json.dumps(
                {
                    "apiVersion": "apiserver.config.k8s.io/v1",
                    "kind": "AdmissionConfiguration",
                    "plugins": [{"name": "ValidatingAdmissionWebhook", "configuration": own}],
                }
            )
        )
        # Controllers would also create ConfigMaps.
        self.server = await self.startKubeAPI("--controllers=", f"--admission-control-config-file={configuration}")

    def answer(self, call: Call) -> Any:
        """Deny the request."""
        review = call.json()
        response = {"uid": review["request"]["uid"], "allowed": False, "status": {"message": f"not for {call.client}"}}
        return {"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response}

    async def send_request(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Return the response to a request of the administrator."""
        code, answer = await deferToThread(self.server.request, method, path, body)
        return code, answer

    async def configure(self, client: dict[str, Any], **fields: Any) -> None:
        """Create a webhook for ConfigMaps."""
        rule = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
        hook = {
            "name": "a.example.org",
            "clientConfig": client,
            "rules": [rule],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}},
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": 7,
            **fields,
        }
        code, answer = await self.send_request(
            "POST", CONFIGURATIONS, {"metadata": {"name": "hooks"}, "webhooks": [hook]}
        )
        self.assertEqual(code, 201, answer)

    async def request_error(self) -> tuple[int, str]:
        """Return the message of the rejection of a new ConfigMap."""
        code, answer = await self.send_request("POST", MAPS, {"metadata": {"name": "m"}})
        return code, answer.get("message", "")

    async def test_url(self) -> None:
        """A webhook is called by its URL with its CA; the error contains the reason of a failure."""
        await self.start()
        await self.configure({"url": f"{self.hook.url}/check", "caBundle": text(self.hook.ca)})
        denied = 'admission webhook "a.example.org" denied the request: not for the-api-server'
        self.assertEqual(await self.request_error(), (400, denied))
        self.assertEqual(await self.request_error(), (400, denied))
        (call, _) = self.hook.calls
        self.assertEqual((call.method, call.path, dict(call.query)), ("POST", "/check", {"timeout": "7s"}))
        self.assertEqual(call.headers["content-type"], "application/json")
        self.assertEqual(self.hook.connections, 1)
        port = self.hook.port
        await self.hook.stop()
        address = f"127.0.0.1:{port}"
        failed = (
            'Internal error occurred: failed calling webhook "a.example.org": failed to call webhook: Post '
            f'"https://{address}/check?timeout=7s": dial tcp {address}: connect: connection refused'
        )
        self.assertEqual(await self.request_error(), (500, failed))

    async def test_metadata_services(self) -> None:
        """CVE-2020-8562: URLs of webhooks with link-local addresses, as of cloud metadata services, are rejected."""
        await self.start()
        await self.configure({"url": "https://169.254.169.254/latest"})
        failed = (
            'Internal error occurred: failed calling webhook "a.example.org": failed to call webhook: Post '
            '"https://169.254.169.254/latest?timeout=7s": dial tcp 169.254.169.254:443: address not allowed'
        )
        self.assertEqual(await self.request_error(), (500, failed))

    async def test_service(self) -> None:
        """A webhook is called by its Service at any address; a missing Service is an error."""
        await self.start(names=("hook.default.svc",))
        service = {"namespace": "default", "name": "hook", "path": "/check", "port": 8443}
        await self.configure({"service": service, "caBundle": text(self.hook.ca)})
        failed = (
            'Internal error occurred: failed calling webhook "a.example.org": failed to call webhook: Post '
            '"https://hook.default.svc:8443/check?timeout=7s": service "hook" not found'
        )
        self.assertEqual(await self.request_error(), (500, failed))
        spec = {"clusterIP": "10.0.0.77", "ports": [{"port": 8443}]}
        code, answer = await self.send_request(
            "POST", "/api/v1/namespaces/default/services", {"metadata": {"name": "hook"}, "spec": spec}
        )
        self.assertEqual(code, 201, answer)
        outgoing = self.server._service.server.config.outgoing
        outgoing.address_overrides[("10.0.0.77", 8443)] = ("127.0.0.1", self.hook.port)
        denied = 'admission webhook "a.example.org" denied the request: not for the-api-server'
        self.assertEqual(await self.request_error(), (400, denied))

    async def test_cve_2020_8561(self) -> None:
        """CVE-2020-8561: neither requests to webhooks nor their responses are logged, also if failures are ignored."""
        await self.start()
        await self.configure({"url": f"{self.hook.url}/check", "caBundle": text(self.hook.ca)}, failurePolicy="Ignore")
        events: list[LogEvent] = []
        globalLogPublisher.addObserver(events.append)
        self.addCleanup(globalLogPublisher.removeObserver, events.append)
        for number, answer in enumerate(
            (Reply(500, b"open sesame"), Reply(200, b"open sesame"), Reply(302, b"sesame"))
        ):
            self.answer = lambda call, answer=answer: answer  # type: ignore[method-assign]
            body = {"metadata": {"name": f"m-{number}"}, "data": {"a": "sesame"}}
            code, result = await self.send_request("POST", MAPS, body)
            self.assertEqual(code, 201, result)
        self.assertEqual(len(self.hook.calls), 3)
        reported = [formatEvent(event) for event in events]
        self.assertEqual(len([line for line in reported if "failing open" in line]), 3, reported)
        self.assertNotIn("sesame", " ".join(reported))
