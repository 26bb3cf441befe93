"""Tests of L{kubetwist.filters.goaway}, and of GOAWAY after requests without credentials."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import UserInfo
from kubetwist.filters.goaway import with_probabilistic_goaway
from tests.http.harness import Client, Everyone, echo, filtered_site, make_site
from tests.http.http2.peer import Peer


class ChanceTests(SynchronousTestCase):
    """L{with_probabilistic_goaway}."""

    def test_chance(self) -> None:
        """GOAWAY is sent with the response to the drawn requests, which closes the connection."""
        draws = iter((0.5, 0.02, 0.019))
        site = make_site(with_probabilistic_goaway(echo, 0.02, lambda: next(draws)))
        peer = Peer(site)
        self.assertEqual([(peer.request().code, peer.goaway[:]) for _ in range(3)], [(200, []), (200, []), (200, [0])])
        self.assertTrue(peer.transport.disconnecting)

    def test_http1(self) -> None:
        """Connections of HTTP/1.1 stay open, as in the reference."""
        client = Client(make_site(with_probabilistic_goaway(echo, 1.0, lambda: 0.0)))
        self.assertEqual(client.request("GET", "/a").code, 200)
        self.assertFalse(client.transport.disconnecting)


class UnauthenticatedTests(SynchronousTestCase):
    """Requests without credentials."""

    def test_refused(self) -> None:
        """A response 401 ends a connection of HTTP/2."""
        everyone = Everyone()
        everyone.user = None  # type: ignore[assignment]
        peer = Peer(filtered_site(authenticator=everyone))
        self.assertEqual((peer.request().code, peer.goaway), (401, [0]))

    def test_anonymous(self) -> None:
        """A request of an anonymous user does as well, a request of an authenticated user does not."""
        anonymous = Everyone(UserInfo("system:anonymous", groups=("system:unauthenticated",)))
        peer = Peer(filtered_site(authenticator=anonymous))
        self.assertEqual((peer.request(path="/healthz").code, peer.goaway), (200, [0]))
        peer = Peer(filtered_site())
        self.assertEqual((peer.request(path="/healthz").code, peer.goaway), (200, []))
