"""The allocators of cluster IPs and node ports, with the registry of node ports in a shared storage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from twisted.internet.interfaces import IReactorTime

from ....api.resource import JSONObject
from ....interfaces import IStorageBackend
from ....storage.cache.watchcache import WatchCache
from ....storage.wrappers import find_shared_storage
from .allocator import ObservedAllocations, ServiceAllocator
from .allocatorsync import AllocatorSync
from .portallocator import NodePortAllocator

if TYPE_CHECKING:
    from .portregistry import NodePortRegistry


class ServiceAllocators:
    """
    The allocators of one server.

    @ivar services: The allocator of cluster IPs and node ports of services.
    @ivar shared_ports: The registry of node ports of the servers that share the storage; L{None} if no other server
        uses it.
    """

    def __init__(
        self,
        backend: IStorageBackend,
        reactor: IReactorTime,
        *,
        prefix: str = "/registry/",
        ranges: Sequence[str] = ("10.0.0.0/24",),
        node_ports: tuple[int, int] = (30000, 32767),
        protobuf: bool = False,
    ) -> None:
        """
        @param backend: The storage.
        @param reactor: The reactor, or a clock in tests.
        @param prefix: The prefix of all keys in the backend.
        @param ranges: The ranges of cluster IPs: one, or one of each IP family.
        @param node_ports: The first and the last node port.
        @param protobuf: Whether the object of node ports is written as protobuf instead of JSON.
        """
        self._reactor = reactor
        self._following: list[AllocatorSync] = []
        self.shared_ports: NodePortRegistry | None = None
        if find_shared_storage(backend) is None:
            self.services = ServiceAllocator(ranges, NodePortAllocator(*node_ports))
            return
        from .portregistry import NodePortRegistry, RecordedPorts

        recorded = RecordedPorts(backend, prefix, node_ports[0], reactor)
        ports = NodePortAllocator(*node_ports, recorded.is_allocated)
        self.services = ServiceAllocator(ranges, ports)
        self.shared_ports = NodePortRegistry(backend, recorded, ports, reactor, protobuf=protobuf)

    def sync_allocator(self, cache: WatchCache, holdings: Callable[[JSONObject], ObservedAllocations]) -> None:
        """
        Synchronize the allocator with the objects of a cache.

        @param holdings: Returns the numbers that an object uses.
        """
        sync = AllocatorSync(cache, self.services, holdings, self._reactor)
        self._following.append(sync)
        sync.start()

    async def start(self) -> None:
        """
        Read the node ports that are allocated by all servers.

        @raise StorageError: The storage cannot be read.
        """
        if self.shared_ports is not None:
            await self.shared_ports.start()

    def stop(self) -> None:
        """Stop the synchronization and the registry of node ports."""
        for sync in self._following:
            sync.stop()
        if self.shared_ports is not None:
            self.shared_ports.stop()
