"""Tests of an extension server behind a Kubernetes API server, over HTTP."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve

from twisted.internet import reactor
from twisted.internet.threads import deferToThread
from twisted.trial.unittest import TestCase
from zope.interface import implementer

from kubetwist.api.resource import UserInfo
from kubetwist.extension import ExtensionOptions, Resource
from kubetwist.extension._server import ExtensionService
from kubetwist.interfaces import IValidatingAdmission
from kubetwist.server.credentials.certificates import CertConfig, CertificateAuthority, CertKeyPair
from kubetwist.server.errors import StartError
from kubetwist.testing import InProcessServer
from kubetwist.testing._connection import Connection
from kubetwist.testing.trial import KubeAPIMixin

from .test_resources import FORTUNE

CONFIG_MAP = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
GROUP = "/apis/fun.example.com/v1"
FORTUNES = f"{GROUP}/namespaces/default/fortunes"
TOKENS = 'admin-token,admin,1,"system:masters"\njane-token,jane,2,"developers"\n'


def refresh(namespace: str, user: UserInfo) -> Iterator[dict[str, Any]]:
    """Return two objects. One is named after the user."""
    for name in (user.name.replace(":", "-"), "z"):
        yield {"metadata": {"name": name, "labels": {"of": name}}, "groups": list(user.groups), "unknown": 1}


VISITOR = Resource(
    group="fun.example.com",
    version="v1",
    kind="Visitor",
    plural="visitors",
    namespaced=False,
    schema={"groups": {"type": "array", "items": {"type": "string"}}},
    compute=refresh,
)


@implementer(IValidatingAdmission)
class NoCapitals:
    """Rejects fortunes in capital letters."""

    name = "NoShouting"

    def handles(self, operation: str) -> bool:
        """Handle creates and updates."""
        return operation in ("CREATE", "UPDATE")

    def validate(self, attributes: Any) -> None:
        """Check the text."""
        if attributes.object["spec"]["text"].isupper():
            raise attributes.forbidden("do not shout")


class ServerTests(KubeAPIMixin, TestCase):
    """An extension server and the Kubernetes API server in front."""

    timeout = 60

    async def setUp(self) -> None:
        """Start a Kubernetes API server with two users."""
        self.folder = Path(self.mktemp()).resolve()
        self.folder.mkdir()
        (self.folder / "tokens.csv").write_text(TOKENS)
        self.front = InProcessServer("--controllers=", token_auth_file=self.folder / "tokens.csv")
        self.addCleanup(self.front.stop)
        await self.front.start()
        self.front_connection = self.front.connection.with_token("admin-token")
        self.proxies = CertificateAuthority.make("proxies")
        self.proxy = self.proxies.issue(CertConfig("the-proxy"))

    async def change_config_map(self, **changed: Any) -> None:
        """Change the config map with the authentication configuration."""
        data = {
            "requestheader-client-ca-file": self.proxies.pair.certificate.decode(),
            "requestheader-allowed-names": '["the-proxy"]',
            "requestheader-username-headers": '["X-Remote-User"]',
            "requestheader-uid-headers": '["X-Remote-Uid"]',
            "requestheader-group-headers": '["X-Remote-Group"]',
            "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
            **changed,
        }
        obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": CONFIG_MAP.rpartition("/")[2]}}
        code, response = await deferToThread(
            self.front_connection.request,
            "PATCH",
            f"{CONFIG_MAP}?fieldManager=test&force=true",
            {**obj, "data": data},
            content_type="application/apply-patch+yaml",
        )
        self.assertIn(code, (200, 201), response)

    async def start(
        self, *flags: str, resources: Sequence[Resource] = (FORTUNE, VISITOR), admission: Sequence[Any] = ()
    ) -> Connection:
        """Start an extension server, and stop it after the test."""
        options = ExtensionOptions()
        options.parseOptions(
            [
                f"--data-dir={self.folder / 'data'}",
                "--in-memory",
                "--bind-address=127.0.0.1",
                "--secure-port=0",
                f"--kubeconfig={self.front.connection.kubeconfig}",
                "--service=default/fun",
                *flags,
            ]
        )
        service = ExtensionService(options, reactor, resources, admission)
        service.startService()
        self.addCleanup(service.stopService)
        await service.ready
        self.service, self.server = service, service.server
        ca = self.server.config.credentials.ca_bundle.decode()
        return evolve(self.front_connection, url=self.server.url, ca=ca)

    async def ask(
        self, connection: Connection, method: str, path: str, body: Any = None, token: str = "admin-token"
    ) -> tuple[int, Any]:
        """Send a request with a token."""
        return await deferToThread(connection.with_token(token).request, method, path, body)

    def as_proxy(self, connection: Connection, pair: CertKeyPair, headers: dict[str, str], path: str) -> int:
        """Send a GET request with a client certificate and headers, and return the status code. Blocking."""
        import http.client

        files = self.folder / "proxy.crt", self.folder / "proxy.key"
        for file, content in zip(files, (pair.certificate, pair.key), strict=True):
            file.write_bytes(content)
        context = ssl.create_default_context(cadata=connection.ca)
        context.load_cert_chain(*files)
        client = http.client.HTTPSConnection("127.0.0.1", connection.port, context=context, timeout=30)
        try:
            client.request("GET", path, headers=headers)
            return client.getresponse().status
        finally:
            client.close()

    async def test_objects(self) -> None:
        """Objects are created, read, changed and deleted. Invalid objects are rejected with a message."""
        await self.change_config_map()
        server = await self.start()
        obj = {"apiVersion": "fun.example.com/v1", "kind": "Fortune", "metadata": {"name": "a"}}
        code, made = await self.ask(server, "POST", FORTUNES, {**obj, "spec": {"text": "hello"}})
        self.assertEqual((code, made["spec"]), (201, {"text": "hello"}))
        code, refused = await self.ask(server, "POST", FORTUNES, {**obj, "spec": {"text": 1}})
        self.assertEqual((code, refused["reason"]), (422, "Invalid"))
        code, found = await self.ask(server, "GET", f"{GROUP}/fortunes")
        self.assertEqual([one["metadata"]["name"] for one in found["items"]], ["a"])
        self.assertEqual((await self.ask(server, "DELETE", f"{FORTUNES}/a"))[0], 200)
        self.assertEqual((await self.ask(server, "GET", f"{FORTUNES}/a"))[0], 404)

    async def test_metrics(self) -> None:
        """Metrics are exposed, and selected by the flags."""
        await self.change_config_map()
        code, text = await self.ask(await self.start("--disabled-metrics=version_info"), "GET", "/metrics")
        self.assertEqual(code, 200, text)
        self.assertIn("kubernetes_build_info", text)
        self.assertNotIn("version_info", text)

    async def test_computed(self) -> None:
        """Computed objects are read, selected and decoded like stored ones, and cannot be written."""
        await self.change_config_map()
        server = await self.start()
        code, found = await self.ask(server, "GET", f"{GROUP}/visitors")
        self.assertEqual((code, found["kind"]), (200, "VisitorList"))
        self.assertEqual([one["metadata"]["name"] for one in found["items"]], ["admin", "z"])
        self.assertNotIn("unknown", found["items"][0])
        for query in ("labelSelector=of%3Dz", "fieldSelector=metadata.name%3Dz"):
            code, found = await self.ask(server, "GET", f"{GROUP}/visitors?{query}")
            self.assertEqual([one["metadata"]["name"] for one in found["items"]], ["z"])
        code, one = await self.ask(server, "GET", f"{GROUP}/visitors/admin")
        self.assertEqual((code, one["kind"]), (200, "Visitor"))
        self.assertIn("system:masters", one["groups"])
        self.assertEqual((await self.ask(server, "GET", f"{GROUP}/visitors/joe"))[0], 404)
        self.assertEqual((await self.ask(server, "DELETE", f"{GROUP}/visitors/admin"))[0], 405)
        code, listed = await self.ask(server, "GET", GROUP)
        self.assertEqual({one["name"]: one["verbs"] for one in listed["resources"]}["visitors"], ["get", "list"])

    async def test_authorization(self) -> None:
        """The Kubernetes API server authenticates tokens and authorizes requests."""
        await self.change_config_map()
        server = await self.start()
        self.assertEqual((await self.ask(server, "GET", FORTUNES, token="no-token"))[0], 401)
        code, refused = await self.ask(server, "GET", FORTUNES, token="jane-token")
        self.assertEqual(code, 403)
        self.assertIn('User "jane" cannot list resource "fortunes"', refused["message"])
        rule = {"apiGroups": ["fun.example.com"], "resources": ["fortunes"], "verbs": ["list"]}
        rbac = "/apis/rbac.authorization.k8s.io/v1"
        role = {"metadata": {"name": "fun"}, "rules": [rule]}
        await self.ask(self.front_connection, "POST", f"{rbac}/clusterroles", role)
        binding = {
            "metadata": {"name": "fun"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "fun"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "developers"}],
        }
        await self.ask(self.front_connection, "POST", f"{rbac}/clusterrolebindings", binding)
        self.assertEqual((await self.ask(server, "GET", f"{GROUP}/fortunes", token="jane-token"))[0], 200)

    async def test_proxy_headers(self) -> None:
        """Headers with the user are accepted only with a client certificate of the proxy CA in the config map."""
        await self.change_config_map()
        server = await self.start()
        path, headers = f"{GROUP}/visitors", {"X-Remote-User": "jane", "X-Remote-Group": "system:masters"}
        stranger = self.proxies.issue(CertConfig("a-stranger"))
        forged = CertificateAuthority.make("proxies").issue(CertConfig("the-proxy"))
        codes = []
        for pair, sent in ((self.proxy, headers), (self.proxy, {}), (stranger, headers), (forged, headers)):
            codes.append(await deferToThread(self.as_proxy, server, pair, sent, path))
        self.assertEqual(codes, [200, 401, 401, 401])

    async def test_config_map_changes(self) -> None:
        """A changed proxy CA in the config map is applied while the server runs."""
        await self.change_config_map(**{"requestheader-client-ca-file": ""})
        server = await self.start()
        path, headers = f"{GROUP}/visitors", {"X-Remote-User": "jane", "X-Remote-Group": "system:masters"}
        self.assertNotEqual(await deferToThread(self.as_proxy, server, self.proxy, headers, path), 200)
        await self.change_config_map()
        await self.service.delegated.refresh()
        self.assertEqual(await deferToThread(self.as_proxy, server, self.proxy, headers, path), 200)

    async def test_admission(self) -> None:
        """Admission plugins are called for writes."""
        await self.change_config_map()
        server = await self.start(admission=[NoCapitals()])
        obj = {
            "apiVersion": "fun.example.com/v1",
            "kind": "Fortune",
            "metadata": {"name": "a"},
            "spec": {"text": "HELLO"},
        }
        code, refused = await self.ask(server, "POST", FORTUNES, obj)
        self.assertEqual((code, "do not shout" in refused["message"]), (403, True))

    async def test_documents(self) -> None:
        """Discovery and OpenAPI contain only the group of the extension. Health checks need no authentication."""
        await self.change_config_map()
        server = await self.start()
        _, groups = await self.ask(server, "GET", "/apis")
        self.assertEqual([one["name"] for one in groups["groups"]], ["fun.example.com"])
        self.assertEqual((await self.ask(server, "GET", "/api"))[0], 404)
        _, openapi = await self.ask(server, "GET", "/openapi/v3/apis/fun.example.com/v1")
        self.assertIn("com.example.fun.v1.Fortune", openapi["components"]["schemas"])
        self.assertEqual((await self.ask(server, "GET", "/readyz", token="")), (200, "ok"))

    async def test_start_fails(self) -> None:
        """
        The start fails if the API server has no authentication configuration, unless lookup failures are tolerated.
        """
        code, _ = await self.ask(self.front_connection, "DELETE", CONFIG_MAP)
        self.assertIn(code, (200, 404))
        kubeconfig = self.folder / "nobody.kubeconfig"
        kubeconfig.write_text(
            self.front.connection.kubeconfig.read_text().replace(str(self.front.connection.port), "1")
        )
        with self.assertRaisesRegex(StartError, "extension-apiserver-authentication-reader"):
            await self.start(f"--kubeconfig={kubeconfig}")
        with self.assertRaisesRegex(StartError, "not set, and the server does not run in a pod"):
            await self.start("--kubeconfig=")
        bad = evolve(FORTUNE, plural="For tunes")
        await self.change_config_map()
        with self.assertRaisesRegex(StartError, "spec.names.plural"):
            await self.start(resources=[bad])
        server = await self.start(f"--kubeconfig={kubeconfig}", "--authentication-tolerate-lookup-failure")
        self.assertEqual((await self.ask(server, "GET", "/readyz", token=""))[0], 200)
