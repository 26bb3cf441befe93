"""Where connections come from, and how many may come from one place: nobody may take what is there for all."""

from __future__ import annotations

import ipaddress
import resource
import sys
from typing import Final

from twisted.internet.interfaces import IAddress
from twisted.logger import Logger

#: Of the files that the process may have open, how much the connections of one place may be unless said otherwise.
_SHARE: Final = 0.75
#: Who has a line has all addresses below such a prefix.
_PREFIX: Final = 64


class ConnectionLimiter:
    """
    Counts connections by address; by network where a client has all addresses of one.

    @ivar limit: How many there may be of each.
    """

    _log = Logger()

    def __init__(self, limit: int = 0) -> None:
        """
        @param limit: 0 for three quarters of the files that the process may have open: others can still connect then.
        """
        self.limit = limit or _share_of(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        self._counts: dict[str, int] = {}
        self._told: set[str] = set()

    def acquire(self, peer: IAddress) -> bool:
        """
        Count a connection.

        @param peer: The address of its other end.
        @return: Whether it is not too many.
        """
        place = client_network(getattr(peer, "host", ""))
        count = self._counts[place] = self._counts.get(place, 0) + 1
        if count <= self.limit:
            return True
        if place not in self._told:
            self._told.add(place)
            self._log.warn(
                "connections from {place} are refused: there are {limit} of them", place=place, limit=self.limit
            )
        return False

    def release(self, peer: IAddress) -> None:
        """Count a connection no more."""
        place = client_network(getattr(peer, "host", ""))
        count = self._counts[place] - 1
        if count:
            self._counts[place] = count
        else:
            del self._counts[place]
            self._told.discard(place)


def _share_of(files: int) -> int:
    return sys.maxsize if files == resource.RLIM_INFINITY else int(files * _SHARE)


def client_network(host: str) -> str:
    """What connections from C{host} are counted under."""
    if ":" not in host:
        return host
    address = ipaddress.IPv6Address(host)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    network = ipaddress.IPv6Network((int(address) >> (128 - _PREFIX) << (128 - _PREFIX), _PREFIX))
    return str(network)
