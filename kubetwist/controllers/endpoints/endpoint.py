"""
Maintains Endpoints: the addresses of the pods of a service.

@see: kubernetes, C{pkg/controller/endpoint/endpoints_controller.go}.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import ClassVar, Final

from ...api.errors import APIStatusError
from ...api.record import Record
from ...api.resource import (
    GroupVersionKind,
    JSONObject,
)
from ...registry.stores import decoded_object
from ...storage.cache.window import DELETED
from ..machinery.client import is_namespace_terminating_error
from ..machinery.events import WARNING
from ..workloads.pods import is_ready
from .servicepods import (
    HEADLESS,
    LAST_CHANGE,
    YIELD_EVERY,
    ServicePodsController,
    addresses,
    host_name,
    is_headless,
    port_number,
    reference_to,
    selector_of,
    should_be_in_endpoints,
)

#: Maximum number of addresses in Endpoints.
CAPACITY: Final = 1000
_OVER_CAPACITY: Final = "endpoints.kubernetes.io/over-capacity"
_MANAGED_BY: Final = "endpoints.kubernetes.io/managed-by"
_MANAGER: Final = "endpoint-controller"
_LEADER: Final = "control-plane.alpha.kubernetes.io/leader"
#: Endpoints that the server maintains without this controller.
_KUBERNETES_SERVICE: Final = "default/kubernetes"
_KIND: Final = GroupVersionKind("", "v1", "Endpoints")

#: Name, number, protocol and application protocol of a port.
_Port = tuple[str, int, str, str]
#: Sort key of an address, and the address.
_Address = tuple[tuple[bytes, str], JSONObject]


class EndpointsController(ServicePodsController):
    """Maintains the Endpoints of services with a selector."""

    name: ClassVar[str] = "endpoints-controller"
    service_account: ClassVar[str] = "endpoint-controller"

    def register_handlers(self) -> None:
        """Register handlers for services, pods and Endpoints."""
        super().register_handlers()
        self._endpoints = self.watch("", "endpoints", self._endpoints_changed)
        self._recorder = self.context.recorder(_MANAGER)

    def _endpoints_changed(self, event_type: str, record: Record, old: Record | None) -> None:
        if event_type == DELETED:
            self.queue.add(record.key)

    def _handlers_ready(self) -> None:
        # Endpoints of services that were deleted while no controller ran may remain.
        for record in self._endpoints.list():
            if record.key != _KUBERNETES_SERVICE and self.services.by_key(record.key) is None:
                self.queue.add(record.key)
        super()._handlers_ready()

    async def sync(self, key: str) -> None:
        """See L{Controller.sync}."""
        record, existing = self.services.by_key(key), self._endpoints.by_key(key)
        if record is None:
            self.times.forget(key)
            if existing is not None and _LEADER not in (decoded_object(existing)["metadata"].get("annotations") or {}):
                await self.client.delete("", "endpoints", existing.namespace, existing.name)
            return
        service = decoded_object(record)
        selector = selector_of(service)
        if selector is None:
            return
        pods = await self.pods_of(record.namespace, selector)
        changed = self.times.changed(key, service, pods)
        subsets = await self._subsets(service, pods)
        truncated = _truncate(subsets)
        labels = dict(service["metadata"].get("labels") or {})
        labels.pop(HEADLESS, None)
        if is_headless(service):
            labels[HEADLESS] = ""
        labels[_MANAGED_BY] = _MANAGER
        existing_obj = None if existing is None else decoded_object(existing)
        if existing_obj is not None:
            meta = existing_obj["metadata"]
            is_marked = _OVER_CAPACITY in (meta.get("annotations") or {})
            if (
                (existing_obj.get("subsets") or []) == subsets
                and meta.get("labels") == labels
                and is_marked == truncated
            ):
                return

        def change(obj: JSONObject) -> None:
            obj["metadata"]["labels"] = labels
            annotations = obj["metadata"].setdefault("annotations", {})
            for name, value in ((LAST_CHANGE, changed), (_OVER_CAPACITY, "truncated" if truncated else "")):
                if value:
                    annotations[name] = value
                else:
                    annotations.pop(name, None)
            if not annotations:
                del obj["metadata"]["annotations"]
            obj["subsets"] = subsets
            if not subsets:
                del obj["subsets"]

        await self._write(record, existing_obj, change)

    async def _write(self, service: Record, existing: JSONObject | None, change: Callable[[JSONObject], None]) -> None:
        namespace, name = service.namespace, service.name
        try:
            if existing is None:
                new: JSONObject = {"metadata": {"name": name, "namespace": namespace}}
                change(new)
                await self.client.create("", "endpoints", new)
            else:
                await self.client.update("", "endpoints", namespace, name, change, uid=existing["metadata"]["uid"])
        except APIStatusError as error:
            if existing is None and is_namespace_terminating_error(error):
                return
            if error.code not in (404, 409):
                involved = {"metadata": {"name": name, "namespace": namespace}} if existing is None else existing
                action = "create endpoint for service" if existing is None else "update endpoint"
                reason = "FailedToCreateEndpoint" if existing is None else "FailedToUpdateEndpoint"
                self._recorder.event(
                    _KIND, involved, WARNING, reason, f"Failed to {action} {namespace}/{name}: {error.message}"
                )
            raise

    async def _subsets(self, service: JSONObject, pods: list[JSONObject]) -> list[JSONObject]:
        """Return the subsets: the pods' addresses grouped by ports, in a stable order."""
        spec = service["spec"]
        publish_not_ready = bool(spec.get("publishNotReadyAddresses"))
        groups: dict[tuple[_Port, ...], tuple[list[_Address], list[_Address]]] = {}
        for number, pod in enumerate(pods, 1):
            if number % YIELD_EVERY == 0:
                await self.yield_to_reactor()
            if not should_be_in_endpoints(pod, terminating=publish_not_ready):
                continue
            address = _address(pod, service)
            ports = _ports(pod, service)
            if address is None or ports is None:
                continue
            ready, unready = groups.setdefault(ports, ([], []))
            (ready if publish_not_ready or is_ready(pod) else unready).append(address)
        subsets = []
        for ports in sorted(groups):
            subset: JSONObject = {}
            for field, members in zip(("addresses", "notReadyAddresses"), groups[ports], strict=True):
                if members:
                    subset[field] = [one for _, one in sorted(members, key=lambda pair: pair[0])]
            if ports:
                subset["ports"] = [_port(*port) for port in ports]
            subsets.append(subset)
        return subsets


def _address(pod: JSONObject, service: JSONObject) -> _Address | None:
    """Return the address of a pod in the first family of its service, with its sort key."""
    spec = service["spec"]
    families = spec.get("ipFamilies")
    if families:
        family = families[0]
    elif not is_headless(service):
        family = "IPv6" if ":" in spec["clusterIP"] else "IPv4"
    else:
        family = "IPv6" if ":" in (pod["status"].get("podIP") or "") else "IPv4"
    pod_addresses = addresses(pod, family)
    if not pod_addresses:
        return None
    address: JSONObject = {"ip": str(pod_addresses[0]), "targetRef": reference_to(pod)}
    if pod["spec"].get("nodeName"):
        address["nodeName"] = pod["spec"]["nodeName"]
    if host_name(pod, service):
        address["hostname"] = host_name(pod, service)
    return (pod_addresses[0].packed, pod["metadata"]["uid"]), address


def _ports(pod: JSONObject, service: JSONObject) -> tuple[_Port, ...] | None:
    """Return the ports of a service in a pod, or L{None} if it has none of them."""
    ports = service["spec"].get("ports") or ()
    if not ports:
        return () if is_headless(service) else None
    resolved = set()
    for port in ports:
        number = port_number(pod, port)
        if number is not None:
            resolved.add((port.get("name") or "", number, port.get("protocol") or "TCP", port.get("appProtocol") or ""))
    return tuple(sorted(resolved)) or None


def _port(name: str, number: int, protocol: str, application: str) -> JSONObject:
    port: JSONObject = {"port": number, "protocol": protocol}
    if name:
        port["name"] = name
    if application:
        port["appProtocol"] = application
    return port


def _truncate(subsets: list[JSONObject]) -> bool:
    """
    Remove addresses above the capacity, proportionally from all subsets and not ready ones first.

    @return: Whether addresses were removed.
    """
    ready = sum(len(one.get("addresses") or ()) for one in subsets)
    unready = sum(len(one.get("notReadyAddresses") or ()) for one in subsets)
    if ready + unready <= CAPACITY:
        return False
    field, total, limit = "notReadyAddresses", unready, CAPACITY - ready
    if ready > CAPACITY:
        field, total, limit = "addresses", ready, CAPACITY
    remaining = limit
    for subset in subsets:
        if field == "addresses":
            subset.pop("notReadyAddresses", None)
        members = subset.get(field) or []
        share = min(ceil(len(members) / total * limit), remaining)
        remaining -= share
        if members[:share]:
            subset[field] = members[:share]
        else:
            subset.pop(field, None)
    subsets[:] = [one for one in subsets if one.get("addresses") or one.get("notReadyAddresses")]
    return True
