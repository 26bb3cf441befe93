"""Base of tests with a server on the reactor of the tests."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from twisted.internet import reactor as the_reactor
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import TCP4ClientEndpoint, connectProtocol, wrapClientTLS
from twisted.internet.protocol import Protocol
from twisted.internet.ssl import Certificate, PrivateCertificate, optionsForClientTLS, trustRootFromCertificates
from twisted.trial.unittest import TestCase

from kubetwist.cli.kubeapi import Options
from kubetwist.http.request import KubeRequest
from kubetwist.server.credentials.certificates import CertKeyPair
from kubetwist.server.errors import StartError
from kubetwist.server.service import KubeAPIService
from tests.http.harness import Answer, parse_answers
from tests.resources.apps import app_of

reactor: Any = the_reactor


class RawConnection(Protocol):
    """A raw connection to a server."""

    def __init__(self) -> None:
        self.received = b""
        self.ended: Deferred[None] = Deferred()
        self._waiting: list[tuple[Callable[[bytes], bool], Deferred[bytes]]] = []

    def dataReceived(self, data: bytes) -> None:
        """Collect data, and call the waiters whose condition is met."""
        self.received += data
        for waiter in list(self._waiting):
            if waiter[0](self.received):
                self._waiting.remove(waiter)
                waiter[1].callback(self.received)

    def connectionLost(self, reason: Any = None) -> None:
        """Record the loss."""
        self.ended.callback(None)

    def until(self, enough: Callable[[bytes], bool]) -> Deferred[bytes]:
        """Return a Deferred that fires with all received data when a condition is met."""
        found: Deferred[bytes] = Deferred()
        if enough(self.received):
            found.callback(self.received)
        else:
            self._waiting.append((enough, found))
        return found


def _policy(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy", "spec": spec}


#: Authenticated users may do everything; all users may read the health checks.
POLICIES = (
    _policy(group="system:authenticated", namespace="*", resource="*", apiGroup="*"),
    _policy(group="system:authenticated", nonResourcePath="*"),
    *(
        _policy(group="system:unauthenticated", readonly=True, nonResourcePath=path)
        for path in ("/healthz", "/livez", "/readyz", "/version", "/version/")
    ),
)


class ServerCase(TestCase):
    """Base of tests with a server whose C{/api} is answered by C{handle}."""

    timeout = 20

    def setUp(self) -> None:
        """Create a folder."""
        self.folder = Path(tempfile.mkdtemp(dir=os.getcwd()))
        self.waiting: list[KubeRequest] = []
        self.seen: dict[bytes, list[bytes]] = {}
        self.calls: list[str] = []
        self.service: Any = None

    def handle(self, request: KubeRequest) -> None:
        """Answer with the user, wait, or stream, by the path."""
        if request.path.endswith(b"/wait"):
            self.waiting.append(request)
        elif request.path.endswith(b"/watch"):
            request.write(b"event\n")
            request.register_long_running(lambda: (request.write(b"end\n"), request.finish()))
        else:
            assert request.user is not None
            groups = ",".join(request.user.groups)
            self.seen = dict(request.fields)
            request.respond(200, f"{request.user.name} {groups}".encode(), b"text/plain")

    def install(self, config: Any, aggregator: Any, kube: Any, extensions: Any) -> None:
        """Install one API and one hook of each kind."""
        self.config = config
        kube.mux.handle_prefix("/api", app_of(self.handle))
        kube.add_pre_listen_hook("cache", lambda: self.calls.append("cache"))
        kube.add_post_start_hook("mine", lambda: self.calls.append("hook"))
        kube.add_pre_shutdown_hook("mine", lambda: self.calls.append("pre-shutdown"))
        kube.register_destroy_func("mine", lambda: self.calls.append("end"))

    def make(self, *flags: str) -> Any:
        """Return a server with some flags, not started."""
        options = Options()
        if not any(flag.startswith("--authorization-mode") for flag in flags):
            # There are no stores here, so there are no roles.
            policies = Path(f"{self.folder}.policies")
            policies.write_text("\n".join(map(json.dumps, POLICIES)))
            flags = ("--authorization-mode=ABAC", f"--authorization-policy-file={policies}", *flags)
        options.parseOptions([f"--data-dir={self.folder}/data", "--secure-port=0", "--storage-backend=memory", *flags])
        return KubeAPIService(options, reactor, self.install)

    async def start(self, *flags: str) -> Any:
        """Start a server; it stops at the end of the test."""
        service = self.service = self.make(*flags)
        self.addCleanup(service.stopService)
        service.startService()
        await service.ready
        return service.server

    async def refused(self, *flags: str) -> str:
        """Return the error of a failing start."""
        service = self.make(*flags)
        service.startService()
        try:
            await service.ready
        except StartError as error:
            self.assertNotIn("\n", str(error))
            return str(error)
        finally:
            await service.stopService()
        self.fail("it started")

    @property
    def pki(self) -> Path:
        """Return the folder of keys."""
        return self.folder / "data" / "pki"

    @property
    def admin(self) -> CertKeyPair:
        """Return the client certificate of the administrator."""
        return CertKeyPair((self.pki / "admin.crt").read_bytes(), (self.pki / "admin.key").read_bytes())

    async def connect(self, certificate: CertKeyPair | None = None) -> RawConnection:
        """Open a TLS connection that trusts the server's authority."""
        port = int(self.service.server.url.rpartition(":")[2])
        authority = Certificate.loadPEM((self.pki / "ca.crt").read_bytes())
        client_certificate = (
            None if certificate is None else PrivateCertificate.loadPEM(certificate.key + certificate.certificate)
        )
        options = optionsForClientTLS("localhost", trustRootFromCertificates([authority]), client_certificate)
        endpoint = wrapClientTLS(options, TCP4ClientEndpoint(reactor, "127.0.0.1", port))
        connection: RawConnection = await connectProtocol(endpoint, RawConnection())

        def close() -> Deferred[None]:
            if connection.transport is not None and connection.transport.connected:
                connection.transport.abortConnection()
            return connection.ended

        self.addCleanup(close)
        return connection

    async def ask(self, path: str, certificate: CertKeyPair | None = None, **headers: str) -> Answer:
        """Send a request on a new connection."""
        connection = await self.connect(certificate)
        return await self.ask_on(connection, path, **headers)

    async def ask_on(self, connection: RawConnection, path: str, **headers: str) -> Answer:
        """Send a request on an open connection."""
        fields = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        connection.received = b""
        connection.transport.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n{fields}\r\n".encode())
        (answer,) = parse_answers(await connection.until(is_whole))
        return answer


def is_whole(data: bytes) -> bool:
    """Return whether the response is complete."""
    head, separator, body = data.partition(b"\r\n\r\n")
    if not separator:
        return False
    length = head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]
    return body.endswith(b"0\r\n\r\n") if not length else len(body) >= int(length)
