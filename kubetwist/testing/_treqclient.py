"""A treq client of one server: it authenticates there, and trusts the authority of the server only."""

from __future__ import annotations

from typing import Any

from treq.client import HTTPClient
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IOpenSSLClientConnectionCreator
from twisted.internet.ssl import Certificate, PrivateCertificate, optionsForClientTLS, trustRootFromCertificates
from twisted.web.client import Agent, BrowserLikePolicyForHTTPS, HTTPConnectionPool
from twisted.web.http_headers import Headers
from twisted.web.iweb import IAgent, IBodyProducer, IPolicyForHTTPS, IResponse
from zope.interface import implementer


@implementer(IAgent)
class _TokenAgent:
    """
    Agent that adds the token to requests to the server.

    @ivar url: The server, to which the token is sent; requests to other servers, after a redirect, have no token.
    """

    def __init__(self, agent: IAgent, url: str, token: str) -> None:
        self.agent = agent
        self.url = url
        self.token = token

    def request(
        self, method: bytes, uri: bytes, headers: Headers | None = None, bodyProducer: IBodyProducer | None = None
    ) -> Deferred[IResponse]:
        """Send a request, with the token unless the headers have C{Authorization}."""
        headers = Headers() if headers is None else headers.copy()
        if self.token and uri.startswith(f"{self.url}/".encode()) and not headers.hasHeader(b"authorization"):
            headers.setRawHeaders(b"authorization", [f"Bearer {self.token}".encode()])
        response: Deferred[IResponse] = self.agent.request(method, uri, headers, bodyProducer)
        return response


@implementer(IPolicyForHTTPS)
class _ClientCertificatePolicy:
    """
    Policy that presents a client certificate to each server.

    That is safe: a certificate is public, and the proof that a client has its key is valid for one connection.
    """

    def __init__(self, trust_root: Any, certificate: PrivateCertificate) -> None:
        self.trust_root = trust_root
        self.certificate = certificate

    def creatorForNetloc(self, hostname: bytes, port: int) -> IOpenSSLClientConnectionCreator:
        """@see: L{IPolicyForHTTPS.creatorForNetloc}."""
        creator: IOpenSSLClientConnectionCreator = optionsForClientTLS(
            hostname.decode("ascii"), trustRoot=self.trust_root, clientCertificate=self.certificate
        )
        return creator


class TreqClient(HTTPClient):
    """An C{HTTPClient} whose URLs may be paths of the server: C{/api/v1/pods}."""

    def __init__(self, agent: IAgent, url: str) -> None:
        super().__init__(agent)
        self._url = url

    def request(self, method: str, url: Any, **more: Any) -> Any:
        """See C{treq.request}."""
        if isinstance(url, str) and url.startswith("/"):
            url = self._url + url
        return super().request(method, url, **more)


def treq_client(url: str, token: str, ca: str, reactor: Any = None, certificate: str = "") -> TreqClient:
    """
    Return a client that closes each connection after its response, so that nothing remains to be closed.

    @param url: C{https://<host>:<port>}, without a trailing slash.
    @param token: A bearer token, or C{""} for none.
    @param ca: The certificate of the server's authority, PEM.
    @param reactor: L{None} for the global one.
    @param certificate: A client certificate and its key, PEM, or C{""} for none.
    """
    if reactor is None:
        from twisted.internet import reactor
    trust_root = trustRootFromCertificates([Certificate.loadPEM(ca.encode())])
    policy: IPolicyForHTTPS = BrowserLikePolicyForHTTPS(trust_root)
    if certificate:
        policy = _ClientCertificatePolicy(trust_root, PrivateCertificate.loadPEM(certificate.encode()))
    pool = HTTPConnectionPool(reactor, persistent=False)
    return TreqClient(_TokenAgent(Agent(reactor, policy, pool=pool), url, token), url)
