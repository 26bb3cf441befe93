"""Tests of L{kubetwist.client.dialing}."""

from __future__ import annotations

from ipaddress import ip_network
from pathlib import Path
from typing import Any

from twisted.internet import reactor
from twisted.internet.address import IPv4Address
from twisted.internet.defer import CancelledError
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.testing import MemoryReactorClock

from kubetwist.client import dialing
from kubetwist.client.dialing import (
    SSRFCheckedEndpoint,
    is_denied,
    is_internal_address,
    is_local,
)
from kubetwist.client.errors import (
    Unreachable,
)
from kubetwist.client.httpclient import WebhookClient
from kubetwist.client.restconfig import RESTConfig
from tests.client.clientcase import ClientCase


class _Resolver:
    def __init__(self, addresses: list[str], slow: bool = False) -> None:
        self._addresses = addresses
        self._slow = slow
        self._receiver: Any = None
        self.addresses: list[str] = []

    def resolveHostName(self, receiver: Any, name: str, *others: Any) -> Any:
        self.addresses.append(name)
        self._receiver = receiver
        receiver.resolutionBegan(self)
        if not self._slow:
            self.complete()
        return self

    def complete(self) -> None:
        for address in self._addresses:
            self._receiver.addressResolved(IPv4Address("TCP", address, 0))
        self._receiver.resolutionComplete()

    def cancel(self) -> None:
        # As Twisted's own.
        raise NotImplementedError


class _Reactor:
    """The global reactor with another name resolver."""

    def __init__(self, resolver: _Resolver) -> None:
        self.nameResolver = resolver

    def __getattr__(self, name: str) -> Any:
        return getattr(reactor, name)


class DialingTests(ClientCase):
    """Addresses that clients connect to."""

    async def test_addresses_are_checked(self) -> None:
        """
        CVE-2020-8562, CVE-2022-3294: loopback and link-local addresses are refused for targets that API objects name.
        """
        server = await self.serve(lambda call: {})
        for host in ("127.0.0.1", "localhost"):
            error = await self.refusal(
                self.client(server, resolve_address=lambda host=host: (host, server.port), deny_internal=True)
            )
            self.assertRegex(error.reason, r"^dial tcp (127\.0\.0\.1|\[::1\]):\d+: address not allowed$")
        self.assertEqual(server.calls, [])

    def test_forbidden(self) -> None:
        """A forbidden address is recognized in every notation."""
        for address in (
            "127.0.0.1", "127.9.9.9", "0.0.0.0", "169.254.169.254", "224.0.0.1", "255.255.255.255", "::1", "::",
            "fe80::1", "fe80::1%eth0", "ff02::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1",
            "2002:7f00:1::", "fd00:ec2::254", "100.100.100.200", "192.0.0.192", "192.0.0.1", "::ffff:192.0.0.192",
        ):  # fmt: skip
            self.assertTrue(is_internal_address(address), address)
        for address in ("10.0.0.1", "192.168.1.1", "8.8.8.8", "fd00::1", "2001:4860::8888", "::ffff:10.0.0.1"):
            self.assertFalse(is_internal_address(address), address)

    def test_own_interfaces(self) -> None:
        """Addresses of this machine's interfaces count as loopback addresses if configured, and can be allowed."""
        self.assertTrue(is_local("127.0.0.1"))
        self.assertFalse(is_local("192.0.2.1"))
        addresses: list[str] = []
        self.patch(dialing, "is_local", lambda address: addresses.append(address) or address in ("10.1.2.3", "fd00::7"))
        for address in ("10.1.2.3", "::ffff:10.1.2.3", "64:ff9b::a01:203", "fd00::7"):
            self.assertTrue(is_internal_address(address, interfaces_are_loopback=True), address)
            self.assertFalse(is_internal_address(address, interfaces_are_loopback=True, allow_loopback=True), address)
            self.assertFalse(is_internal_address(address), address)
        self.assertFalse(is_internal_address("10.1.2.4", interfaces_are_loopback=True))
        self.assertEqual(addresses, ["10.1.2.3"] * 3 + ["fd00::7", "10.1.2.4"])

    def test_own_interfaces_are_not_called(self) -> None:
        """No connection is opened to an address of this machine's interfaces."""
        self.patch(dialing, "is_local", lambda address: True)
        memory = MemoryReactorClock()
        for interfaces in (True, False):
            endpoint = SSRFCheckedEndpoint(
                memory, lambda: ("10.1.2.3", 443), deny_internal=True, interfaces_are_loopback=interfaces
            )
            connecting = endpoint.connect(Factory.forProtocol(Protocol))
            if interfaces:
                error = self.failureResultOf(connecting, Unreachable).value
                self.assertEqual(str(error), "dial tcp 10.1.2.3:443: address not allowed")
            else:
                connecting.addErrback(lambda failure: failure.trap(CancelledError))
        self.assertEqual(len(memory.tcpClients), 1)

    def test_this_machine(self) -> None:
        """Loopback addresses can be allowed without link-local addresses and metadata services."""
        for address in ("127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"):
            self.assertFalse(is_internal_address(address, allow_loopback=True), address)
        for address in ("0.0.0.0", "::", "169.254.169.254", "fe80::1", "100.100.100.200", "224.0.0.1"):
            self.assertTrue(is_internal_address(address, allow_loopback=True), address)

    async def test_denied(self) -> None:
        """Addresses in denied networks are refused in every notation; all other addresses are allowed."""
        server = await self.serve(lambda call: {})
        networks = (ip_network("127.0.0.0/8"), ip_network("::1/128"))
        for host in ("127.0.0.1", "localhost", "::ffff:127.0.0.1"):
            error = await self.refusal(
                self.client(server, resolve_address=lambda host=host: (host, server.port), denied_networks=networks)
            )
            self.assertRegex(error.reason, r"^dial tcp .*: address not allowed$")
        self.assertEqual(server.calls, [])
        await self.client(server, denied_networks=(ip_network("169.254.0.0/16"),)).post(b"{}", timeout=10)
        self.assertEqual(len(server.calls), 1)

    def test_notations(self) -> None:
        """A denied network contains every notation of its addresses."""
        link = [ip_network("169.254.0.0/16")]
        for address in ("169.254.169.254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::"):
            self.assertTrue(is_denied(address, link), address)
        for address in ("169.253.0.1", "fe80::1", "::1"):
            self.assertFalse(is_denied(address, link), address)
        self.assertTrue(is_denied("fe80::1%eth0", [ip_network("fe80::/10")]))

    def test_connect_timeout(self) -> None:
        """The connection timeout is the configured one."""
        memory = MemoryReactorClock()
        endpoint = SSRFCheckedEndpoint(memory, lambda: ("10.1.2.3", 443), dial_timeout=5.0)
        endpoint.connect(Factory.forProtocol(Protocol)).addErrback(lambda failure: failure.trap(CancelledError))
        self.assertEqual([(client[:2], client[3]) for client in memory.tcpClients], [(("10.1.2.3", 443), 5.0)])

    def test_lookup_timeout(self) -> None:
        """A name lookup fails after the configured timeout."""
        memory = MemoryReactorClock()
        memory.nameResolver = _Resolver([], slow=True)
        connecting = SSRFCheckedEndpoint(memory, lambda: ("h", 443), dial_timeout=5.0).connect(
            Factory.forProtocol(Protocol)
        )
        memory.advance(4.9)
        self.assertNoResult(connecting)
        memory.advance(0.2)
        error = self.failureResultOf(connecting, Unreachable).value
        self.assertEqual(str(error), "dial tcp: lookup h: i/o timeout")

    async def test_names_are_resolved_once(self) -> None:
        """The client connects to the address that was checked."""
        server = await self.serve(lambda call: {}, names=("hook.example",))
        resolver = _Resolver(["10.1.2.3"])
        watched = _Reactor(resolver)
        client = WebhookClient(
            watched,
            RESTConfig(url=f"https://hook.example:{server.port}/", ca=server.ca, deny_internal=True),
            address_overrides={("10.1.2.3", server.port): ("127.0.0.1", server.port)},
        )
        self.addCleanup(client.close)
        answer = await client.post(b"{}", timeout=10)
        self.assertEqual((answer.code, resolver.addresses), (200, ["hook.example"]))

    async def test_rebinding(self) -> None:
        """A name that resolves to a forbidden address is refused."""
        client = WebhookClient(
            _Reactor(_Resolver(["169.254.169.254"])), RESTConfig(url="http://hook.example/", deny_internal=True)
        )
        self.addCleanup(client.close)
        error = await self.refusal(client)
        self.assertEqual(error.reason, "dial tcp 169.254.169.254:80: address not allowed")

    async def test_no_such_host(self) -> None:
        """The error for an unknown host contains the name server."""
        resolvers = Path(self.mktemp())
        self.patch(dialing, "RESOLVERS", resolvers)
        self.assertEqual(dialing.name_server(), "127.0.0.1:53")
        resolvers.write_text("# of this machine\nsearch example\nnameserver 10.9.8.7\nnameserver 10.9.8.6\n")
        client = WebhookClient(_Reactor(_Resolver([])), RESTConfig(url="http://hook.example/"))
        self.addCleanup(client.close)
        error = await self.refusal(client)
        self.assertEqual(error.reason, "dial tcp: lookup hook.example on 10.9.8.7:53: no such host")

    async def test_slow_names(self) -> None:
        """A name that is not resolved before the deadline fails the call; the late result is ignored."""
        resolver = _Resolver(["10.1.2.3"], slow=True)
        client = WebhookClient(_Reactor(resolver), RESTConfig(url="http://hook.example/"))
        self.addCleanup(client.close)
        error = await self.refusal(client, timeout=0.2)
        self.assertTrue(error.timed_out)
        resolver.complete()

    async def test_next_address(self) -> None:
        """If one address refuses the connection, the next one is tried; the error of the first is reported."""
        server = await self.serve(lambda call: {}, tls=False)
        settings = RESTConfig(url=f"http://hook.example:{server.port}/")
        address_overrides = {
            ("10.0.0.1", server.port): ("127.0.0.1", 1),
            ("10.0.0.2", server.port): ("127.0.0.1", server.port),
        }
        client = WebhookClient(
            _Reactor(_Resolver(["10.0.0.1", "10.0.0.2"])), settings, address_overrides=address_overrides
        )
        self.addCleanup(client.close)
        self.assertEqual((await client.post(b"", timeout=10)).code, 200)

    async def test_moved(self) -> None:
        """After a service has moved, the new address is called; after its deletion the old connection is not used."""
        one = await self.serve(lambda call: {"n": 1}, names=("hook",))
        target: list[Any] = [("127.0.0.1", one.port)]

        def dial() -> tuple[str, int]:
            if target[0] is None:
                raise Unreachable('service "hook" not found')
            return target[0]  # type: ignore[no-any-return]

        client = self.client_of(RESTConfig(url="https://hook/", insecure=True, resolve_address=dial))
        first = await client.post(b"", timeout=10)
        two = await self.serve(lambda call: {"n": 2}, names=("hook",))
        target[0] = ("127.0.0.1", two.port)
        second = await client.post(b"", timeout=10)
        self.assertEqual((first.body, second.body), (b'{"n": 1}', b'{"n": 2}'))
        target[0] = None
        error = await self.refusal(client)
        self.assertEqual(str(error), 'Post "https://hook/?timeout=10s": service "hook" not found')
