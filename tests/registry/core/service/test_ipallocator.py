"""Tests of L{kubetwist.registry.core.service.ipallocator}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.core.service.allocator import (
    NO_ALLOCATIONS,
    ObservedAllocations,
    ServiceAllocator,
    allocations_of_service,
)
from kubetwist.registry.core.service.ipallocator import ClusterIPAllocator
from kubetwist.registry.core.service.numberallocator import AllocationError
from tests.registry.core.service.allocators import service


class ClusterIPTests(SynchronousTestCase):
    """Tests of L{ClusterIPAllocator}."""

    def test_all_once(self) -> None:
        """Every usable address of a range is allocated once; then the range is full."""
        allocator = ClusterIPAllocator("10.0.0.0/28")
        found = {allocator.allocate_next() for _ in range(14)}
        self.assertEqual(found, {f"10.0.0.{number}" for number in range(1, 15)})
        self.assertRaises(AllocationError, allocator.allocate_next)
        number = allocator.number("10.0.0.3")
        assert number is not None
        allocator.finish(number)
        self.assertEqual(allocator.allocate_next(), "10.0.0.3")

    def test_two_holders(self) -> None:
        """An address is free when neither a service nor an IPAddress uses it."""
        allocator = ServiceAllocator()
        obj, held = service(clusterIP="10.0.0.7", clusterIPs=["10.0.0.7"]), ObservedAllocations(("10.0.0.7",))
        allocator.change(NO_ALLOCATIONS, held)
        allocator.change(NO_ALLOCATIONS, allocations_of_service(obj))
        for gone in (held, allocations_of_service(obj)):
            self.assertTrue(allocator.ips["IPv4"].has("10.0.0.7"))
            allocator.change(gone, NO_ALLOCATIONS)
        self.assertFalse(allocator.ips["IPv4"].has("10.0.0.7"))

    def test_chosen(self) -> None:
        """A free address of the range can be requested."""
        allocator = ClusterIPAllocator("10.0.0.0/24")
        allocator.allocate("10.0.0.7")
        for address in ("10.0.0.7", "10.0.1.7", "10.0.0.0", "10.0.0.255", "fd00::1"):
            self.assertRaises(AllocationError, allocator.allocate, address)

    def test_counted(self) -> None:
        """Static, dynamic and failed allocations are counted."""
        allocator = ClusterIPAllocator("10.0.0.0/30")
        allocator.allocate("10.0.0.1")
        allocator.allocate_next()
        self.assertRaises(AllocationError, allocator.allocate, "10.0.0.1")
        self.assertRaises(AllocationError, allocator.allocate_next)
        self.assertRaises(AllocationError, allocator.allocate_next)
        counted = allocator.allocations
        self.assertEqual(counted.allocations_total, {"static": 1, "dynamic": 1})
        self.assertEqual(counted.allocation_errors_total, {"static": 1, "dynamic": 2})
        self.assertEqual(counted.seconds.count, 2)

    def test_upper_part_first(self) -> None:
        """Dynamic allocation uses the upper part of the range first."""
        allocator = ClusterIPAllocator("10.0.0.0/24")
        self.assertTrue(all(int(allocator.allocate_next().rpartition(".")[2]) > 16 for _ in range(50)))

    def test_ipv6(self) -> None:
        """IPv6 ranges are allocated in the same way."""
        allocator = ClusterIPAllocator("fd00::/112")
        address = allocator.allocate_next()
        self.assertTrue(address.startswith("fd00::"))
        self.assertTrue(allocator.has(address))
