"""A webhook server for tests."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from inspect import isawaitable
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from attrs import field, frozen
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding

from twisted.internet import ssl
from twisted.internet.defer import Deferred
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.ssl import CertificateOptions
from twisted.protocols.policies import WrappingFactory
from twisted.protocols.tls import TLSMemoryBIOFactory
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Request, Site

from ..api.jsontypes import JSONObject, JSONValue
from ..authentication.certificates import common_name
from ..interfaces import IServerReactor
from ..server.credentials.certificates import CertConfig, CertificateAuthority, CertKeyPair

#: A response that never arrives.
NEVER: Final = object()
#: Closes the connection instead of a response.
HANG_UP: Final = object()


@frozen
class Call:
    """One received call."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    #: The common name of the client's certificate; C{""} without one.
    client: str = ""

    def json(self) -> JSONValue:
        """Return the body, decoded from JSON."""
        return json.loads(self.body)


@frozen
class Reply:
    """The response to a call."""

    code: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(factory=dict)


class WebhookServer:
    """
    A server on a free port of this machine, over TLS with a new authority.

    @ivar ca: The authority, PEM.
    @ivar calls: The received calls, in order.
    """

    def __init__(
        self,
        reactor: IServerReactor,
        answer: Callable[[Call], Any],
        *,
        names: tuple[str, ...] = ("127.0.0.1", "localhost"),
        tls: bool = True,
        require_client: bool | CertificateAuthority = False,
        expired: bool = False,
    ) -> None:
        """
        @param answer: Returns for a L{Call} an object to send as JSON, a L{Reply}, L{NEVER} or L{HANG_UP}; or an
            awaitable of one.
        @param names: The names in its certificate.
        @param require_client: Whether clients must show a certificate of L{client_pair}, or of this authority.
        @param expired: Whether its certificate has expired.
        """
        self._reactor = reactor
        self._answer = answer
        self._authority = CertificateAuthority.make("webhook-ca")
        authority = require_client if isinstance(require_client, CertificateAuthority) else None
        self._clients = authority or CertificateAuthority.make("webhook-client-ca")
        self._names = names
        self._tls = tls
        self._require_client = require_client
        self._expired = expired
        self._port: Any = None
        self._site: Any = None
        self.ca = self._authority.pair.certificate
        self.calls: list[Call] = []

    @property
    def port(self) -> int:
        """Return the port."""
        return self._port.getHost().port  # type: ignore[no-any-return]

    @property
    def url(self) -> str:
        """Return the URL without a path."""
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    @property
    def connections(self) -> int:
        """Return the number of connections so far."""
        return self._site.made  # type: ignore[no-any-return]

    def client_pair(self, name: str) -> CertKeyPair:
        """Return a client certificate that this server accepts."""
        return self._clients.issue(CertConfig(name))

    async def start(self, port: int = 0) -> WebhookServer:
        """Start to listen."""
        site: Any = Site(_Leaf(self))
        site.noisy = False
        if self._tls:
            site = TLSMemoryBIOFactory(self._context(), False, site)
            site.noisy = False
        self._site = _Connections(site)
        self._port = self._reactor.listenTCP(port, self._site, interface="127.0.0.1")
        return self

    def _context(self) -> CertificateOptions:
        pair = self._authority.issue(CertConfig("webhook", names=self._names, server=True))
        if self._expired:
            pair = _expired(pair, self._authority)
        certificate = ssl.PrivateCertificate.loadPEM(pair.certificate + pair.key)
        if not self._require_client:
            options: CertificateOptions = certificate.options()
        else:
            options = certificate.options(ssl.Certificate.loadPEM(self._clients.pair.certificate))
        return options

    async def stop(self) -> None:
        """Close all connections, and stop listening. Idempotent."""
        port, self._port = self._port, None
        if port is None:
            return
        await port.stopListening()
        for connection in list(self._site.protocols):
            connection.transport.abortConnection()
        # The loss of aborted connections is reported in the next turn.
        for _ in range(2):
            iteration: Deferred[None] = Deferred()
            self._reactor.callLater(0, iteration.callback, None)
            await iteration

    def kubeconfig(self, folder: Path, path: str = "/", *, user: JSONObject | None = None, name: str = "") -> Path:
        """
        Write a kubeconfig for this server into a folder.

        @param folder: The folder.
        @param path: The path in the server's URL.
        @param user: The C{user} entry of the kubeconfig.
        @param name: The file name; a random one by default.
        @return: The path of the file.
        """
        cluster: JSONObject = {"server": self.url + path}
        if self._tls:
            cluster["certificate-authority-data"] = base64.b64encode(self.ca).decode()
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "webhook", "cluster": cluster}],
            "users": [{"name": "server", "user": dict(user or {})}],
            "contexts": [{"name": "only", "context": {"cluster": "webhook", "user": "server"}}],
            "current-context": "only",
        }
        file = folder / (name or f"webhook-{os.urandom(4).hex()}.kubeconfig")
        file.write_text(json.dumps(config), encoding="utf-8")
        return file


class _Connections(WrappingFactory):
    """Records open connections, and counts all."""

    noisy = False

    def __init__(self, site: Factory) -> None:
        super().__init__(site)  # type: ignore[no-untyped-call]
        self.made = 0

    def registerProtocol(self, p: Protocol) -> None:
        self.made += 1
        super().registerProtocol(p)  # type: ignore[no-untyped-call]


class _Leaf(Resource):
    isLeaf = True

    def __init__(self, server: WebhookServer) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # Twisted has no annotations here
        self._server = server

    def render(self, request: Request) -> int:
        """Answer asynchronously."""
        Deferred.fromCoroutine(self._render(request)).addErrback(lambda failure: request.processingFailed(failure))
        return NOT_DONE_YET

    async def _render(self, request: Request) -> None:
        assert request.content is not None and request.channel is not None, "the request has arrived"
        parts = urlsplit(request.uri.decode())
        certificate = getattr(request.channel.transport, "getPeerCertificate", lambda: None)()
        call = Call(
            request.method.decode(),
            parts.path,
            {name: values[-1] for name, values in parse_qs(parts.query, keep_blank_values=True).items()},
            {
                name.decode("latin-1").lower(): values[-1].decode("latin-1")
                for name, values in request.requestHeaders.getAllRawHeaders()
            },
            request.content.read(),
            common_name(certificate.to_cryptography()) if certificate is not None else "",
        )
        finished = request.notifyFinish()
        finished.addErrback(lambda _: None)
        self._server.calls.append(call)
        result = self._server._answer(call)
        if isawaitable(result) or isinstance(result, Deferred):
            result = await result
        if result is NEVER or request._disconnected:
            return
        if result is HANG_UP:
            transport: Any = request.channel.transport
            transport.abortConnection()
            return
        if not isinstance(result, Reply):
            result = Reply(200, json.dumps(result).encode(), {"Content-Type": "application/json"})
        request.setResponseCode(result.code)
        for name, value in result.headers.items():
            request.setHeader(name.encode(), value.encode())
        request.setHeader(b"Content-Length", b"%d" % len(result.body))
        request.write(result.body)
        request.finish()


def _expired(pair: CertKeyPair, authority: CertificateAuthority) -> CertKeyPair:
    """Return an expired copy of a valid certificate."""
    certificate, _ = pair.parsed()
    _, issuer = authority.pair.parsed()
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(certificate.subject)
        .issuer_name(certificate.issuer)
        .public_key(certificate.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=2))
        .not_valid_after(now - timedelta(days=1))
    )
    for extension in certificate.extensions:
        builder = builder.add_extension(extension.value, extension.critical)
    return CertKeyPair(builder.sign(issuer, hashes.SHA256()).public_bytes(Encoding.PEM), pair.key)
