"""Ranges of cluster IPs, and the ranges that ServiceCIDRs add."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

from attrs import frozen

from ....api.resource import JSONObject

Network = IPv4Network | IPv6Network


@frozen
class AddressRange:
    """
    The addresses of one network that can be cluster IPs.

    @ivar first: The first address, after the address of the network.
    @ivar last: The last address; in IPv4 before the broadcast address.
    @ivar split: The first address of the upper part, from which addresses are allocated dynamically until it is full;
        the lower part is for static allocation.
    """

    network: Network
    first: int
    last: int
    split: int

    @classmethod
    def read(cls, cidr: str) -> AddressRange:
        """
        Parse a CIDR.

        @raise ValueError: The text is not a CIDR.
        """
        network = ip_network(cidr)
        base, size = int(network.network_address), network.num_addresses
        first, last = base + 1, base + size - (2 if network.version == 4 and size > 2 else 1)
        count = last - first + 1
        return cls(network, first, last, first + (min(256, max(16, count // 16)) if count > 16 else 0))

    @property
    def size(self) -> int:
        """Return the number of addresses."""
        return self.last - self.first + 1

    def covers(self, address: IPv4Address | IPv6Address) -> bool:
        """Return whether the range contains an address."""
        return address.version == self.network.version and self.first <= int(address) <= self.last

    def text(self, number: int) -> str:
        """Return the text of an address, from its number."""
        return str(IPv4Address(number) if self.network.version == 4 else IPv6Address(number))


def usable_ranges(service_cidr: JSONObject) -> tuple[str, ...]:
    """
    Return the ranges of a ServiceCIDR, unless it is being deleted or its condition is not ready.

    A ServiceCIDR without a condition is ready, since this server has no controller that sets it.
    """
    if "deletionTimestamp" in service_cidr["metadata"]:
        return ()
    for condition in (service_cidr.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "Ready" and condition.get("status") != "True":
            return ()
    return tuple(dict.fromkeys((service_cidr.get("spec") or {}).get("cidrs") or ()))
