"""Tests of authentication and authorization webhooks, and of reloaded files, with a whole server."""

from __future__ import annotations

import base64
import csv
import json
import os
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from twisted.internet import reactor
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread
from twisted.logger import globalLogPublisher
from twisted.trial.unittest import TestCase

from kubetwist.server import watchedfiles
from kubetwist.server.credentials.certificates import CertConfig, CertificateAuthority, CertKeyPair
from kubetwist.testing import InProcessServer
from kubetwist.testing.trial import KubeAPIMixin
from kubetwist.testing.webhooks import Call, Reply, WebhookServer

REVIEWS = "/apis/authentication.k8s.io/v1"
PODS = "/api/v1/namespaces/default/pods"


class WebhookCase(KubeAPIMixin, TestCase):
    """Base of tests with a server and webhooks."""

    timeout = 60

    def setUp(self) -> None:
        """Create a folder, and poll files often."""
        self.folder = Path(self.mktemp()).resolve()
        self.folder.mkdir()
        self.patch(watchedfiles, "POLL_INTERVAL", 0.02)

    def log(self) -> list[str]:
        """Return a list of the errors of reloads that will be logged."""
        lines: list[str] = []

        def observe(event: Any) -> None:
            if "keeping the previous content" in (event.get("log_format") or ""):
                lines.append(event["error"])

        globalLogPublisher.addObserver(observe)
        self.addCleanup(globalLogPublisher.removeObserver, observe)
        return lines

    async def wait_for_error(self, lines: list[str], message: str) -> None:
        """Wait until an error of a reload is logged."""

        async def found() -> bool:
            return any(message in line for line in lines)

        await self.until(found)

    async def serve(self, answer: Callable[[Call], Any], **options: Any) -> WebhookServer:
        """Start a webhook; it stops at the end of the test."""
        server = WebhookServer(reactor, answer, **options)
        self.addCleanup(server.stop)
        return await server.start()

    async def ask(
        self, server: InProcessServer, method: str, path: str, body: Any = None, token: str | None = None
    ) -> tuple[int, Any]:
        """Send a request as the admin, or with a token."""
        connection = server.connection if token is None else server.connection.with_token(token)
        return await deferToThread(connection.request, method, path, body)

    async def whoami(self, server: InProcessServer, token: str) -> tuple[int, Any]:
        """Return the user of a token."""
        code, answer = await self.ask(server, "POST", f"{REVIEWS}/selfsubjectreviews", {}, token)
        return code, answer["status"]["userInfo"] if code == 201 else answer

    async def until(self, good: Callable[[], Any]) -> None:
        """Wait for a condition."""
        while not await good():
            await deferLater(reactor, 0.02)


def _review(status: dict[str, Any]) -> Callable[[Call], Any]:
    return lambda call: {**call.json(), "status": status}


class TokenTests(WebhookCase):
    """--authentication-token-webhook-config-file."""

    async def start(self, webhook: WebhookServer, *flags: str, path: str = "/tokens") -> InProcessServer:
        """Start a server with an authentication webhook."""
        self.kubeconfig = webhook.kubeconfig(self.folder, path, name="tokens")
        return await self.startKubeAPI(
            f"--authentication-token-webhook-config-file={self.kubeconfig}",
            "--authentication-token-webhook-version=v1",
            "--api-audiences=here",
            *flags,
        )

    @staticmethod
    def knows(call: Call) -> Any:
        """Return a review that authenticates the token of jane."""
        review = call.json()
        if review["spec"]["token"] == "jane-token":
            user = {"username": "jane", "groups": ["developers"], "extra": {"team": ["a"]}}
            review["status"] = {"authenticated": True, "user": user, "audiences": ["here"]}
        else:
            review["status"] = {"authenticated": False}
        return review

    async def test_tokens(self) -> None:
        """A token is authenticated by the webhook once; other tokens are answered with 401."""
        webhook = await self.serve(self.knows)
        server = await self.start(webhook)
        for _ in range(2):
            code, user = await self.whoami(server, "jane-token")
            self.assertEqual(code, 201)
            self.assertEqual(user["username"], "jane")
            self.assertEqual(user["groups"], ["developers", "system:authenticated"])
            self.assertEqual(user["extra"], {"team": ["a"]})
            self.assertEqual((await self.whoami(server, "joe-token"))[0], 401)
        self.assertEqual([call.json()["spec"]["token"] for call in webhook.calls], ["jane-token", "joe-token"])
        call = webhook.calls[0]
        self.assertEqual((call.path, call.query), ("/tokens", {"timeout": "30s"}))
        self.assertEqual(call.json()["spec"]["audiences"], ["here"])

    async def test_own_tokens(self) -> None:
        """Tokens that the server authenticates itself are not sent to the webhook."""
        webhook = await self.serve(self.knows)
        server = await self.start(webhook)
        self.assertEqual((await self.ask(server, "GET", "/api/v1/namespaces"))[0], 200)
        self.assertEqual(webhook.calls, [])

    async def test_review(self) -> None:
        """A TokenReview is answered by the webhook."""
        server = await self.start(await self.serve(self.knows))
        code, review = await self.ask(server, "POST", f"{REVIEWS}/tokenreviews", {"spec": {"token": "jane-token"}})
        self.assertEqual((code, review["status"]["authenticated"]), (201, True))
        self.assertEqual(review["status"]["user"]["username"], "jane")
        self.assertEqual(review["status"]["audiences"], ["here"])

    async def test_failing_webhook(self) -> None:
        """Tokens are answered with 401 if the webhook fails; the server's tokens remain valid."""
        answers: list[Any] = []
        webhook = await self.serve(lambda call: answers[0])
        server = await self.start(webhook)
        for answer in (Reply(302, b"", {"Location": "/tokens"}), Reply(200, b"x" * 4_000_000), Reply(200, b"hello")):
            answers[:] = [answer]
            self.assertEqual((await self.whoami(server, "jane-token"))[0], 401)
        await webhook.stop()
        self.assertEqual((await self.whoami(server, "jane-token"))[0], 401)
        self.assertEqual((await self.ask(server, "GET", "/api/v1/namespaces"))[0], 200)
        self.flushLoggedErrors()

    async def test_moved(self) -> None:
        """A changed kubeconfig is reloaded; an invalid one is ignored."""
        first, second = await self.serve(self.knows), await self.serve(self.knows)
        server = await self.start(first, "--authentication-token-webhook-cache-ttl=0s")
        self.assertEqual((await self.whoami(server, "jane-token"))[0], 201)
        lines = self.log()
        self.kubeconfig.write_text("nonsense")
        await self.wait_for_error(lines, "it is no kubeconfig")
        self.assertEqual((await self.whoami(server, "jane-token"))[0], 201)
        second.kubeconfig(self.folder, "/elsewhere", name="tokens")

        async def moved() -> bool:
            code, _ = await self.whoami(server, "jane-token")
            self.assertEqual(code, 201)
            return bool(second.calls)

        await self.until(moved)
        self.assertEqual(second.calls[0].path, "/elsewhere")


class DecisionTests(WebhookCase):
    """--authorization-mode=Webhook and --authorization-config."""

    async def start(self, *flags: str) -> InProcessServer:
        """Start a server with users in different groups."""
        path = self.folder / "tokens.csv"
        with path.open("w", newline="") as file:
            csv.writer(file).writerows(
                [
                    ("jane-token", "jane", "1"),
                    ("joe-token", "joe", "2", "team,others"),
                    ("root", "root", "0", "system:masters"),
                ]
            )
        server = InProcessServer(f"--token-auth-file={path}", *flags)
        self.addCleanup(server.stop)
        return await server.start()

    @staticmethod
    def decides(call: Call) -> Any:
        """Return a review that allows jane to read pods, denies everything to joe, and has no opinion otherwise."""
        review = call.json()
        spec = review["spec"]
        attributes = spec.get("resourceAttributes", {})
        if spec["user"] == "joe":
            review["status"] = {"allowed": False, "denied": True, "reason": "joe is not nice"}
        elif spec["user"] == "jane" and attributes.get("resource") == "pods" and attributes["verb"] == "list":
            review["status"] = {"allowed": True, "reason": "jane is nice"}
        else:
            review["status"] = {"allowed": False, "reason": "who knows"}
        return review

    async def webhook_mode(self, webhook: WebhookServer, *flags: str) -> InProcessServer:
        """Start a server with one authorization webhook as the only authorizer."""
        kubeconfig = webhook.kubeconfig(self.folder, "/authorize")
        return await self.start(
            "--authorization-mode=Webhook",
            "--controllers=",
            f"--authorization-webhook-config-file={kubeconfig}",
            "--authorization-webhook-version=v1",
            *flags,
        )

    async def test_mode(self) -> None:
        """The webhook allows and denies requests with its reasons; decisions are cached."""
        webhook = await self.serve(self.decides)
        server = await self.webhook_mode(webhook)
        for _ in range(2):
            code, _ = await self.ask(server, "GET", PODS, token="jane-token")
            self.assertEqual(code, 200)
            code, answer = await self.ask(server, "GET", f"{PODS}/web", token="jane-token")
            self.assertEqual(code, 403)
            self.assertEqual(
                answer["message"],
                'pods "web" is forbidden: User "jane" cannot get resource "pods" in API group "" in the namespace'
                ' "default": who knows',
            )
            code, answer = await self.ask(server, "GET", PODS, token="joe-token")
            self.assertEqual((code, answer["message"].rpartition(": ")[2]), (403, "joe is not nice"))
        self.assertEqual(len(webhook.calls), 3)
        spec = webhook.calls[2].json()["spec"]
        self.assertEqual((spec["user"], spec["uid"]), ("joe", "2"))
        self.assertEqual(spec["groups"], ["team", "others", "system:authenticated"])
        self.assertEqual(
            spec["resourceAttributes"], {"namespace": "default", "verb": "list", "version": "v1", "resource": "pods"}
        )

    async def test_masters(self) -> None:
        """The webhook is not called for members of system:masters."""
        webhook = await self.serve(self.decides)
        server = await self.webhook_mode(webhook)
        self.assertEqual((await self.ask(server, "GET", PODS, token="root"))[0], 200)
        self.assertEqual([call for call in webhook.calls if call.json()["spec"]["user"] == "root"], [])

    async def test_failing_webhook(self) -> None:
        """If the webhook fails, the response is a 500 with the reason, as in the reference."""
        webhook = await self.serve(lambda call: Reply(404, b"nothing here"))
        server = await self.webhook_mode(webhook)
        code, answer = await self.ask(server, "GET", PODS, token="jane-token")
        self.assertEqual(code, 500)
        self.assertEqual(answer, f'Internal Server Error: "{PODS}": the server could not find the requested resource\n')
        review = {"spec": {"user": "jane", "resourceAttributes": {"verb": "list", "resource": "pods"}}}
        code, answer = await self.ask(
            server, "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review, token="root"
        )
        self.assertEqual((code, answer["status"]["allowed"]), (201, False))
        self.assertEqual(answer["status"]["evaluationError"], "the server could not find the requested resource")

    def configure(self, *authorizers: Any) -> Path:
        """Write a file with an AuthorizationConfiguration."""
        path = self.folder / "authorization.json"
        config = {
            "apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "AuthorizationConfiguration",
            "authorizers": list(authorizers),
        }
        put(path, json.dumps(config).encode())
        return path

    def hook(self, webhook: WebhookServer, name: str, **changes: Any) -> dict[str, Any]:
        """Return a webhook authorizer of that file."""
        info = {"type": "KubeConfigFile", "kubeConfigFile": str(webhook.kubeconfig(self.folder, f"/{name}"))}
        settings = {
            "timeout": "5s",
            "subjectAccessReviewVersion": "v1",
            "matchConditionSubjectAccessReviewVersion": "v1",
            "failurePolicy": "Deny",
            "connectionInfo": info,
            **changes,
        }
        return {"type": "Webhook", "name": name, "webhook": settings}

    async def test_configuration(self) -> None:
        """Webhooks are called in order, according to their match conditions, then RBAC."""
        first = await self.serve(self.decides)
        second = await self.serve(_review({"allowed": True}))
        path = self.configure(
            self.hook(first, "first", matchConditions=[{"expression": "has(request.resourceAttributes)"}]),
            self.hook(second, "second", matchConditions=[{"expression": "'team' in request.groups"}]),
            {"type": "RBAC", "name": "rbac"},
        )
        server = await self.start("--controllers=", f"--authorization-config={path}")
        self.assertEqual((await self.ask(server, "GET", PODS, token="jane-token"))[0], 200)
        self.assertEqual((await self.ask(server, "GET", PODS, token="joe-token"))[0], 403)
        self.assertEqual((len(first.calls), len(second.calls)), (2, 0))
        # A non-resource request: the first webhook does not match, and the second allows the team.
        self.assertEqual((await self.ask(server, "GET", "/nothing", token="joe-token"))[0], 404)
        self.assertEqual((await self.ask(server, "GET", "/nothing", token="jane-token"))[0], 403)
        self.assertEqual((len(first.calls), len(second.calls)), (2, 1))
        # Rules of RBAC count behind them.
        self.assertEqual((await self.ask(server, "GET", "/version", token="jane-token"))[0], 200)
        self.assertEqual(first.calls[0].query, {"timeout": "5s"})

    async def test_failure_policy(self) -> None:
        """A failing webhook denies, or has no opinion, according to its failure policy."""
        broken = await self.serve(lambda call: Reply(400, b""))
        rbac = {"type": "RBAC", "name": "rbac"}
        path = self.configure(self.hook(broken, "broken", failurePolicy="NoOpinion"), rbac)
        server = await self.start(f"--authorization-config={path}")
        self.assertEqual((await self.ask(server, "GET", "/version", token="jane-token"))[0], 200)
        self.configure(self.hook(broken, "broken", failurePolicy="Deny"), rbac)

        async def refused() -> bool:
            return (await self.ask(server, "GET", "/version", token="jane-token"))[0] == 500

        await self.until(refused)

    async def test_counted(self) -> None:
        """Metrics count calls by webhook and result, decisions of other authorizers, and reloads."""
        broken = await self.serve(lambda call: Reply(400, b""))
        rbac = {"type": "RBAC", "name": "rbac"}
        path = self.configure(self.hook(broken, "broken", failurePolicy="NoOpinion"), rbac)
        server = await self.start("--controllers=", f"--authorization-config={path}")
        self.assertEqual((await self.ask(server, "GET", "/version", token="jane-token"))[0], 200)
        good = await self.serve(_review({"allowed": True}))
        self.configure(self.hook(good, "good"), rbac)

        async def allowed() -> bool:
            return (await self.ask(server, "GET", "/nothing", token="jane-token"))[0] == 404

        await self.until(allowed)
        _, text = await self.ask(server, "GET", "/metrics", token="root")
        lines = text.splitlines()
        prefix = "apiserver_authorization_webhook_"
        labels = '{name="broken",result="error"}'
        (count,) = [line for line in lines if line.startswith(f"{prefix}evaluations_total{labels}")]
        self.assertIn(count.replace("evaluations_total", "evaluations_fail_open_total"), lines)
        self.assertIn(f'{prefix}evaluations_total{{name="good",result="success"}} 1', lines)
        self.assertIn(f'{prefix}duration_seconds_count{{name="good",result="success"}} 1', lines)
        prefix = "apiserver_authorization_config_controller_automatic_reload"
        self.assertIn(f'{prefix}s_total{{status="success",apiserver_id_hash=""}} 1', lines)
        self.assertTrue(any(line.startswith(f"{prefix}_last_timestamp_seconds") for line in lines))

    async def test_reload(self) -> None:
        """A changed file is reloaded; an invalid one is ignored and logged."""
        webhook = await self.serve(_review({"allowed": True}))
        rbac = {"type": "RBAC", "name": "rbac"}
        path = self.configure(rbac)
        server = await self.start(f"--authorization-config={path}")
        self.assertEqual((await self.ask(server, "GET", PODS, token="jane-token"))[0], 403)
        lines = self.log()
        self.configure(self.hook(webhook, "hook"))
        await self.wait_for_error(lines, "missing required types: [RBAC]")
        self.assertEqual((await self.ask(server, "GET", PODS, token="jane-token"))[0], 403)
        self.configure(self.hook(webhook, "hook"), rbac)

        async def allowed() -> bool:
            return (await self.ask(server, "GET", PODS, token="jane-token"))[0] == 200

        await self.until(allowed)
        self.configure({"type": "Nobody"})
        await self.wait_for_error(lines, 'Unsupported value: "Nobody"')
        self.assertTrue(await allowed())


def put(path: Path, content: bytes) -> None:
    """Replace a file by renaming, as mounted secrets are updated."""
    new = path.with_suffix(".new")
    new.write_bytes(content)
    os.replace(new, path)


class FileTests(WebhookCase):
    """Files that are reloaded while the server runs."""

    async def test_serving_certificate(self) -> None:
        """A changed serving certificate is presented on new connections, and the kubeconfig contains it."""
        authority = CertificateAuthority.make("company")
        files = self.folder / "tls.crt", self.folder / "tls.key"

        def issue() -> CertKeyPair:
            return authority.issue(CertConfig("api", names=("127.0.0.1",), server=True))

        def put_pair(pair: CertKeyPair) -> None:
            for path, content in zip(files, (pair.certificate, pair.key), strict=True):
                put(path, content)

        first, second = issue(), issue()
        put_pair(first)
        server = await self.startKubeAPI(f"--tls-cert-file={files[0]}", f"--tls-private-key-file={files[1]}")
        address = ("127.0.0.1", server.connection.port)

        async def presented() -> bytes:
            return (await deferToThread(ssl.get_server_certificate, address)).encode()

        self.assertEqual(await presented(), first.certificate)
        # A certificate without its key is none.
        lines = self.log()
        files[0].write_bytes(second.certificate)
        await self.wait_for_error(lines, "certificate and key do not match")
        self.assertEqual(await presented(), first.certificate)
        put_pair(second)

        async def changed() -> bool:
            return await presented() == second.certificate

        await self.until(changed)

        async def trusted() -> bool:
            config = yaml.safe_load(server.kubeconfig.read_text())
            data = config["clusters"][0]["cluster"]["certificate-authority-data"]
            return second.certificate in base64.b64decode(data)

        await self.until(trusted)
