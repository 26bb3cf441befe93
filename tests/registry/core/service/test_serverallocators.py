"""Tests of L{kubetwist.registry.core.service.serverallocators}."""

from __future__ import annotations

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.storage import Write
from kubetwist.registry.core.service.portregistry import DIRECTORY, NAME, encode_range
from kubetwist.registry.core.service.serverallocators import ServiceAllocators
from kubetwist.storage.memory import MemoryStorage
from tests.registry.sharedstores import SharedMemory


class ServiceAllocatorsTests(SynchronousTestCase):
    """Tests of L{ServiceAllocators}."""

    def setUp(self) -> None:
        """Create a clock."""
        self.clock = Clock()

    def allocators(self, backend: MemoryStorage) -> ServiceAllocators:
        """Return the started allocators of a server."""
        self.successResultOf(Deferred.fromCoroutine(backend.open()))
        allocators = ServiceAllocators(backend, self.clock, ranges=("10.1.0.0/24",), node_ports=(30000, 30009))
        self.successResultOf(Deferred.fromCoroutine(allocators.start()))
        self.addCleanup(allocators.stop)
        return allocators

    def test_alone(self) -> None:
        """The only server of a storage records no ports."""
        allocators = self.allocators(MemoryStorage(self.clock))
        self.assertIsNone(allocators.shared_ports)
        self.assertEqual([str(one.network) for one in allocators.services.ips.values()], ["10.1.0.0/24"])
        self.assertEqual((allocators.services.ports.low, allocators.services.ports.high), (30000, 30009))
        self.assertFalse(allocators.services.ports.in_use(30003))

    def test_shared(self) -> None:
        """Ports that other servers recorded are in use."""
        backend = SharedMemory(self.clock)
        allocators = self.allocators(backend)
        self.assertIsNotNone(allocators.shared_ports)
        self.assertFalse(allocators.services.ports.in_use(30003))
        self.successResultOf(
            backend.commit([Write(f"/registry/{DIRECTORY}{NAME}", encode_range(30000, 30009, [30003]), 0)])
        )
        self.assertTrue(allocators.services.ports.in_use(30003))
        self.assertFalse(allocators.services.ports.in_use(30004))
