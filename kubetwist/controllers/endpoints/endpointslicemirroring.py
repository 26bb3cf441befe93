"""
Mirrors custom Endpoints of services without a selector to EndpointSlices.

@see: kubernetes, C{pkg/controller/endpointslicemirroring}.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from typing import Any, ClassVar, Final

from ...api.errors import APIStatusError
from ...api.record import Record
from ...api.resource import (
    GroupVersionKind,
    JSONObject,
)
from ...registry.stores import decoded_object
from ...storage.cache.window import DELETED
from ..machinery.client import is_namespace_terminating_error
from ..machinery.controller import Controller
from ..machinery.events import WARNING
from ..machinery.metadata import controller_reference
from .endpointslice import (
    GROUP,
    MANAGED_BY,
    SERVICE_NAME,
    Ports,
    ports_of,
    to_slice_ports,
)
from .servicepods import LAST_CHANGE

#: Maximum number of mirrored addresses per subset.
CAPACITY: Final = 1000
SKIP: Final = "endpointslice.kubernetes.io/skip-mirror"
_MANAGER: Final = "endpointslicemirroring-controller.k8s.io"
_LEADER: Final = "control-plane.alpha.kubernetes.io/leader"
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_KIND: Final = GroupVersionKind("", "v1", "Endpoints")

#: Address family and ports. There is one slice for each.
_SliceKey = tuple[str, Ports]


class EndpointSliceMirroringController(Controller[str]):
    """Mirrors Endpoints. The queue contains keys of Endpoints, which are equal to the keys of services."""

    name: ClassVar[str] = "endpointslice-mirroring-controller"
    service_account: ClassVar[str] = "endpointslicemirroring-controller"
    workers: ClassVar[int] = 5

    def register_handlers(self) -> None:
        """Register handlers for Endpoints, services and EndpointSlices."""
        self._recorder = self.context.recorder("endpoint-slice-mirroring-controller")
        self._services = self.watch("", "services", self._service_changed)
        self._endpoints = self.watch("", "endpoints")
        self._slices = self.watch(GROUP, "endpointslices", self._slice_changed)
        self._by_service = self._slices.index("mirrored", _service_of)

    def _service_changed(self, event_type: str, record: Record, old: Record | None) -> None:
        if event_type == DELETED or old is None or bool(_selector(old)) != bool(_selector(record)):
            self.queue.add(record.key)

    def _slice_changed(self, event_type: str, record: Record, old: Record | None) -> None:
        for one in (record, old):
            if one is not None:
                for key in _service_of(one):
                    self.queue.add(key)

    async def sync(self, key: str) -> None:
        """See L{Controller.sync}."""
        record, service = self._endpoints.by_key(key), self._services.by_key(key)
        stored = sorted(self._by_service.get(key), key=lambda one: one.name)
        if record is None or service is None or _selector(service) or not _should_mirror(decoded_object(record)):
            for one in stored:
                await self._delete(one)
            return
        endpoints = decoded_object(record)
        desired = self._desired_endpoints(endpoints)
        surplus = []
        for one in stored:
            obj = decoded_object(one)
            slice_endpoints = desired.pop((obj.get("addressType") or "", ports_of(obj)), None)
            if slice_endpoints is None:
                surplus.append(one)
            else:
                await self._update(one, endpoints, slice_endpoints)
        for slice_key, slice_endpoints in desired.items():
            # Reusing an old slice avoids a state with missing endpoints.
            reusable = next((one for one in surplus if decoded_object(one).get("addressType") == slice_key[0]), None)
            if reusable is not None:
                surplus.remove(reusable)
                await self._update(reusable, endpoints, slice_endpoints, slice_key[1])
                continue
            try:
                await self._create(endpoints, slice_key, slice_endpoints)
            except APIStatusError as error:
                if is_namespace_terminating_error(error):
                    return
                raise
        for one in surplus:
            await self._delete(one)

    def _desired_endpoints(self, endpoints: JSONObject) -> dict[_SliceKey, list[JSONObject]]:
        """Return the endpoints to mirror, by address family and ports."""
        desired: dict[_SliceKey, list[JSONObject]] = {}
        invalid = skipped = 0
        for address, ready, ports in _repack_subsets(endpoints.get("subsets") or ()):
            try:
                ip = ip_address(address["ip"])
            except ValueError:
                invalid += 1
                continue
            group = desired.setdefault((f"IPv{ip.version}", ports), [])
            if len(group) >= CAPACITY:
                skipped += 1
                continue
            endpoint: JSONObject = {"addresses": [str(ip)], "conditions": {"ready": ready}}
            for name in ("targetRef", "nodeName", "hostname"):
                if address.get(name):
                    endpoint[name] = address[name]
            group.append(endpoint)
        if invalid:
            message = f"Skipped {invalid} invalid IP addresses when mirroring to EndpointSlices"
            self._recorder.event(_KIND, endpoints, WARNING, "InvalidIPAddress", message)
        if skipped:
            message = (
                f"A max of {CAPACITY} addresses can be mirrored to EndpointSlices per Endpoints subset. "
                f"{skipped + invalid} addresses were skipped"
            )
            self._recorder.event(_KIND, endpoints, WARNING, "TooManyAddressesToMirror", message)
        return desired

    async def _create(self, endpoints: JSONObject, slice_key: _SliceKey, slice_endpoints: list[JSONObject]) -> None:
        meta = endpoints["metadata"]
        if "deletionTimestamp" in meta:
            return
        obj: JSONObject = {
            "metadata": {
                "generateName": f"{meta['name']}-",
                "namespace": meta["namespace"],
                "labels": _labels(meta),
                "ownerReferences": [controller_reference("Endpoints", "v1", endpoints)],
            },
            "addressType": slice_key[0],
            "endpoints": slice_endpoints,
            "ports": to_slice_ports(slice_key[1]),
        }
        annotations = _annotations(meta)
        if annotations:
            obj["metadata"]["annotations"] = annotations
        await self.client.create(GROUP, "endpointslices", obj)

    async def _update(
        self, record: Record, endpoints: JSONObject, slice_endpoints: list[JSONObject], ports: Ports | None = None
    ) -> None:
        def change(obj: JSONObject) -> None:
            meta = obj["metadata"]
            meta["labels"] = _labels(endpoints["metadata"])
            annotations = _annotations(endpoints["metadata"])
            if annotations:
                meta["annotations"] = annotations
            else:
                meta.pop("annotations", None)
            meta["ownerReferences"] = [controller_reference("Endpoints", "v1", endpoints)]
            obj["endpoints"] = slice_endpoints
            if ports is not None:
                obj["ports"] = to_slice_ports(ports)

        await self.client.update(
            GROUP, "endpointslices", record.namespace, record.name, change, revision=record.revision
        )

    async def _delete(self, record: Record) -> None:
        await self.client.delete(
            GROUP, "endpointslices", record.namespace, record.name, uid=decoded_object(record)["metadata"]["uid"]
        )


def _repack_subsets(subsets: Sequence[JSONObject]) -> list[tuple[JSONObject, bool, Ports]]:
    """Return each address once with all ports at which it is ready, and once with those at which it is not."""
    by_address: dict[tuple[str, str], tuple[JSONObject, dict[Any, bool]]] = {}
    for subset in subsets:
        # An address without ports is mirrored, too.
        ports = ports_of(subset) or (None,)
        for field, ready in (("addresses", True), ("notReadyAddresses", False)):
            for address in subset.get(field) or ():
                key = address["ip"], (address.get("targetRef") or {}).get("uid") or ""
                _, states = by_address.setdefault(key, (address, {}))
                for port in ports:
                    states[port] = states.get(port, True) and ready
    repacked = []
    for address, states in by_address.values():
        for ready in (True, False):
            matching = [port for port, state in states.items() if state == ready]
            if matching:
                repacked.append((address, ready, tuple(sorted(port for port in matching if port is not None))))
    return repacked


def _should_mirror(endpoints: JSONObject) -> bool:
    """Return whether Endpoints are mirrored: neither a label nor an annotation excludes them."""
    meta = endpoints["metadata"]
    return (meta.get("labels") or {}).get(SKIP) != "true" and _LEADER not in (meta.get("annotations") or {})


def _selector(service: Record) -> Mapping[str, str]:
    selector: Mapping[str, str] = decoded_object(service)["spec"].get("selector") or {}
    return selector


def _labels(meta: JSONObject) -> dict[str, str]:
    return {**(meta.get("labels") or {}), SERVICE_NAME: meta["name"], MANAGED_BY: _MANAGER}


def _annotations(meta: JSONObject) -> dict[str, str]:
    excluded = (LAST_CHANGE, _LAST_APPLIED)
    return {name: value for name, value in (meta.get("annotations") or {}).items() if name not in excluded}


def _service_of(record: Record) -> tuple[str, ...]:
    labels = record.labels
    if labels.get(MANAGED_BY) != _MANAGER or not labels.get(SERVICE_NAME):
        return ()
    return (f"{record.namespace}/{labels[SERVICE_NAME]}",)
