"""The store of Services, which allocates and releases cluster IPs and node ports with the writes of services."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

import orjson
from attrs import evolve

from ....api.admission import Charge
from ....api.errors import APIStatusError
from ....api.options import WriteOptions
from ....api.record import Draft
from ....api.requestscope import RequestScope
from ....api.resource import JSONObject
from ....api.storage import Write
from ....storage.errors import KeyExists, KeyNotFound
from ...generic.allocation import NO_ALLOCATION, Allocation, AllocationConflict
from ...generic.environment import StoredResource, StoreEnvironment
from ...generic.store import Store
from ...generic.validation.fields import STRICT_ADDRESSES
from .allocator import Reservation, ServiceAllocator, allocations_of_service
from .ipaddresses import GROUP, IPAddressStore, canonical
from .serverallocators import ServiceAllocators
from .validation import is_headless, validate_cluster_ips

if TYPE_CHECKING:
    from ...stores import Stores


class ServiceAllocation(Allocation):
    """
    The allocation of one write of a service.

    @ivar reservation: The allocated and released numbers.
    """

    __slots__ = ("_allocator", "_spec", "_writes", "reservation")

    def __init__(
        self, allocator: ServiceAllocator, reservation: Reservation, writes: Sequence[Write], spec: bytes
    ) -> None:
        """
        @param allocator: The allocator of the reservation.
        @param reservation: The allocated and released numbers.
        @param writes: The writes of IPAddress objects.
        @param spec: The JSON of the spec of the service before the allocation.
        """
        self._allocator = allocator
        self._writes = writes
        self._spec = spec
        self.reservation = reservation

    def writes(self) -> Sequence[Write]:
        """See L{Allocation.writes}: writes of IPAddress objects that are created or deleted."""
        return self._writes

    def commit(self) -> None:
        """See L{Allocation.commit}; the released numbers are free now."""
        self._allocator.finish(self.reservation)

    def cancel(self) -> None:
        """See L{Allocation.cancel}."""
        self._allocator.finish(self.reservation)

    def undo(self, obj: JSONObject) -> None:
        """See L{Allocation.undo}."""
        obj["spec"] = orjson.loads(self._spec)


class AllocationWithWrites(Allocation):
    """An allocation with additional writes."""

    __slots__ = ("_allocation", "_more")

    def __init__(self, allocation: Allocation, more: Sequence[Write]) -> None:
        self._allocation = allocation
        self._more = more

    def writes(self) -> Sequence[Write]:
        """See L{Allocation.writes}."""
        return [*self._allocation.writes(), *self._more]


class AllocationRelease(Allocation):
    """The allocation of the deletion of a service: the writes that delete its IPAddress objects."""

    __slots__ = ("_writes",)

    def __init__(self, writes: Sequence[Write]) -> None:
        self._writes = writes

    def writes(self) -> Sequence[Write]:
        """See L{Allocation.writes}."""
        return self._writes


def default_families_on_read(spec: JSONObject, first: str) -> None:
    """
    Set the IP families of a service that was stored before dual-stack support.

    @param spec: The spec of the service; modified.
    @param first: The default IP family of the cluster.
    @see: C{pkg/registry/core/service/storage/storage.go}, defaultOnReadIPFamilies.
    """
    if spec["type"] == "ExternalName" or spec.get("ipFamilies"):
        return
    if not is_headless(spec):
        families = ["IPv6" if ":" in address else "IPv4" for address in spec.get("clusterIPs") or ()]
    elif spec.get("selector"):
        families = [first]
    else:
        # Its endpoints are not managed by this server and may have any family.
        families = [first, "IPv4" if first == "IPv6" else "IPv6"]
    if families:
        spec["ipFamilies"] = families
        spec["ipFamilyPolicy"] = "RequireDualStack" if len(families) == 2 else "SingleStack"


class ServiceStore(Store):
    """The store of services, which allocates cluster IPs and node ports."""

    def __init__(
        self, resource: StoredResource, environment: StoreEnvironment, allocators: ServiceAllocators, stores: Stores
    ) -> None:
        """
        @param resource: The resource and its storage options.

        @param environment: The shared components of stores.
        @param allocators: The allocators of cluster IPs and node ports.
        @param stores: The container with the store of IPAddresses.
        """
        self._allocators = allocators
        self._services = allocators.services
        self._stores = stores
        self._strict_addresses = environment.features.enabled(STRICT_ADDRESSES)
        super().__init__(resource, environment)

    def on_cache_synced(self) -> None:
        """Add the addresses and ports of stored services to the allocator."""
        self._allocators.sync_allocator(self.cache, allocations_of_service)

    def default_on_read(self, obj: JSONObject) -> None:
        """Set the IP families of services that old releases stored without them."""
        super().default_on_read(obj)
        default_families_on_read(obj["spec"], self._services.families[0])

    @property
    def addresses(self) -> IPAddressStore | None:
        """Return the store of IPAddresses; L{None} if --runtime-config disables the resource."""
        store = self._stores.find(GROUP, "ipaddresses")
        return store if isinstance(store, IPAddressStore) else None

    def reserve(self, obj: JSONObject, old: JSONObject | None, dry_run: bool) -> Allocation:
        """
        Allocate and set addresses, IP families and ports of a service.

        @raise APIStatusError: An allocation failed (422).
        """
        allocator = self._services
        spec = orjson.dumps(obj["spec"])
        reservation = allocator.allocate(obj, old, dry_run=dry_run)
        writes: list[Write] = []
        addresses = self.addresses
        if addresses is not None and not dry_run:
            meta = obj["metadata"]
            for address in reservation.ips:
                writes.append(addresses.create_write(canonical(address), meta["namespace"], meta["name"]))
            for address in reservation.freed_ips:
                writes += addresses.delete_writes(canonical(address))
        return ServiceAllocation(allocator, reservation, writes, spec)

    def guard(
        self, scope: RequestScope, obj: JSONObject, old: JSONObject | None, options: WriteOptions
    ) -> AbstractContextManager[RequestScope]:
        """
        Report errors of the allocation before all other errors; see L{StoreHooks.guard}.

        @param obj: The new service.
        @param old: The stored service; L{None} when it is created.
        @param options: The options of the request.
        """
        return self._numbers_first(scope, obj, old, options)

    @contextmanager
    def _numbers_first(
        self, scope: RequestScope, obj: JSONObject, old: JSONObject | None, options: WriteOptions
    ) -> Iterator[RequestScope]:
        """
        Report errors of the allocation before all other errors, since the reference allocates first.

        @return: A scope that collects warnings, which are sent unless the allocation fails.
        @raise APIStatusError: An address or port cannot be allocated; it replaces other errors.
        """
        warnings: list[str] = []
        try:
            yield evolve(scope, warn=warnings.append)
        except APIStatusError:
            self._check_allocation(obj, old, options.dry_run)
            self._warn(scope, warnings)
            raise
        except BaseException:
            self._warn(scope, warnings)
            raise
        self._warn(scope, warnings)

    def _warn(self, scope: RequestScope, texts: Sequence[str]) -> None:
        for text in texts:
            scope.warn(text)

    def _check_allocation(self, obj: JSONObject, old: JSONObject | None, dry_run: bool) -> None:
        """
        Check whether the allocation of a rejected service would fail, which the reference reports first.

        @raise APIStatusError: The allocation would fail.
        """
        spec = obj["spec"]
        errors = validate_cluster_ips(spec, (old or {}).get("spec") or {}, strict=self._strict_addresses)
        if errors:
            raise self.invalid(obj["metadata"].get("name", ""), errors)
        copy = {"metadata": obj["metadata"], "spec": orjson.loads(orjson.dumps(spec))}
        self._services.finish(self._services.allocate(copy, old, dry_run=dry_run))

    async def commit(
        self,
        key: str,
        draft: Draft | None,
        expected: int,
        allocation: Allocation = NO_ALLOCATION,
        charges: Sequence[Charge] = (),
    ) -> int:
        """
        Write a service with its IPAddresses and the object of node ports; see L{Store.commit}.

        @raise AllocationConflict: A concurrent write allocated an address or port.
        """
        addresses, ports = self.addresses, self._allocators.shared_ports
        allocated: Sequence[int] = ()
        freed: Sequence[int] = ()
        if isinstance(allocation, ServiceAllocation):
            allocated, freed = allocation.reservation.ports, allocation.reservation.freed_ports
        elif draft is None and (record := self.cache.get(key)) is not None:
            allocations = allocations_of_service(orjson.loads(record.item))
            freed = allocations.ports
            if addresses is not None:
                allocation = AllocationRelease(
                    [
                        write
                        for address in allocations.addresses
                        for write in addresses.delete_writes(canonical(address))
                    ]
                )

        async def commit(more: Sequence[Write]) -> int:
            return await super(ServiceStore, self).commit(
                key, draft, expected, AllocationWithWrites(allocation, more), charges
            )

        try:
            if ports is not None and (allocated or freed):
                return await ports.commit(allocated, freed, commit)
            return await commit(())
        except (KeyExists, KeyNotFound) as error:
            if (
                error.key == self.storage_key(key)
                or addresses is None
                or not error.key.startswith(addresses.storage_key(""))
            ):
                raise
            # A concurrent write created or deleted the IPAddress object: wait for the cache, then allocate again.
            await addresses.cache.wait_until_fresh_or_timeout(error.revision)
            raise AllocationConflict(error.key, error.revision) from None
