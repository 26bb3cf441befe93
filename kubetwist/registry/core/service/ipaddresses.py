"""The C{IPAddress} objects that show whose every cluster IP is; those of services are written with the service."""

from __future__ import annotations

import ipaddress
import uuid
from typing import TYPE_CHECKING, Final

import orjson

from ....api import times
from ....api.options import DeleteOptions
from ....api.requestscope import RequestScope
from ....api.resource import JSONObject
from ....api.storage import Write
from ....storage.errors import KeyExists
from ....storage.wrappers import find_shared_storage
from ...generic.environment import StoredResource, StoreEnvironment
from ...generic.store import Store
from .allocator import ObservedAllocations
from .serverallocators import ServiceAllocators

if TYPE_CHECKING:
    from ...stores import Stores

GROUP: Final = "networking.k8s.io"
FAMILY: Final = "ipaddress.kubernetes.io/ip-family"
MANAGED_BY: Final = "ipaddress.kubernetes.io/managed-by"
#: Seconds that an address may be there before its service is.
GRACE: Final = 60.0
#: What L{MANAGED_BY} says of those that are ours.
ALLOCATOR: Final = "ipallocator.k8s.io"
_FIELDS: Final[JSONObject] = {
    "f:metadata": {"f:labels": {".": {}, f"f:{FAMILY}": {}, f"f:{MANAGED_BY}": {}}},
    "f:spec": {"f:parentRef": {".": {}, "f:name": {}, "f:namespace": {}, "f:resource": {}}},
}


def address_object(address: str, namespace: str, service: str) -> JSONObject:
    """What stands for an address of a service."""
    now = times.now()
    return {
        "metadata": {
            "name": address,
            "uid": str(uuid.uuid4()),
            "creationTimestamp": now,
            "labels": {FAMILY: "IPv6" if ":" in address else "IPv4", MANAGED_BY: ALLOCATOR},
            "managedFields": [
                {
                    "manager": "kube-apiserver",
                    "operation": "Update",
                    "apiVersion": f"{GROUP}/v1",
                    "time": now,
                    "fieldsType": "FieldsV1",
                    "fieldsV1": _FIELDS,
                }
            ],
        },
        "spec": {"parentRef": {"resource": "services", "namespace": namespace, "name": service}},
    }


def addresses_of(service: JSONObject) -> list[str]:
    """The cluster IPs that a service holds."""
    spec = service.get("spec") or {}
    given = spec.get("clusterIPs") or ([spec["clusterIP"]] if spec.get("clusterIP") else [])
    return [canonical(one) for one in given if one and one != "None"]


def canonical(address: str) -> str:
    """An address as its object is named."""
    try:
        return str(ipaddress.ip_address(address))
    except ValueError:
        return address


class IPAddressStore(Store):
    """All of them, also those that clients make to keep an address for themselves."""

    def __init__(
        self, resource: StoredResource, environment: StoreEnvironment, allocators: ServiceAllocators, stores: Stores
    ) -> None:
        """
        @param allocators: What services allocate from.
        @param stores: Where services are.
        """
        self._allocators = allocators
        self._stores = stores
        super().__init__(resource, environment)

    def on_cache_synced(self) -> None:
        """None of these is free."""
        self._allocators.follow(self.cache, lambda obj: ObservedAllocations((obj["metadata"]["name"],)))

    def _held(self, obj: JSONObject) -> bool:
        parent = (obj.get("spec") or {}).get("parentRef") or {}
        if parent.get("resource") != "services" or parent.get("group"):
            return False
        service = self._stores.get_copy("", "services", parent.get("namespace", ""), parent.get("name", ""))
        return service is not None and obj["metadata"]["name"] in addresses_of(service)

    def _expected(self, obj: JSONObject) -> bool:
        """Whether the service may be about to come: kube-apiserver makes the address first."""
        if find_shared_storage(self.backend) is None:
            return False
        made = obj["metadata"].get("creationTimestamp")
        return made is not None and times.posix_now() < times.seconds_since_epoch(made) + GRACE

    def taking(self, address: str, namespace: str, service: str) -> Write:
        """The write that makes the object of a service's address."""
        draft = self.encode(address_object(address, namespace, service))
        return Write(self.storage_key(self.cache_key("", address)), self.encode_value(draft), 0, None, draft)

    def dropping(self, address: str) -> list[Write]:
        """The write that deletes it; none when it is not there."""
        key = self.cache_key("", address)
        return [] if self.cache.get(key) is None else [Write(self.storage_key(key), None, None)]

    async def repair(self) -> None:
        """Make what services have no object for, and delete our objects that no service has."""
        services = [orjson.loads(record.item) for record in self._stores.get("", "services").cache.list().records]
        for service in services:
            meta = service["metadata"]
            for address in addresses_of(service):
                if self.cache.get(self.cache_key("", address)) is None:
                    try:
                        await self.backend.commit([self.taking(address, meta["namespace"], meta["name"])])
                    except KeyExists:
                        continue
        for record in self.cache.list().records:
            obj = orjson.loads(record.item)
            ours = (obj["metadata"].get("labels") or {}).get(MANAGED_BY) == ALLOCATOR
            if ours and not self._held(obj) and not self._expected(obj):
                await self.delete(RequestScope(), record.name, DeleteOptions())
