"""Tests of L{kubetwist.registry.core.service.portallocator}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.core.service.numberallocator import AllocationError
from kubetwist.registry.core.service.portallocator import NodePortAllocator


class NodePortTests(SynchronousTestCase):
    """Tests of L{NodePortAllocator}."""

    def test_all_once(self) -> None:
        """Every port of a range is allocated once, the upper part first."""
        allocator = NodePortAllocator(30000, 30099)
        found = [allocator.allocate_next() for _ in range(100)]
        self.assertEqual(sorted(found), list(range(30000, 30100)))
        self.assertGreaterEqual(min(found[:84]), 30016)
        error = self.assertRaises(AllocationError, allocator.allocate_next)
        self.assertEqual(str(error), "range is full")

    def test_chosen(self) -> None:
        """A requested port must be free and in the range; dry runs do not check the range."""
        allocator = NodePortAllocator(30000, 30001)
        allocator.allocate(30000)
        taken = self.assertRaises(AllocationError, allocator.allocate, 30000)
        self.assertEqual(str(taken), "provided port is already allocated")
        outside = self.assertRaises(AllocationError, allocator.allocate, 80)
        self.assertIn("valid ports is 30000-30001", str(outside))
        allocator.allocate(80, anywhere=True)
        self.assertRaises(AllocationError, allocator.allocate, 80, anywhere=True)

    def test_allocated_by_other_server(self) -> None:
        """Ports that other servers allocated are not allocated."""
        allocator = NodePortAllocator(30000, 30999, lambda port: port != 30500)
        self.assertEqual(allocator.allocate_next(), 30500)
        self.assertRaises(AllocationError, allocator.allocate_next)
        self.assertRaises(AllocationError, allocator.allocate, 30001)

    def test_out_of_range(self) -> None:
        """Ports of stored services that are out of the range are ignored."""
        allocator = NodePortAllocator(30000, 30001)
        for port in (80, 30001):
            allocator.add_reference(port)
        self.assertEqual(allocator.ports_in_use(), {30001})
