"""Test case with an aggregated API server: a fake backend that an APIService names, and requests to both servers."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from attrs import frozen
from OpenSSL import SSL

from twisted.internet import reactor, ssl
from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread
from twisted.protocols.policies import WrappingFactory
from twisted.protocols.tls import TLSMemoryBIOFactory
from twisted.trial.unittest import TestCase
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Site

from kubetwist.authentication.certificates import common_name
from kubetwist.server.credentials.certificates import CertConfig, CertificateAuthority
from kubetwist.testing import InProcessServer
from kubetwist.testing.trial import KubeAPIMixin

SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
GROUP = "fortunes.example.com"
NAME = f"v1.{GROUP}"
HOME = f"/apis/{GROUP}/v1"
ADDRESS = "10.0.0.77"
DISCOVERY = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{GROUP}/v1", "resources": []}


@frozen
class Received:
    """
    A request as the backend received it.

    @ivar fields: The header fields by name in lower case.
    @ivar client: The common name of the client certificate; C{""} without one.
    """

    method: str
    target: str
    fields: dict[str, list[str]]
    body: bytes
    client: str

    @property
    def path(self) -> str:
        """Return the path without the query."""
        return urlsplit(self.target).path


class Backend:
    """
    Fake aggregated API server on a free port of this machine.

    @ivar received: The received requests, except those for discovery and OpenAPI documents.
    @ivar documents: The paths of the received requests for these documents.
    @ivar answers: Handlers by path: each gets the request, and returns an object or C{NOT_DONE_YET}.
    @ivar healthy: Whether discovery requests succeed.
    """

    def __init__(self, names: tuple[str, ...] = ("far.default.svc",)) -> None:
        self.authority = CertificateAuthority.make("backend-ca")
        self.received: list[Received] = []
        self.probes: list[Received] = []
        self.documents: list[Received] = []
        self.answers: dict[str, Callable[[Any], Any]] = {}
        self.healthy = True
        self._names = names
        self._port: Any = None
        self._connections: Any = None

    @property
    def ca(self) -> bytes:
        """Return the certificate of its authority, PEM."""
        return self.authority.pair.certificate

    @property
    def port(self) -> int:
        """Return the port that it listens on."""
        return self._port.getHost().port  # type: ignore[no-any-return]

    async def start(self, port: int = 0) -> None:
        """Start to listen."""
        pair = self.authority.issue(CertConfig("far", names=self._names, server=True))
        options = ssl.PrivateCertificate.loadPEM(pair.certificate + pair.key).options()
        context = options.getContext()
        # Any certificate is accepted; tests check its subject.
        context.set_verify(SSL.VERIFY_PEER, lambda *_: True)
        site: Any = Site(_Leaf(self))
        site.noisy = False
        secure: Any = TLSMemoryBIOFactory(options, False, site)
        secure.noisy = False
        self._connections = WrappingFactory(secure)
        self._connections.noisy = False
        listen: Any = reactor
        self._port = listen.listenTCP(port, self._connections, interface="127.0.0.1")

    async def kill(self) -> None:
        """Close all connections and stop listening. Idempotent."""
        port, self._port = self._port, None
        if port is None:
            return
        await port.stopListening()
        for connection in list(self._connections.protocols):
            connection.transport.abortConnection()
        for _ in range(3):
            await deferLater(reactor, 0)

    def take(self, request: Any) -> Any:
        """Handle a request."""
        shown = request.channel.transport.getPeerCertificate()
        fields = {
            name.decode("latin-1").lower(): [value.decode("latin-1") for value in values]
            for name, values in request.requestHeaders.getAllRawHeaders()
        }
        received = Received(
            request.method.decode(),
            request.uri.decode(),
            fields,
            request.content.read(),
            common_name(shown.to_cryptography()) if shown is not None else "",
        )
        answer = self.answers.get(received.path)
        if answer is None and received.path == HOME:
            self.probes.append(received)
            if not self.healthy:
                request.setResponseCode(500)
            return DISCOVERY
        if received.path == "/apis" or received.path.startswith("/openapi/"):
            self.documents.append(received)
            if answer is None:
                request.setResponseCode(404)
                return {}
            return answer(request)
        self.received.append(received)
        return {"path": received.path} if answer is None else answer(request)


class _Leaf(Resource):
    isLeaf = True

    def __init__(self, backend: Backend) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._backend = backend

    def render(self, request: Any) -> Any:
        answer = self._backend.take(request)
        if answer is NOT_DONE_YET:
            return answer
        request.setHeader(b"content-type", b"application/json")
        return json.dumps(answer).encode()


class AggregatedCase(KubeAPIMixin, TestCase):
    """
    Test case with a server and an aggregated backend behind a service.

    @ivar flags: The flags of the server.
    """

    timeout = 60
    flags: tuple[str, ...] = ()
    server: InProcessServer
    backend: Backend

    async def begin(
        self, *flags: str, available: bool = True, answers: dict[str, Any] | None = None, **spec: Any
    ) -> None:
        """
        Start both servers and create the APIService.

        @param answers: The handlers of the backend, by path.
        @param available: Wait until the APIService is available.
        @param spec: Further fields of the APIService's spec.
        """
        self.backend = Backend()
        self.backend.answers.update(answers or {})
        await self.backend.start()
        self.addCleanup(self.backend.kill)
        self.server = await self.startKubeAPI("--controllers=", *self.flags, *flags)
        self.divert()
        await self.make_service()
        await self.make_slice()
        await self.register(**spec)
        if available:
            await self.until_condition("Passed")

    @property
    def apis(self) -> Any:
        """Return the APIs of the server."""
        return self.server._service.server.apis

    @property
    def config(self) -> Any:
        """Return the configuration of the server."""
        return self.server._service.server.config

    def divert(self) -> None:
        """Route connections to the cluster IP of the service to the backend."""
        self.config.outgoing.address_overrides[(ADDRESS, 443)] = ("127.0.0.1", self.backend.port)

    async def make_service(self, **spec: Any) -> None:
        """Create the service that the APIService names."""
        ports = [{"name": "https", "port": 443, "targetPort": 8443}]
        service = {"metadata": {"name": "far"}, "spec": {"clusterIP": ADDRESS, "ports": ports, **spec}}
        await self.done("POST", "/api/v1/namespaces/default/services", service)

    async def make_slice(self, ready: bool = True, port: str = "https", name: str = "far-1") -> None:
        """Create the EndpointSlice of the service."""
        await self.done(
            "POST",
            "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
            {
                "metadata": {"name": name, "labels": {"kubernetes.io/service-name": "far"}},
                "addressType": "IPv4",
                "endpoints": [{"addresses": ["10.1.2.3"], "conditions": {"ready": ready}}],
                "ports": [{"name": port, "port": 8443, "protocol": "TCP"}],
            },
        )

    async def register(self, **spec: Any) -> None:
        """Create an APIService for the backend."""
        import base64

        whole = {
            "group": GROUP,
            "version": "v1",
            "groupPriorityMinimum": 100,
            "versionPriority": 10,
            "service": {"namespace": "default", "name": "far"},
            **spec,
        }
        if "insecureSkipTLSVerify" not in whole:
            whole.setdefault("caBundle", base64.b64encode(self.backend.ca).decode())
        await self.done("POST", SERVICES, {"metadata": {"name": NAME}, "spec": whole})

    async def ask(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, bytes, dict[str, str]]:
        """Send a request as the admin; return the response, with its header fields by name in lower case."""
        return await deferToThread(self._ask, method, path, body, headers or {})

    def _ask(self, method: str, path: str, body: Any, headers: dict[str, str]) -> tuple[int, bytes, dict[str, str]]:
        import http.client
        import ssl as standard

        connection = self.server.connection
        parts = urlsplit(connection.url)
        context = standard.create_default_context(cadata=connection.ca)
        link = http.client.HTTPSConnection(parts.hostname or "", parts.port, context=context, timeout=30)
        fields = {"Authorization": f"Bearer {connection.token}", **headers}
        content = body
        if body is not None and not isinstance(body, bytes):
            content = json.dumps(body).encode()
            fields.setdefault("Content-Type", "application/json")
        try:
            link.request(method, path, content, fields)
            response = link.getresponse()
            return response.status, response.read(), {name.lower(): value for name, value in response.getheaders()}
        finally:
            link.close()

    async def done(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """Send a request that must succeed; return the decoded body."""
        code, answer, _ = await self.ask(method, path, body, headers)
        self.assertIn(code, (200, 201), answer)
        return json.loads(answer)

    async def patch_object(self, path: str, patch: Any) -> Any:
        """Change an object by a merge patch."""
        return await self.done("PATCH", path, patch, **{"Content-Type": "application/merge-patch+json"})

    async def condition(self, name: str = NAME) -> Any:
        """Return the Available condition of an APIService; C{{}} while there is none."""
        code, answer, _ = await self.ask("GET", f"{SERVICES}/{name}")
        found = json.loads(answer).get("status") if code == 200 else None
        return next(iter((found or {}).get("conditions") or [{}]))

    async def until(self, holds: Callable[[], Any]) -> None:
        """Wait until a condition is true."""
        while True:
            result = holds()
            if isinstance(result, Deferred) or hasattr(result, "__await__"):
                result = await result
            if result:
                return
            await deferLater(reactor, 0.01)

    async def until_condition(self, reason: str) -> Any:
        """Wait until the Available condition has a reason; return the condition."""
        found: Any = {}

        async def so() -> bool:
            nonlocal found
            found = await self.condition()
            return bool(found.get("reason") == reason)

        await self.until(so)
        # What is in the store is known to those who answer.
        return found
