"""Services: cluster IPs and node ports are taken with the write of a service, and given back with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import orjson

from ..admission.attributes import Charge
from ..api.errors import APIStatusError
from ..api.resource import JSONObject
from ..storage.errors import KeyExists
from ..storage.record import Draft
from ..storage.values import Write
from .allocators import Reservation, ServiceAllocator
from .holds import NOTHING, Hold
from .ipaddresses import GROUP, IPAddressStore, addresses_of, canonical
from .store import Store

if TYPE_CHECKING:
    from .stores import Stores


class ServiceHold(Hold):
    """What one write of a service takes."""

    __slots__ = ("_allocator", "_reservation", "_writes")

    def __init__(self, allocator: ServiceAllocator, reservation: Reservation, writes: Sequence[Write]) -> None:
        self._allocator = allocator
        self._reservation = reservation
        self._writes = writes

    def writes(self) -> Sequence[Write]:
        """See L{Hold.writes}: the objects of the addresses that come and go."""
        return self._writes

    def commit(self) -> None:
        """See L{Hold.commit}; what an update let go of is free from now on."""
        self._allocator.commit(self._reservation)

    def cancel(self) -> None:
        """See L{Hold.cancel}."""
        self._allocator.cancel(self._reservation)

    def lose(self, address: str) -> None:
        """Somebody else has this address: it stays taken, whatever becomes of the write."""
        self._reservation.ips = [one for one in self._reservation.ips if canonical(one) != address]
        self._allocator.learn_address(address)


class Goodbye(Hold):
    """What goes with a service that is deleted."""

    __slots__ = ("_writes",)

    def __init__(self, writes: Sequence[Write]) -> None:
        self._writes = writes

    def writes(self) -> Sequence[Write]:
        """See L{Hold.writes}."""
        return self._writes


class ServiceStore(Store):
    """Services, with what they hold of the server's ranges."""

    context: Stores

    def loaded(self) -> None:
        """What stored services hold is taken."""
        for record in self.cache.list().records:
            self.context.services.learn(orjson.loads(record.item))

    @property
    def addresses(self) -> IPAddressStore | None:
        """The objects of addresses; L{None} where --runtime-config has switched them off."""
        store = self.context.find(GROUP, "ipaddresses")
        return store if isinstance(store, IPAddressStore) else None

    def reserve(self, obj: JSONObject, old: JSONObject | None, dry_run: bool) -> Hold:
        """
        Fill in addresses, families and ports.

        @raise APIStatusError: What is asked for can not be had (422).
        """
        allocator = self.context.services
        reservation = allocator.allocate(obj, old, dry_run=dry_run)
        writes: list[Write] = []
        addresses = self.addresses
        if addresses is not None and not dry_run:
            meta = obj["metadata"]
            for address in reservation.ips:
                writes.append(addresses.taking(canonical(address), meta["namespace"], meta["name"]))
            for address in reservation.freed_ips:
                writes += addresses.dropping(canonical(address))
        return ServiceHold(allocator, reservation, writes)

    async def commit(
        self, key: str, draft: Draft | None, expected: int, hold: Hold = NOTHING, charges: Sequence[Charge] = ()
    ) -> int:
        """See L{Store.commit}."""
        addresses = self.addresses
        if draft is None and addresses is not None:
            record = self.cache.get(key)
            if record is not None:
                gone = addresses_of(orjson.loads(record.item))
                hold = Goodbye([write for address in gone for write in addresses.dropping(address)])
        try:
            return await super().commit(key, draft, expected, hold, charges)
        except KeyExists as error:
            if error.key == self.path(key):
                raise
            # Somebody made the address's object at this very moment.
            assert isinstance(hold, ServiceHold)
            hold.lose(error.key.rpartition("/")[2])
            why = "failed to allocate a serviceIP: provided IP is already allocated"
            raise APIStatusError.internal(why) from None

    def deleted(self, obj: JSONObject) -> None:
        """Give everything back."""
        self.context.services.release(obj)
