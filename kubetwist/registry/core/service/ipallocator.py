"""Allocates cluster IPs."""

from __future__ import annotations

from ipaddress import ip_address

from .addressranges import AddressRange
from .numberallocator import AllocationError, NumberAllocator


class ClusterIPAllocator(NumberAllocator):
    """
    The addresses of one family, for services.

    Addresses that clients do not choose come from the upper part of the range as long as there are any, so that the
    lower part, where people choose theirs, stays free; from other ranges only when this one is full.

    @ivar network: The range of the command line.
    """

    def __init__(self, cidr: str) -> None:
        """
        @param cidr: One range of C{--service-cluster-ip-range}.
        @raise ValueError: It is none.
        """
        super().__init__()
        self._range = AddressRange.read(cidr)
        #: Those that are added besides, by how many ServiceCIDRs.
        self._more: dict[AddressRange, int] = {}
        self.network = self._range.network
        self.family = "IPv4" if self.network.version == 4 else "IPv6"
        self.size = self._range.size

    def add(self, more: AddressRange) -> None:
        """Addresses of this range can be had, too."""
        if more.network.version == self.network.version and more != self._range:
            self._more[more] = self._more.get(more, 0) + 1

    def remove(self, more: AddressRange) -> None:
        """Drop one reference to a range."""
        left = self._more.pop(more, 0) - 1
        if left > 0:
            self._more[more] = left

    def allocate(self, text: str) -> None:
        """
        Take this address.

        @raise AllocationError: It is taken or out of the range.
        """
        self.allocations.count("static", lambda: self._allocate(text))

    def check_in_range(self, text: str) -> None:
        """
        Look whether an address could be taken, for a dry run: who has it is not asked then.

        @raise AllocationError: It is out of the range; the message differs from that of L{allocate}.
        """
        if not self._covers(text):
            raise AllocationError(
                f"the provided IP ({text}) is not in the valid range. The range of valid IPs is {self.network}"
            )

    def _covers(self, text: str) -> bool:
        address = ip_address(text)
        return self._range.covers(address) or any(more.covers(address) for more in self._more)

    def _allocate(self, text: str) -> None:
        if not self._covers(text):
            raise AllocationError("the provided network does not match the current range")
        number = int(ip_address(text))
        if self.in_use(number):
            raise AllocationError("provided IP is already allocated")
        self.take(number)

    def allocate_next(self) -> str:
        """
        Take any address.

        @raise AllocationError: All are taken.
        """
        return self.allocations.count("dynamic", self._allocate_next)

    def _allocate_next(self) -> str:
        for one in (self._range, *self._more):
            for low, high in ((one.split, one.last), (one.first, one.split - 1)):
                number = self.pick(low, high)
                if number is not None:
                    self.take(number)
                    return one.text(number)
        raise AllocationError("range is full")

    def number(self, text: str) -> int | None:
        """What an address is here; L{None} where it is of another family, or none at all."""
        try:
            address = ip_address(text)
        except ValueError:
            return None
        return int(address) if address.version == self.network.version else None

    def has(self, text: str) -> bool:
        """Whether an address is in use."""
        return self.in_use(int(ip_address(text)))
