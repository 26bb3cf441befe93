"""Tests of L{kubetwist.http.connection.connectionlimit}."""

from __future__ import annotations

import resource

from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.error import ConnectionDone
from twisted.internet.testing import StringTransport
from twisted.logger import LogEvent, globalLogPublisher
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.http.connection.connectionlimit import (
    ConnectionLimiter,
    client_network,
)
from kubetwist.http.http1.channel import KubeChannel
from kubetwist.http.site import KubeSite

from ..harness import make_site

GET = b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n"


def connect(site: KubeSite, host: str) -> tuple[KubeChannel, StringTransport]:
    """Return a connection from an address."""
    address = (IPv6Address if ":" in host else IPv4Address)("TCP", host, 40000)
    transport = StringTransport(peerAddress=address)
    channel = site.buildProtocol(address)
    channel.makeConnection(transport)
    return channel, transport


class ConnectionLimiterTests(SynchronousTestCase):
    """L{ConnectionLimiter} in a site."""

    def setUp(self) -> None:
        """Create a site with a limit of two connections per network."""
        self.site = make_site()
        self.site.connections.connection_limiter = ConnectionLimiter(2)

    def served(self, host: str) -> bool:
        """Return whether a new connection from an address is served."""
        channel, transport = connect(self.site, host)
        channel.dataReceived(GET)
        if transport.disconnected:
            # As a transport does it.
            channel.connectionLost(Failure(ConnectionDone()))
        return b"200 OK" in transport.value()

    def test_too_many(self) -> None:
        """Connections above the limit of an address are aborted; other addresses are not affected."""
        self.assertEqual([self.served("10.0.0.1") for _ in range(5)], [True, True, False, False, False])
        self.assertTrue(self.served("10.0.0.2"))

    def test_closed(self) -> None:
        """A closed connection makes room for another one."""
        channel, _ = connect(self.site, "10.0.0.1")
        self.assertEqual([self.served("10.0.0.1"), self.served("10.0.0.1")], [True, False])
        channel.connectionLost(Failure(ConnectionDone()))
        self.assertEqual([self.served("10.0.0.1"), self.served("10.0.0.1")], [True, False])

    def test_networks(self) -> None:
        """Addresses of one IPv6 network share a limit."""
        hosts = ("2001:db8::1", "2001:db8::2", "2001:db8::ffff:3", "2001:db8:0:1::1")
        self.assertEqual([self.served(host) for host in hosts], [True, True, False, True])

    def test_notations(self) -> None:
        """An address counts as one in every notation."""
        self.assertEqual(client_network("::ffff:10.0.0.1"), client_network("10.0.0.1"))
        self.assertEqual(client_network("fe80::1%eth0"), client_network("fe80::2%eth0"))
        self.assertNotEqual(client_network("2001:db8::1"), client_network("2001:db9::1"))
        self.assertEqual(client_network(""), "")

    def test_logged_once(self) -> None:
        """Refusals are logged once until all connections of the network are closed."""
        lines: list[str] = []

        def seen(event: LogEvent) -> None:
            if isinstance(event.get("log_source"), ConnectionLimiter):
                lines.append(event["network"])

        globalLogPublisher.addObserver(seen)
        self.addCleanup(globalLogPublisher.removeObserver, seen)
        first, second = (connect(self.site, "10.0.0.1")[0] for _ in range(2))
        for _ in range(3):
            self.assertFalse(self.served("10.0.0.1"))
        self.assertEqual(lines, ["10.0.0.1"])
        for channel in (first, second):
            channel.connectionLost(Failure(ConnectionDone()))
        for _ in range(3):
            self.served("10.0.0.1")
        self.assertEqual(lines, ["10.0.0.1", "10.0.0.1"])

    def test_default(self) -> None:
        """The default limit is below the limit of open files."""
        most = ConnectionLimiter().limit
        self.assertTrue(0 < most < resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        self.patch(resource, "getrlimit", lambda limit_kind: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        self.assertGreater(ConnectionLimiter().limit, 1_000_000)
