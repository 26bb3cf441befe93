"""The store of C{IPAddress} objects; those of services are written in the transaction of the service."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Final

import orjson

from ....api import times
from ....api.addresses import parse_plain_ip
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
#: Seconds that an IPAddress may exist before its service.
GRACE_PERIOD: Final = 60.0
#: The value of the label L{MANAGED_BY} of objects of the allocator.
ALLOCATOR: Final = "ipallocator.k8s.io"
_FIELDS: Final[JSONObject] = {
    "f:metadata": {"f:labels": {".": {}, f"f:{FAMILY}": {}, f"f:{MANAGED_BY}": {}}},
    "f:spec": {"f:parentRef": {".": {}, "f:name": {}, "f:namespace": {}, "f:resource": {}}},
}


def address_object(address: str, namespace: str, service: str) -> JSONObject:
    """Return the IPAddress object for an address of a service."""
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
    """Return the cluster IPs of a service."""
    spec = service.get("spec") or {}
    cluster_ips = spec.get("clusterIPs") or ([spec["clusterIP"]] if spec.get("clusterIP") else [])
    return [canonical(ip) for ip in cluster_ips if ip and ip != "None"]


def canonical(address: str) -> str:
    """Return the canonical text of an address, which is the name of its IPAddress object."""
    try:
        return str(parse_plain_ip(address))
    except ValueError:
        return address


class IPAddressStore(Store):
    """The store of IPAddress objects, including those that clients create to reserve an address."""

    def __init__(
        self, resource: StoredResource, environment: StoreEnvironment, allocators: ServiceAllocators, stores: Stores
    ) -> None:
        """
        @param resource: The resource and its storage options.
        @param environment: The shared components of stores.
        @param allocators: The allocators of cluster IPs and node ports.
        @param stores: The container with the store of services.
        """
        self._allocators = allocators
        self._stores = stores
        super().__init__(resource, environment)

    def on_cache_synced(self) -> None:
        """Add the addresses of the objects to the allocator."""
        self._allocators.sync_allocator(self.cache, lambda obj: ObservedAllocations((obj["metadata"]["name"],)))

    def _is_used_by_service(self, obj: JSONObject) -> bool:
        """Return whether the parent of an IPAddress is a service that has the address."""
        parent = (obj.get("spec") or {}).get("parentRef") or {}
        if parent.get("resource") != "services" or parent.get("group"):
            return False
        service = self._stores.get_copy("", "services", parent.get("namespace", ""), parent.get("name", ""))
        return service is not None and obj["metadata"]["name"] in addresses_of(service)

    def _expected(self, obj: JSONObject) -> bool:
        """Return whether the service may be created soon: kube-apiserver creates the IPAddress first."""
        if find_shared_storage(self.backend) is None:
            return False
        created = obj["metadata"].get("creationTimestamp")
        return created is not None and times.posix_now() < times.seconds_since_epoch(created) + GRACE_PERIOD

    def create_write(self, address: str, namespace: str, service: str) -> Write:
        """Return the write that creates the IPAddress of an address of a service."""
        draft = self.encode(address_object(address, namespace, service))
        return Write(self.storage_key(self.cache_key("", address)), self.encode_value(draft), 0, None, draft)

    def delete_writes(self, address: str) -> list[Write]:
        """Return the write that deletes the object of an address; empty if it does not exist."""
        key = self.cache_key("", address)
        return [] if self.cache.get(key) is None else [Write(self.storage_key(key), None, None)]

    async def repair(self) -> None:
        """Create missing objects of services, and delete objects of the allocator that no service uses."""
        services = [orjson.loads(record.item) for record in self._stores.get("", "services").cache.list().records]
        for service in services:
            meta = service["metadata"]
            for address in addresses_of(service):
                if self.cache.get(self.cache_key("", address)) is None:
                    try:
                        await self.backend.commit([self.create_write(address, meta["namespace"], meta["name"])])
                    except KeyExists:
                        continue
        for record in self.cache.list().records:
            obj = orjson.loads(record.item)
            ours = (obj["metadata"].get("labels") or {}).get(MANAGED_BY) == ALLOCATOR
            if ours and not self._is_used_by_service(obj) and not self._expected(obj):
                await self.delete(RequestScope(), record.name, DeleteOptions())
