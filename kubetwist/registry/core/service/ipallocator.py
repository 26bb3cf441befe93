"""Allocator of cluster IPs."""

from __future__ import annotations

from ....api.addresses import parse_plain_ip
from .addressranges import AddressRange
from .numberallocator import AllocationError, NumberAllocator


class ClusterIPAllocator(NumberAllocator):
    """
    The allocator of cluster IPs of one IP family.

    Dynamic allocation uses the upper part of the range until it is full, so that the lower part stays free for static
    allocation, and then the ranges of ServiceCIDRs.

    @ivar network: The range of the command line.
    """

    def __init__(self, cidr: str) -> None:
        """
        @param cidr: One range of C{--service-cluster-ip-range}.
        @raise ValueError: The text is not a CIDR.
        """
        super().__init__()
        self._range = AddressRange.read(cidr)
        #: The ranges of ServiceCIDRs, with the number of ServiceCIDRs that have them.
        self._added: dict[AddressRange, int] = {}
        self.network = self._range.network
        self.family = "IPv4" if self.network.version == 4 else "IPv6"
        self.size = self._range.size

    def add(self, added: AddressRange) -> None:
        """Add one reference to a range."""
        if added.network.version == self.network.version and added != self._range:
            self._added[added] = self._added.get(added, 0) + 1

    def remove(self, added: AddressRange) -> None:
        """Drop one reference to a range."""
        references = self._added.pop(added, 0) - 1
        if references > 0:
            self._added[added] = references

    def allocate(self, text: str) -> None:
        """
        Allocate a requested address.

        @raise AllocationError: The address is in use or out of the range.
        """
        self.allocations.observe("static", lambda: self._allocate(text))

    def check_in_range(self, text: str) -> None:
        """
        Check that an address is in the range, for a dry run, which does not check whether it is in use.

        @raise AllocationError: The address is out of the range; the message differs from that of L{allocate}.
        """
        if not self._covers(text):
            raise AllocationError(
                f"the provided IP ({text}) is not in the valid range. The range of valid IPs is {self.network}"
            )

    def _covers(self, text: str) -> bool:
        address = parse_plain_ip(text)
        return self._range.covers(address) or any(added.covers(address) for added in self._added)

    def _allocate(self, text: str) -> None:
        if not self._covers(text):
            raise AllocationError("the provided network does not match the current range")
        number = int(parse_plain_ip(text))
        if self.in_use(number):
            raise AllocationError("provided IP is already allocated")
        self.mark_pending(number)

    def allocate_next(self) -> str:
        """
        Allocate any free address.

        @raise AllocationError: All addresses are in use.
        """
        return self.allocations.observe("dynamic", self._allocate_next)

    def _allocate_next(self) -> str:
        for network in (self._range, *self._added):
            for low, high in ((network.split, network.last), (network.first, network.split - 1)):
                number = self.pick(low, high)
                if number is not None:
                    self.mark_pending(number)
                    return network.text(number)
        raise AllocationError("range is full")

    def number(self, text: str) -> int | None:
        """Return the number of an address; L{None} for an invalid one, or one of the other IP family."""
        try:
            address = parse_plain_ip(text)
        except ValueError:
            return None
        return int(address) if address.version == self.network.version else None

    def has(self, text: str) -> bool:
        """Return whether an address is in use."""
        return self.in_use(int(parse_plain_ip(text)))
