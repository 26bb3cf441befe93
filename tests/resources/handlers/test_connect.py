"""Tests for connections to kubelets and to other targets of objects: responses, errors, certificates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from twisted.internet import reactor
from twisted.internet.address import IPv4Address
from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThread
from twisted.trial.unittest import TestCase

from kubetwist.client import dialing
from kubetwist.server.credentials.certificates import CertConfig, CertificateAuthority
from kubetwist.testing._inprocess import InProcessServer
from kubetwist.testing.trial import KubeAPIMixin
from kubetwist.testing.webhooks import HANG_UP, Call, Reply, WebhookServer

MERGE = "application/merge-patch+json"
LOG = "/api/v1/namespaces/default/pods/pod/log"
NODE = "/api/v1/nodes/node/proxy"


class ConnectingCase(KubeAPIMixin, TestCase):
    """Test case with a server, and a kubelet with a pod."""

    answer: Any = staticmethod(lambda call: Reply(200, b"fine"))

    async def begin(self, *flags: str, trust: bool = False, strict: bool = False, **options: Any) -> WebhookServer:
        """
        Start both.

        @param trust: Whether the kubelet's certificate must be issued by its authority.
        @param strict: Whether connections to this machine are forbidden.
        """
        kubelet = WebhookServer(reactor, lambda call: self.answer(call), **options)
        await kubelet.start()
        self.addCleanup(lambda: Deferred.fromCoroutine(kubelet.stop()))
        if trust:
            authority = Path(self.mktemp())
            authority.write_bytes(kubelet.ca)
            flags = (*flags, f"--kubelet-certificate-authority={authority}")
        if not strict:
            flags = (*flags, "--allow-loopback-proxy")
        self.server: InProcessServer = await self.startKubeAPI("--controllers=", *flags)
        await self.ask("POST", "/api/v1/nodes", {"metadata": {"name": "node"}})
        await self.move(kubelet.port)
        await self.ask("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
        spec = {"nodeName": "node", "containers": [{"name": "main", "image": "i"}]}
        await self.ask("POST", "/api/v1/namespaces/default/pods", {"metadata": {"name": "pod"}, "spec": spec})
        return kubelet

    async def move(self, port: int, address: str = "127.0.0.1") -> None:
        """Change the kubelet's address in the node."""
        status = {
            "addresses": [{"type": "InternalIP", "address": address}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        }
        await self.ask("PATCH", "/api/v1/nodes/node/status", {"status": status}, content_type=MERGE)

    async def ask(self, method: str, path: str, body: Any = None, **more: Any) -> Any:
        """Send a request that must succeed."""
        code, answer = await self.fetch(method, path, body, **more)
        self.assertIn(code, (200, 201), answer)
        return answer

    async def fetch(self, method: str, path: str, body: Any = None, **more: Any) -> tuple[int, Any]:
        """Return the code and the body of a response."""
        answer: tuple[int, Any] = await deferToThread(self.server.request, method, path, body, **more)
        return answer

    @property
    def config(self) -> Any:
        """Return the configuration of the server."""
        return self.server._service.server.config


class LogTests(ConnectingCase):
    """Tests for L{kubetwist.resources.proxy.podlogs}."""

    async def test_refusals(self) -> None:
        """CVE-2018-1002102: errors of a kubelet are reported as in kube-apiserver, and redirects are not followed."""
        await self.begin()
        missing = "the server could not find the requested resource ( pods/log pod)"
        for reply, code, reason, message in (
            (Reply(404, b"no"), 404, "NotFound", missing),
            (Reply(400, b"what?"), 400, "BadRequest", "what?"),
            (Reply(403, b"no, eve"), 403, "Forbidden", "no, eve ( pods/log pod)"),
            (Reply(500, b"broken"), 500, "InternalError", "Internal error occurred: broken"),
            (
                Reply(502, b"off"),
                502,
                "InternalError",
                'an error on the server ("off") has prevented the request from succeeding ( pods/log pod)',
            ),
            (Reply(500, b"x" * 60_000), 500, "InternalError", f"Internal error occurred: {'x' * 50_000}"),
        ):
            self.answer = lambda call, reply=reply: reply
            answer = await self.fetch("GET", LOG)
            self.assertEqual((answer[0], answer[1].get("reason"), answer[1]["message"]), (code, reason, message))
        for location in ("https://elsewhere.example/x", "/elsewhere"):
            self.answer = lambda call, location=location: Reply(302, b"", {"Location": location})
            code, answer = await self.fetch("GET", LOG)
            self.assertEqual(code, 500)
            self.assertRegex(answer["message"], r'^Get "https://[a-z0-9.:]+/(x|elsewhere)": redirects forbidden$')
        self.answer = lambda call: Reply(302, b"")
        code, answer = await self.fetch("GET", LOG)
        self.assertEqual(code, 502)
        self.answer = lambda call: HANG_UP
        code, answer = await self.fetch("GET", LOG)
        self.assertEqual((code, answer.get("reason")), (500, None))
        self.assertRegex(answer["message"], r'^Get "https://127\.0\.0\.1:\d+/containerLogs/default/pod/main": ')

    async def test_text(self) -> None:
        """A log is plain text, regardless of the kubelet's content type, and without the kubelet's headers."""
        self.answer = lambda call: Reply(200, b"one\n", {"Content-Type": "text/html", "Set-Cookie": "a=b"})
        kubelet = await self.begin()
        self.assertEqual(await self.ask("GET", f"{LOG}?tailLines=1"), "one\n")
        (call,) = kubelet.calls
        self.assertEqual((call.path, call.query), ("/containerLogs/default/pod/main", {"tailLines": "1"}))
        self.assertNotIn("authorization", call.headers)

    async def test_accept(self) -> None:
        """
        As in kube-apiserver, a client that accepts only text gets 406; a client that also accepts JSON gets the log.
        """
        await self.begin()
        for accept, expected in (
            ("text/plain", "only the following media types are accepted: application/json, application/yaml, "),
            ("text/html", "406: Not Acceptable\n\nAvailable representations: text/plain, application/json, "),
        ):
            code, answer = await self.fetch("GET", LOG, accept=accept)
            self.assertEqual(code, 406)
            self.assertIn(expected, answer["message"])
        for accept in (
            "*/*",
            "application/json",
            "text/plain, application/json",
            "application/vnd.kubernetes.protobuf",
        ):
            self.assertEqual(await self.ask("GET", LOG, accept=accept), "fine")

    async def test_names(self) -> None:
        """A node with an unresolvable or invalid host name is not reached."""
        await self.begin()
        resolvers = Path(self.mktemp())
        self.patch(dialing, "RESOLVERS", resolvers)
        for name in ("no/such@host", "a b", "x#"):
            await self.move(10250, name)
            for path in (LOG, f"{NODE}/healthz"):
                code, answer = await self.fetch("GET", path)
                self.assertEqual((code, answer["message"]), (400, f"lookup {name}: no such host"))


class CertificateTests(ConnectingCase):
    """The client certificate for kubelets, and the certificates of kubelets."""

    async def test_other_authority(self) -> None:
        """
        A kubelet with a certificate of another authority gets no request, except for logs with
        insecureSkipTLSVerifyBackend.
        """
        other = Path(self.mktemp())
        other.write_bytes(CertificateAuthority.make("other").pair.certificate)
        kubelet = await self.begin(f"--kubelet-certificate-authority={other}")
        code, answer = await self.fetch("GET", LOG)
        self.assertEqual(code, 500)
        self.assertIn("tls: failed to verify certificate: x509: certificate signed by unknown authority", str(answer))
        code, answer = await self.fetch("GET", f"{NODE}/pods")
        self.assertEqual(code, 503)
        self.assertIn("x509: certificate signed by unknown authority", answer["message"])
        self.assertEqual(kubelet.calls, [])
        self.assertEqual(await self.ask("GET", f"{LOG}?insecureSkipTLSVerifyBackend=true"), "fine")
        metrics = await self.ask("GET", "/metrics")
        for line in (
            'insecure_backend_total{usage="enforce_tls"} 1',
            'insecure_backend_total{usage="skip_tls_allowed"} 1',
            "backend_tls_failure_total 1",
        ):
            self.assertIn(f"kube_apiserver_pod_logs_{line}", metrics)

    async def test_files(self) -> None:
        """The files of the flags are used, and reloaded after changes."""
        names = {name: Path(self.mktemp()) for name in ("certificate", "key")}
        authority = CertificateAuthority.make("clients")
        shown: list[str] = []

        def write(name: str) -> None:
            pair = authority.issue(CertConfig(name))
            names["certificate"].write_bytes(pair.certificate)
            names["key"].write_bytes(pair.key)

        def answer(call: Call) -> Reply:
            shown.append(call.client)
            return Reply(200, b"")

        self.answer = answer
        write("first")
        await self.begin(
            f"--kubelet-client-certificate={names['certificate']}", f"--kubelet-client-key={names['key']}",
            require_client=authority,
        )  # fmt: skip
        files = self.config.files
        await self.ask("GET", f"{NODE}/pods")
        write("second")
        files._apply_changes(files._changes())
        await self.ask("GET", f"{NODE}/pods")
        names["key"].write_text("garbage")
        files._apply_changes(files._changes())
        await self.ask("GET", LOG)
        self.assertEqual(shown, ["first", "second", "second"])

    async def test_node_that_is_this_server(self) -> None:
        """CVE-2022-3294: a node with the address of this server does not give clients the identity of the server."""
        await self.begin()
        port = int(self.server.url.rpartition(":")[2])
        await self.move(port)
        code, answer = await self.fetch("GET", f"{NODE}/api/v1/secrets")
        self.assertEqual((code, answer["reason"]), (401, "Unauthorized"))
        self.flushLoggedErrors()


class ProxyTests(ConnectingCase):
    """The targets of proxies."""

    async def test_addresses(self) -> None:
        """CVE-2020-8562: a name that resolves to a metadata service is rejected after the lookup."""
        await self.begin()
        await self.move(10250, "metadata.example")
        self.resolve("169.254.169.254")
        for path in (f"{NODE}/healthz", LOG, "/api/v1/nodes/node:80/proxy/"):
            code, answer = await self.fetch("GET", path)
            self.assertEqual((code, answer["message"]), (400, "address not allowed"), path)

    async def test_no_addresses(self) -> None:
        """An invalid address in an object is reported as a bad request."""
        await self.begin()
        for address in ("127.0.0.1:10250", "a]b", "[", "127.0.0.1/x:y", "::1]:80"):
            await self.move(10250, address)
            for path in (f"{NODE}/healthz", "/api/v1/nodes/https:node:80/proxy/"):
                code, answer = await self.fetch("GET", path)
                self.assertEqual((code, answer["reason"]), (400, "BadRequest"), (address, answer))

    async def test_kubelets_by_name(self) -> None:
        """The certificate of a kubelet that is addressed by name must contain the name; the name is resolved once."""
        kubelet = await self.begin(trust=True, strict=True, names=("node.example",))
        self.config.outgoing.address_overrides["10.1.2.3", kubelet.port] = "127.0.0.1", kubelet.port
        names = self.resolve("10.1.2.3")
        await self.move(kubelet.port, "node.example")
        self.assertEqual(await self.ask("GET", LOG), "fine")
        self.assertEqual(await self.ask("GET", f"{NODE}/x"), "fine")
        self.assertEqual((kubelet.connections, names.asked), (1, ["node.example"]))
        await self.move(kubelet.port, "other.example")
        code, answer = await self.fetch("GET", f"{NODE}/x")
        self.assertEqual(code, 503)
        self.assertIn("x509: certificate is valid for node.example, not other.example", answer["message"])

    async def test_kubelets_by_address(self) -> None:
        """IPv4 and IPv6 addresses lead to a kubelet whose certificate must contain the address."""
        addresses = ("fd00::7", "10.1.2.3")
        kubelet = await self.begin(trust=True, strict=True, names=addresses)
        for address in addresses:
            self.config.outgoing.address_overrides[address, kubelet.port] = "127.0.0.1", kubelet.port
            await self.move(kubelet.port, address)
            self.assertEqual(await self.ask("GET", LOG), "fine")
        self.assertEqual(
            [call.headers["host"] for call in kubelet.calls], [f"[fd00::7]:{kubelet.port}", f"10.1.2.3:{kubelet.port}"]
        )

    def resolve(self, address: str) -> Names:
        """Resolve every name to an address."""
        outgoing, names = self.config.outgoing, Names(address)
        outgoing._reactor = _Named(outgoing._reactor, names)
        return names

    async def test_methods(self) -> None:
        """Every method is forwarded, including HEAD."""
        kubelet = await self.begin()
        methods = ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"]
        for method in methods:
            self.assertEqual((await self.fetch(method, f"{NODE}/healthz"))[0], 200, method)
        self.assertEqual([call.method for call in kubelet.calls], methods)

    async def test_root(self) -> None:
        """A proxy without a subpath redirects to the path with a slash, so that relative links resolve below it."""
        kubelet = await self.begin()
        self.assertEqual((await self.fetch("GET", f"{NODE}?a=b"))[0], 301)
        self.assertEqual(kubelet.calls, [])
        self.assertEqual(await self.ask("POST", NODE, b"body"), "fine")
        self.assertEqual([(call.path, call.body) for call in kubelet.calls], [("/", b"body")])


class PermissionTests(ConnectingCase):
    """The permission to create streams."""

    exec_path = "/api/v1/namespaces/default/pods/pod/exec?command=ls&stdout=true"

    async def as_reader(self, *flags: str) -> tuple[int, Any]:
        """Return the response to a GET of a stream, by a user who may get, but not create streams."""
        await self.begin(*flags)
        rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
        rules = [{"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["get"]}]
        await self.ask("POST", f"{rbac}/roles", {"metadata": {"name": "reader"}, "rules": rules})
        binding = {
            "metadata": {"name": "reader"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
            "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "default"}],
        }
        await self.ask("POST", f"{rbac}/rolebindings", binding)
        token = await self.ask("POST", "/api/v1/namespaces/default/serviceaccounts/default/token", {"spec": {}})
        connection = self.server.connection.with_token(token["status"]["token"])
        answer: tuple[int, Any] = await deferToThread(connection.request, "GET", self.exec_path)
        return answer

    async def test_create(self) -> None:
        """A stream needs the permission to create it, which the verb of a GET does not show."""
        code, status = await self.as_reader()
        self.assertEqual(code, 403)
        self.assertTrue(status["message"].startswith('pods "pod" is forbidden: '), status["message"])

    async def test_gate(self) -> None:
        """Without the feature gate, the verb of the request decides; this request fails because it is no upgrade."""
        code, _ = await self.as_reader("--feature-gates=AuthorizePodWebsocketUpgradeCreatePermission=false")
        self.assertEqual(code, 400)

    async def test_releases(self) -> None:
        """The permission is needed since 1.35."""
        self.assertEqual((await self.as_reader("--kubernetes-version=1.34"))[0], 400)


class Names:
    """Resolver that returns one address and records the requested names."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.asked: list[str] = []

    def resolveHostName(self, receiver: Any, host: str, *arguments: Any, **more: Any) -> None:
        """See L{IHostnameResolver}."""
        self.asked.append(host)
        receiver.resolutionBegan(None)
        receiver.addressResolved(IPv4Address("TCP", self.address, 0))
        receiver.resolutionComplete()


class _Named:
    """A reactor with another name resolver."""

    def __init__(self, inner: Any, names: Any) -> None:
        self._inner = inner
        self.nameResolver = names

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)
