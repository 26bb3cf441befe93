"""The store of ServiceCIDRs."""

from __future__ import annotations

from ..core.service.allocator import added_ranges
from ..core.service.serverallocators import ServiceAllocators
from ..generic.environment import StoredResource, StoreEnvironment
from ..generic.store import Store


class ServiceCIDRStore(Store):
    """Additional CIDRs of service IP addresses."""

    def __init__(self, resource: StoredResource, environment: StoreEnvironment, allocators: ServiceAllocators) -> None:
        """
        @param allocators: The allocators of services.
        """
        self._allocators = allocators
        super().__init__(resource, environment)

    def on_cache_synced(self) -> None:
        """Add the stored CIDRs to the allocators."""
        self._allocators.sync_allocator(self.cache, added_ranges)
