"""Tests of credentials in the storage, with a whole server."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path
from typing import Any

from twisted.internet import reactor as the_reactor
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread
from twisted.trial.unittest import TestCase

from kubetwist.server.credentials.certificates import CertificateAuthority
from kubetwist.testing._inprocess import InProcessServer

reactor: Any = the_reactor
SECRETS = "/api/v1/namespaces/kube-system/secrets"
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"


class CredentialTests(TestCase):
    """A server with bootstrap tokens."""

    timeout = 60

    async def setUp(self) -> None:  # type: ignore[override]
        """Start the server."""
        self.server = InProcessServer("--enable-bootstrap-token-auth")
        await self.server.start()
        self.addCleanup(self.server.stop)

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Send a request as the administrator."""
        return await deferToThread(self.server.request, method, path, body)  # type: ignore[no-any-return]

    async def review(self, token: str) -> Any:
        """Return the status of a TokenReview."""
        _, answer = await self.ask("POST", REVIEWS, {"spec": {"token": token}})
        return answer["status"]

    async def test_bootstrap(self) -> None:
        """A bootstrap token is valid while its secret exists."""
        data = {
            "token-id": "abcdef",
            "token-secret": "0123456789abcdef",
            "usage-bootstrap-authentication": "true",
            "auth-extra-groups": "system:bootstrappers:workers",
        }
        secret = {
            "metadata": {"name": "bootstrap-token-abcdef"},
            "type": "bootstrap.kubernetes.io/token",
            "data": {key: b64encode(value.encode()).decode() for key, value in data.items()},
        }
        self.assertEqual((await self.ask("POST", SECRETS, secret))[0], 201)
        config_map = await self.review("abcdef.0123456789abcdef")
        self.assertEqual(config_map["user"]["username"], "system:bootstrap:abcdef")
        groups = ["system:bootstrappers", "system:bootstrappers:workers", "system:authenticated"]
        self.assertEqual(config_map["user"]["groups"], groups)
        self.assertEqual((await self.review("abcdef.fedcba9876543210"))["error"], "invalid bearer token")
        await self.ask("DELETE", f"{SECRETS}/bootstrap-token-abcdef")
        self.assertNotIn("authenticated", await self.review("abcdef.0123456789abcdef"))

    async def test_tracking(self) -> None:
        """The server records the start of tracking of secret tokens, and repairs an invalid record."""
        path = "/api/v1/namespaces/kube-system/configmaps/kube-apiserver-legacy-service-account-token-tracking"
        _, config_map = await self.ask("GET", path)
        self.assertRegex(config_map["data"]["since"], "^[0-9]{4}-[0-9]{2}-[0-9]{2}$")
        (entry,) = config_map["metadata"]["managedFields"]
        self.assertEqual(entry["manager"], "kube-apiserver")
        since = config_map["data"]["since"]
        config_map["data"]["since"] = "spoilt"
        self.assertEqual((await self.ask("PUT", path, config_map))[0], 200)
        while config_map["data"]["since"] == "spoilt":
            _, config_map = await self.ask("GET", path)
            await deferLater(reactor, 0.01)
        self.assertEqual(config_map["data"]["since"], since)


class AuthenticationInfoTests(TestCase):
    """A server with additional authorities."""

    timeout = 60

    async def test_published(self) -> None:
        """The ConfigMap for extension servers contains the authorities for users and proxies."""
        folder = Path(self.mktemp())
        folder.mkdir()
        for name in ("users", "proxies"):
            (folder / f"{name}.crt").write_bytes(CertificateAuthority.make(name).pair.certificate)
        server = InProcessServer(
            f"--client-ca-file={folder}/users.crt",
            f"--requestheader-client-ca-file={folder}/proxies.crt",
            "--requestheader-username-headers=X-Remote-User",
        )
        await server.start()
        self.addCleanup(server.stop)
        path = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
        _, config_map = await deferToThread(server.request, "GET", path)
        self.assertEqual(config_map["data"]["requestheader-username-headers"], '["X-Remote-User"]')
        # The server's client certificate for extension servers has another authority.
        own = server._service.server.config.credentials.front_proxy_authority.decode()
        published = (folder / "proxies.crt").read_text() + own
        self.assertEqual(config_map["data"]["requestheader-client-ca-file"], published)
        self.assertIn((folder / "users.crt").read_text(), config_map["data"]["client-ca-file"])
