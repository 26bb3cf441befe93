"""Services: cluster IPs and node ports are taken with the write of a service, and given back with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from ..api.resource import JSONObject
from .allocators import Reservation, ServiceAllocator
from .holds import Hold
from .store import Store

if TYPE_CHECKING:
    from .stores import Stores


class ServiceHold(Hold):
    """What one write of a service takes."""

    __slots__ = ("_allocator", "_reservation")

    def __init__(self, allocator: ServiceAllocator, reservation: Reservation) -> None:
        self._allocator = allocator
        self._reservation = reservation

    def commit(self) -> None:
        """See L{Hold.commit}; what an update let go of is free from now on."""
        self._allocator.commit(self._reservation)

    def cancel(self) -> None:
        """See L{Hold.cancel}."""
        self._allocator.cancel(self._reservation)


class ServiceStore(Store):
    """Services, with what they hold of the server's ranges."""

    context: Stores

    def loaded(self) -> None:
        """What stored services hold is taken."""
        for record in self.cache.list().records:
            self.context.services.learn(orjson.loads(record.item))

    def reserve(self, obj: JSONObject, old: JSONObject | None, dry_run: bool) -> Hold:
        """
        Fill in addresses, families and ports.

        @raise APIStatusError: What is asked for can not be had (422).
        """
        allocator = self.context.services
        return ServiceHold(allocator, allocator.allocate(obj, old, dry_run=dry_run))

    def deleted(self, obj: JSONObject) -> None:
        """Give everything back."""
        self.context.services.release(obj)
