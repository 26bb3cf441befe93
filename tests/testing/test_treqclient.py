"""Tests for L{kubetwist.testing._treqclient}."""

from __future__ import annotations

from typing import Any

import treq
from twisted.internet.defer import Deferred, succeed
from twisted.trial.unittest import SynchronousTestCase, TestCase
from twisted.web.client import ResponseFailed
from twisted.web.http_headers import Headers
from twisted.web.iweb import IAgent
from zope.interface import implementer

from kubetwist.testing._treqclient import _TokenAgent
from kubetwist.testing.trial import KubeAPIMixin


@implementer(IAgent)
class RecordingAgent:
    """Agent that records the headers of requests."""

    def __init__(self) -> None:
        self.headers: list[Headers] = []

    def request(self, method: bytes, uri: bytes, headers: Any = None, bodyProducer: Any = None) -> Deferred[Any]:
        """Record a request."""
        self.headers.append(headers)
        return succeed(None)


class TokenTests(SynchronousTestCase):
    """The token in requests."""

    def sent(self, uri: bytes, headers: Headers | None = None, token: str = "secret") -> Any:
        """Return the values of C{Authorization} in a request to C{uri}."""
        recorder = RecordingAgent()
        agent = _TokenAgent(recorder, "https://127.0.0.1:1", token)
        self.successResultOf(agent.request(b"GET", uri, headers))
        return recorder.headers[0].getRawHeaders(b"authorization")

    def test_server(self) -> None:
        """Requests to the server have the token."""
        self.assertEqual([b"Bearer secret"], self.sent(b"https://127.0.0.1:1/api"))

    def test_other_server(self) -> None:
        """Requests to other servers have no token."""
        self.assertIsNone(self.sent(b"https://127.0.0.1:12/api"))
        self.assertIsNone(self.sent(b"https://example.com/api"))

    def test_credentials_of_the_request(self) -> None:
        """The Authorization header of a request is kept, and the caller's headers are not changed."""
        headers = Headers({b"authorization": [b"Bearer other"]})
        self.assertEqual([b"Bearer other"], self.sent(b"https://127.0.0.1:1/api", headers))
        headers = Headers()
        self.sent(b"https://127.0.0.1:1/api", headers)
        self.assertEqual(Headers(), headers)

    def test_no_token(self) -> None:
        """Without a token, requests have no Authorization header."""
        self.assertIsNone(self.sent(b"https://127.0.0.1:1/api", token=""))


class TreqClientTests(KubeAPIMixin, TestCase):
    """L{kubetwist.testing.Connection.treq}."""

    async def test_paths(self) -> None:
        """URLs are paths of the server, or complete."""
        server = await self.startKubeAPI("--controllers=")
        client = server.connection.treq()
        for url in ("/api/v1/namespaces", f"{server.url}/api/v1/namespaces"):
            response = await client.get(url)
            self.assertEqual(200, response.code)
            self.assertEqual("NamespaceList", (await treq.json_content(response))["kind"])

    async def test_authority(self) -> None:
        """A client trusts the authority of its server only."""
        first, second = await self.startKubeAPI("--controllers="), await self.startKubeAPI("--controllers=")
        with self.assertRaises(ResponseFailed):
            await first.connection.treq().get(f"{second.url}/readyz")
