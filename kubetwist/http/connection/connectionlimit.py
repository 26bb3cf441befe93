"""Limit the number of connections per client network, so that one client cannot use all of them."""

from __future__ import annotations

import ipaddress
import resource
import sys
from typing import Final

from twisted.internet.interfaces import IAddress
from twisted.logger import Logger

#: Default share of the process's file descriptors that the connections of one network may use.
_DESCRIPTOR_SHARE: Final = 0.75
#: Length of the IPv6 prefix that one client usually owns.
_IPV6_PREFIX_LENGTH: Final = 64


class ConnectionLimiter:
    """
    Limit of connections by address, or by network for clients that own all addresses of one.

    @ivar limit: Maximum number of connections per address or network.
    """

    _log = Logger()

    def __init__(self, limit: int = 0) -> None:
        """
        @param limit: Maximum per network; 0 for three quarters of the process's file descriptors, so that other
            clients can still connect.
        """
        self.limit = limit or _default_limit(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        self._counts: dict[str, int] = {}
        self._logged: set[str] = set()

    def acquire(self, peer: IAddress) -> bool:
        """
        Count a connection.

        @param peer: The address of the client.
        @return: Whether the connection is within the limit.
        """
        network = client_network(getattr(peer, "host", ""))
        count = self._counts[network] = self._counts.get(network, 0) + 1
        if count <= self.limit:
            return True
        if network not in self._logged:
            self._logged.add(network)
            self._log.warn(
                "connections from {network} are refused: there are {limit} of them", network=network, limit=self.limit
            )
        return False

    def release(self, peer: IAddress) -> None:
        """Stop counting a connection."""
        network = client_network(getattr(peer, "host", ""))
        count = self._counts[network] - 1
        if count:
            self._counts[network] = count
        else:
            del self._counts[network]
            self._logged.discard(network)


def _default_limit(files: int) -> int:
    return sys.maxsize if files == resource.RLIM_INFINITY else int(files * _DESCRIPTOR_SHARE)


def client_network(host: str) -> str:
    """Return the address or network that connections from C{host} are counted under."""
    if ":" not in host:
        return host
    address = ipaddress.IPv6Address(host)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    network = ipaddress.IPv6Network(
        (int(address) >> (128 - _IPV6_PREFIX_LENGTH) << (128 - _IPV6_PREFIX_LENGTH), _IPV6_PREFIX_LENGTH)
    )
    return str(network)
