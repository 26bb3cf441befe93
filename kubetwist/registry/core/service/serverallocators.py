"""What services allocate from: cluster IPs, node ports, and the record of node ports in a shared storage."""

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

    @ivar services: Allocates the cluster IPs and node ports of services.
    @ivar shared_ports: Records node ports for the servers that share the storage; L{None} if no other server uses it.
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
        @param prefix: The prefix of all keys in the backend.
        @param ranges: Where cluster IPs come from: one range, or one of each family.
        @param node_ports: The first and the last node port.
        @param protobuf: Whether the record of node ports is written as protobuf, and not as JSON.
        """
        self._reactor = reactor
        self._following: list[AllocatorSync] = []
        self.shared_ports: NodePortRegistry | None = None
        if find_shared_storage(backend) is None:
            self.services = ServiceAllocator(ranges, NodePortAllocator(*node_ports))
            return
        from .portregistry import NodePortRegistry, RecordedPorts

        recorded = RecordedPorts(backend, prefix, node_ports[0], reactor)
        ports = NodePortAllocator(*node_ports, recorded.is_taken)
        self.services = ServiceAllocator(ranges, ports)
        self.shared_ports = NodePortRegistry(backend, recorded, ports, reactor, protobuf=protobuf)

    def follow(self, cache: WatchCache, holdings: Callable[[JSONObject], ObservedAllocations]) -> None:
        """
        Keep what the objects of a cache hold allocated, from now on.

        @param holdings: Returns what an object holds.
        """
        following = AllocatorSync(cache, self.services, holdings, self._reactor)
        self._following.append(following)
        following.start()

    async def start(self) -> None:
        """
        Read what other servers have recorded.

        @raise StorageError: The storage cannot be read.
        """
        if self.shared_ports is not None:
            await self.shared_ports.start()

    def stop(self) -> None:
        """Stop following caches and the record of node ports."""
        for following in self._following:
            following.stop()
        if self.shared_ports is not None:
            self.shared_ports.stop()
