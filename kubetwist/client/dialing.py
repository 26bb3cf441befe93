"""
Connections to other hosts: a name is resolved once, and the checked addresses are connected to.

Errors have the texts of Go's C{net} and C{crypto/tls}.
"""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final
from typing import Protocol as TypingProtocol

from OpenSSL import SSL

from twisted.internet import error as errors
from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.defer import TimeoutError as NamesTimeout
from twisted.internet.interfaces import (
    IAddress,
    IHostResolution,
    IProtocol,
    IProtocolFactory,
    IResolutionReceiver,
    IStreamClientEndpoint,
    ITransport,
)
from twisted.internet.threads import deferToThreadPool
from zope.interface import implementer

from ..interfaces import IServerReactor
from .errors import (
    AddressNotAllowed,
    NoSuchHost,
    Unreachable,
)
from .restconfig import Network

#: Minimum timeout in seconds for each of several addresses.
_MIN_ATTEMPT_TIMEOUT: Final = 2.0
CONNECT_TIMEOUT: Final = 30.0
#: Metadata services of clouds outside the link-local range.
_METADATA: Final = frozenset(map(ipaddress.ip_address, ("100.100.100.200", "fd00:ec2::254", "fd20:ce::254")))
#: Reserved for protocols of the IETF; some clouds have their metadata service there.
_PROTOCOLS: Final = ipaddress.ip_network("192.0.0.0/24")
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
_ALERTS: Final = {
    "unknown ca": "unknown certificate authority",
    "protocol version": "protocol version not supported",
    "certificate expired": "expired certificate",
    "certificate revoked": "revoked certificate",
}
_NOT_TLS_REASONS: Final = ("wrong version number", "packet length too long", "http request", "record layer failure")

#: The system's list of name servers, and the maximum bytes that are read of it.
RESOLVERS = Path("/etc/resolv.conf")
_RESOLVERS_LENGTH: Final = 65536

#: Replacements of checked addresses, by host and port, for tests.
AddressOverrides = Mapping[tuple[str, int], tuple[str, int]]


class Closable(TypingProtocol):
    """A client with connections."""

    def close(self) -> Deferred[None]:
        """Abort calls and connections; fires when all are closed."""


def is_internal_address(address: str, *, allow_loopback: bool = False, interfaces_are_loopback: bool = False) -> bool:
    """
    Return whether an address is forbidden as a target that an API object names.

    @param allow_loopback: Whether addresses of this machine are allowed.
    @param interfaces_are_loopback: Whether addresses of this machine's interfaces count as loopback addresses.
    """
    ip = _effective_address(address)
    if ip.is_loopback:
        return not allow_loopback
    if ip.is_link_local or ip.is_multicast or ip.is_unspecified or ip.is_reserved or ip in _METADATA:
        return True
    if ip.version == 4 and ip in _PROTOCOLS:
        return True
    return interfaces_are_loopback and not allow_loopback and is_local(str(ip))


def is_local(address: str) -> bool:
    """
    Return whether an address belongs to an interface of this machine.

    The system selects such an address as the source address of a connection to it. No packet is sent.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((address, 9))
            source: str = probe.getsockname()[0]
    except OSError:
        # There is no route to the address.
        return False
    return ipaddress.ip_address(source.partition("%")[0]) == ipaddress.ip_address(address)


def is_denied(address: str, networks: Iterable[Network]) -> bool:
    """Return whether an address is in one of C{networks}, in any notation."""
    ip = _effective_address(address)
    return any(ip in network for network in networks)


def _effective_address(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Return the address that packets are sent to: the IPv4 address that an IPv6 address embeds, or the address."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if ip.version == 4:
        return ip
    if ip in _NAT64:
        return ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip.ipv4_mapped or ip.sixtofour or ip


@implementer(IStreamClientEndpoint)
class SSRFCheckedEndpoint:
    """Endpoint that connects to the checked addresses of a host; it fails with L{Unreachable}."""

    def __init__(
        self,
        reactor: IServerReactor,
        target: Callable[[], tuple[str, int]],
        *,
        deny_internal: bool = False,
        allow_loopback: bool = False,
        interfaces_are_loopback: bool = False,
        denied_networks: Iterable[Network] = (),
        dial_timeout: float = CONNECT_TIMEOUT,
        address_overrides: AddressOverrides | None = None,
    ) -> None:
        """
        @param target: Returns host and port, for each connection.
        @param deny_internal: Whether addresses for which L{is_internal_address} is true are refused. C{allow_loopback}
            permits those of this machine.
        @param interfaces_are_loopback: Whether addresses of its interfaces count as loopback addresses.
        @param denied_networks: Further networks that are refused.
        @param dial_timeout: Connection timeout, in seconds.
        """
        self._reactor = reactor
        self._target = target
        self._deny_internal = deny_internal
        self._allow_loopback = allow_loopback
        self._interfaces_are_loopback = interfaces_are_loopback
        self._denied_networks = tuple(denied_networks)
        self._dial_timeout = dial_timeout
        self._address_overrides = {} if address_overrides is None else address_overrides

    def connect(self, protocolFactory: IProtocolFactory) -> Deferred[IProtocol]:
        """@see: L{IStreamClientEndpoint.connect}."""
        return Deferred.fromCoroutine(self._connect(protocolFactory))

    async def _connect(self, factory: IProtocolFactory) -> IProtocol:
        from twisted.internet.endpoints import TCP4ClientEndpoint, TCP6ClientEndpoint

        host, port = self._target()
        addresses = await self._addresses(host)
        first: Unreachable | None = None
        for address in addresses:
            forbidden = self._deny_internal and is_internal_address(
                address, allow_loopback=self._allow_loopback, interfaces_are_loopback=self._interfaces_are_loopback
            )
            if forbidden or is_denied(address, self._denied_networks):
                first = first or AddressNotAllowed(f"dial tcp {join_host_port(address, port)}: address not allowed")
                continue
            target, target_port = self._address_overrides.get((address, port), (address, port))
            make = TCP6ClientEndpoint if ":" in target else TCP4ClientEndpoint
            seconds = (
                self._dial_timeout
                if len(addresses) == 1
                else max(_MIN_ATTEMPT_TIMEOUT, self._dial_timeout / len(addresses))
            )
            endpoint: IStreamClientEndpoint = make(self._reactor, target, target_port, timeout=seconds)
            try:
                return await endpoint.connect(factory)
            except (CancelledError, errors.ConnectingCancelledError):
                raise CancelledError() from None
            except errors.ConnectError as error:
                first = first or Unreachable(f"dial tcp {join_host_port(address, port)}: {_connect_error_text(error)}")
        raise first or await self._no_such_host_error(host)

    async def _no_such_host_error(self, host: str) -> NoSuchHost:
        """Return the error for a name that does not exist; as in Go, it contains the name server."""
        server = await deferToThreadPool(self._reactor, self._reactor.getThreadPool(), name_server)
        return NoSuchHost(f"dial tcp: lookup {host} on {server}: no such host")

    async def _addresses(self, host: str) -> list[str]:
        try:
            ipaddress.ip_address(host)
        except ValueError:
            pass
        else:
            return [host]
        if not host:
            raise Unreachable("dial tcp: missing address")
        try:
            receiver = _Addresses()
            self._reactor.nameResolver.resolveHostName(receiver, host)
            return await receiver.done.addTimeout(self._dial_timeout, self._reactor)
        except NamesTimeout:
            raise Unreachable(f"dial tcp: lookup {host}: i/o timeout") from None
        except UnicodeError:
            raise NoSuchHost(f"dial tcp: lookup {host}: no such host") from None


def name_server() -> str:
    """Return the resolver's name server, from the system's configuration."""
    servers = []
    with suppress(OSError), RESOLVERS.open("rb") as file:
        for line in file.read(_RESOLVERS_LENGTH).decode("utf-8", "replace").splitlines():
            words = line.split()
            if len(words) > 1 and words[0] == "nameserver":
                servers.append(words[1])
    return join_host_port(servers[0] if servers else "127.0.0.1", 53)


@implementer(IResolutionReceiver)
class _Addresses:
    """Receiver of the addresses of a name."""

    def __init__(self) -> None:
        self._hosts: list[str] = []
        # Twisted's resolvers cannot be stopped: after a cancellation, their result is ignored.
        self.done: Deferred[list[str]] = Deferred()

    def resolutionBegan(self, resolutionInProgress: IHostResolution) -> None:
        pass

    def addressResolved(self, address: IAddress) -> None:
        assert isinstance(address, (IPv4Address, IPv6Address)), "host names resolve to IP addresses"
        if address.host not in self._hosts:
            self._hosts.append(address.host)

    def resolutionComplete(self) -> None:
        if not self.done.called:
            self.done.callback(self._hosts)


def connection_lost_error(error: BaseException | None, ends: str) -> Unreachable | None:
    """
    Return why a connection was lost; L{None} if it was closed cleanly, or by this side.

    @param ends: The pair from L{connection_addresses}.
    """
    if isinstance(error, Unreachable):
        return error
    if isinstance(error, SSL.Error):
        return Unreachable(tls_error(error))
    if isinstance(error, errors.ConnectionLost) and not isinstance(error, errors.ConnectionAborted):
        return Unreachable(f"read tcp {ends}: read: connection reset by peer", retriable=True)
    return None


def connection_addresses(transport: ITransport) -> str:
    """Return both ends of a connection, which must be open."""
    return "->".join(_format_address(end) for end in (transport.getHost(), transport.getPeer()))


def join_host_port(address: str, port: int) -> str:
    """Return an address and a port as one text."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def tls_error(error: SSL.Error) -> str:
    """Return the text of C{crypto/tls} for a failed handshake, or for an alert of the peer."""
    reasons = [str(entry[-1]) for entry in error.args[0]] if error.args and isinstance(error.args[0], list) else []
    for reason in reasons:
        if any(known in reason for known in _NOT_TLS_REASONS):
            return "http: server gave HTTP response to HTTPS client"
        _, alert, what = reason.partition(" alert ")
        if alert:
            return f"remote error: tls: {_ALERTS.get(what, what)}"
        if "unexpected eof" in reason:
            return "EOF"
    return f"tls: {reasons[0]}" if reasons else "EOF"


def _format_address(end: IAddress) -> str:
    return join_host_port(getattr(end, "host", "?"), getattr(end, "port", 0))


def _connect_error_text(error: errors.ConnectError) -> str:
    if isinstance(error, errors.TimeoutError):
        return "i/o timeout"
    number = error.osError if isinstance(error.osError, int) else getattr(error.osError, "errno", None)
    if isinstance(error, errors.ConnectionRefusedError):
        return "connect: connection refused"
    if isinstance(number, int):
        return f"connect: {os.strerror(number).lower()}"
    return "connect: cannot connect"
