"""A treq client of one server: it sends the token, and trusts the authority of the server only."""

from __future__ import annotations

from typing import Any

from treq.client import HTTPClient
from twisted.internet.defer import Deferred
from twisted.internet.ssl import Certificate, trustRootFromCertificates
from twisted.web.client import Agent, BrowserLikePolicyForHTTPS, HTTPConnectionPool
from twisted.web.http_headers import Headers
from twisted.web.iweb import IAgent, IBodyProducer, IResponse
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


def treq_client(url: str, token: str, ca: str, reactor: Any = None) -> TreqClient:
    """
    Return a client that closes each connection after its response, so that nothing remains to be closed.

    @param url: C{https://<host>:<port>}, without a trailing slash.
    @param token: A bearer token, or C{""} for none.
    @param ca: The certificate of the server's authority, PEM.
    @param reactor: L{None} for the global one.
    """
    if reactor is None:
        from twisted.internet import reactor
    policy = BrowserLikePolicyForHTTPS(trustRootFromCertificates([Certificate.loadPEM(ca.encode())]))
    pool = HTTPConnectionPool(reactor, persistent=False)
    return TreqClient(_TokenAgent(Agent(reactor, policy, pool=pool), url, token), url)
