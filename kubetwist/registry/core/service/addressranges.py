"""Ranges of addresses for services: which belong to one, and which ServiceCIDRs add to those of the command line."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

from attrs import frozen

from ....api.resource import JSONObject

Network = IPv4Network | IPv6Network


@frozen
class AddressRange:
    """
    The addresses of one network that services can have.

    @ivar first: The first of them; the network's own is none.
    @ivar last: The last one; in IPv4 the broadcast's is none.
    @ivar split: The first that is given out while there are any; those below are for people who choose theirs.
    """

    network: Network
    first: int
    last: int
    split: int

    @classmethod
    def read(cls, cidr: str) -> AddressRange:
        """
        Make one of a text.

        @raise ValueError: It is none.
        """
        network = ip_network(cidr)
        base, size = int(network.network_address), network.num_addresses
        first, last = base + 1, base + size - (2 if network.version == 4 and size > 2 else 1)
        count = last - first + 1
        return cls(network, first, last, first + (min(256, max(16, count // 16)) if count > 16 else 0))

    @property
    def size(self) -> int:
        """How many there are."""
        return self.last - self.first + 1

    def covers(self, address: IPv4Address | IPv6Address) -> bool:
        """Whether an address is one of them."""
        return address.version == self.network.version and self.first <= int(address) <= self.last

    def text(self, number: int) -> str:
        """One of them as it is written."""
        return str(IPv4Address(number) if self.network.version == 4 else IPv6Address(number))


def usable_ranges(service_cidr: JSONObject) -> tuple[str, ...]:
    """
    What a ServiceCIDR adds: nothing once it is deleted, nor while it is said that it is not ready.

    Without a condition, since no controller sets one, it is ready.
    """
    if "deletionTimestamp" in service_cidr["metadata"]:
        return ()
    for condition in (service_cidr.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "Ready" and condition.get("status") != "True":
            return ()
    return tuple(dict.fromkeys((service_cidr.get("spec") or {}).get("cidrs") or ()))
