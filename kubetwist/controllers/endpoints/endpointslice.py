"""
Maintains EndpointSlices: the addresses of the pods of a service, at most 100 per slice.

Slices are changed only if necessary, to keep the number of watch events low.

@see: kubernetes, C{staging/src/k8s.io/endpointslice/reconciler.go}.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from attrs import define, field

from ...api.errors import APIStatusError
from ...api.record import Record
from ...api.resource import JSONObject
from ...registry.stores import decoded_object
from ...storage.cache.window import DELETED
from ..machinery.client import is_namespace_terminating_error
from ..machinery.metadata import (
    controller_reference,
    owner_uids,
)
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

#: Maximum number of endpoints in a slice.
CAPACITY: Final = 100
GROUP: Final = "discovery.k8s.io"
SERVICE_NAME: Final = "kubernetes.io/service-name"
MANAGED_BY: Final = "endpointslice.kubernetes.io/managed-by"
_MANAGER: Final = "endpointslice-controller.k8s.io"
_RESERVED: Final = (SERVICE_NAME, MANAGED_BY, HEADLESS)
_ZONE: Final = "topology.kubernetes.io/zone"
_SAME_ZONE: Final = ("PreferClose", "PreferSameZone")
_SAME_NODE: Final = "PreferSameNode"

#: Identity of an endpoint: addresses, host name and pod.
_Identity = tuple[tuple[str, ...], str, str]
#: Ports of a slice in a hashable form.
Ports = tuple[tuple[str, int, str, str], ...]


@define(eq=False)
class Slice:
    """
    The desired state of a slice.

    @ivar record: The stored slice; L{None} for a new one.
    @ivar endpoints: The desired endpoints.
    @ivar changed: Whether they differ from the stored endpoints.
    """

    family: str
    ports: Ports
    record: Record | None = None
    endpoints: list[JSONObject] = field(factory=list)
    changed: bool = False


def reconcile_slices(
    stored: Sequence[Record], desired: dict[_Identity, JSONObject], family: str, ports: Ports
) -> tuple[list[Slice], list[Record]]:
    """
    Assign endpoints to slices. Existing endpoints keep their slice; new ones are added to changed slices first.

    @param stored: The stored slices with these ports.
    @return: The desired slices, and the stored slices that are empty now.
    """
    slices, empty = [], []
    remaining = dict(desired)
    for record in stored:
        old_endpoints = decoded_object(record).get("endpoints") or ()
        one = Slice(family, ports, record)
        for old in old_endpoints:
            new = remaining.pop(_identity(old), None)
            if new is not None:
                one.endpoints.append(new)
                one.changed = one.changed or new != old
        one.changed = one.changed or len(old_endpoints) != len(one.endpoints)
        if one.endpoints:
            slices.append(one)
        else:
            empty.append(record)
    new_endpoints = list(remaining.values())
    for one in sorted((one for one in slices if one.changed), key=lambda one: -len(one.endpoints)):
        _fill(one, new_endpoints)
    while new_endpoints:
        candidates = [one for one in slices if not one.changed and len(one.endpoints) + len(new_endpoints) <= CAPACITY]
        if candidates:
            chosen = max(candidates, key=lambda one: len(one.endpoints))
        else:
            chosen = Slice(family, ports)
            slices.append(chosen)
        _fill(chosen, new_endpoints)
    return slices, empty


def _fill(one: Slice, new_endpoints: list[JSONObject]) -> None:
    space = CAPACITY - len(one.endpoints)
    if space > 0 and new_endpoints:
        one.endpoints += new_endpoints[:space]
        del new_endpoints[:space]
        one.changed = True


def _identity(endpoint: JSONObject) -> _Identity:
    target = endpoint.get("targetRef") or {}
    pod = f"{target.get('namespace')}/{target.get('name')}"
    return tuple(sorted(endpoint.get("addresses") or ())), endpoint.get("hostname") or "", pod


def ports_of(obj: JSONObject) -> Ports:
    """Return the ports of a slice, or of a subset of Endpoints."""
    return tuple(
        sorted(
            (
                port.get("name") or "",
                port.get("port") or 0,
                port.get("protocol") or "TCP",
                port.get("appProtocol") or "",
            )
            for port in obj.get("ports") or ()
        )
    )


def to_slice_ports(ports: Ports) -> list[JSONObject] | None:
    """Return ports in the format of EndpointSlices."""
    slice_ports = []
    for name, number, protocol, application in ports:
        port: JSONObject = {"name": name, "port": number, "protocol": protocol}
        if application:
            port["appProtocol"] = application
        slice_ports.append(port)
    return slice_ports or None


class EndpointSliceController(ServicePodsController):
    """Maintains the EndpointSlices of services with a selector."""

    name: ClassVar[str] = "endpointslice-controller"

    def register_handlers(self) -> None:
        """Register handlers for services, pods, nodes and EndpointSlices."""
        #: Keys of services with pods on a missing node, by node name.
        self._waiting_for_node: dict[str, set[str]] = {}
        #: Revisions of slices before the current write, by key.
        self._writing: dict[str, int] = {}
        super().register_handlers()
        self._nodes = self.watch("", "nodes", self._node_changed)
        self._slices = self.watch(GROUP, "endpointslices", self._slice_changed)
        self._by_service = self._slices.index("service", _service_of)

    def _node_changed(self, event_type: str, record: Record, old: Record | None) -> None:
        if event_type != DELETED:
            for key in self._waiting_for_node.pop(record.name, ()):
                self.queue.add(key)

    def _slice_changed(self, event_type: str, record: Record, old: Record | None) -> None:
        if old is not None and self._writing.get(record.key) == old.revision:
            # A concurrent write would have raised a conflict.
            return
        for one in (record, old):
            if one is not None:
                for key in _service_of(one):
                    self.queue.add(key)

    async def sync(self, key: str) -> None:
        """See L{Controller.sync}."""
        record = self.services.by_key(key)
        if record is None:
            # The garbage collector deletes the slices of a deleted service.
            self.times.forget(key)
            return
        service = decoded_object(record)
        selector = selector_of(service)
        if selector is None:
            return
        pods = await self.pods_of(record.namespace, selector)
        changed = self.times.changed(key, service, pods)
        stored = [
            one for one in self._by_service.get(key) if "deletionTimestamp" not in decoded_object(one)["metadata"]
        ]
        families = _families(service)
        uid = service["metadata"]["uid"]
        matching = [
            one for one in stored if decoded_object(one).get("addressType") in families and uid in owner_uids(one)
        ]
        surplus = [one for one in stored if one not in matching]
        slices: list[Slice] = []
        for family in families:
            existing = sorted(
                (one for one in matching if decoded_object(one)["addressType"] == family), key=lambda one: one.name
            )
            desired = await self._endpoints(key, service, pods, family)
            reconciled, empty = _reconcile_family(existing, desired, family)
            slices += reconciled
            surplus += _reuse_surplus(reconciled, empty)
        await self._write(service, slices, surplus, changed)

    async def _endpoints(
        self, key: str, service: JSONObject, pods: Sequence[JSONObject], family: str
    ) -> dict[Ports, dict[_Identity, JSONObject]]:
        """Return the desired endpoints, by ports."""
        publish_not_ready = bool(service["spec"].get("publishNotReadyAddresses"))
        distribution = service["spec"].get("trafficDistribution") or ""
        endpoints: dict[Ports, dict[_Identity, JSONObject]] = {}
        for number, pod in enumerate(pods, 1):
            if number % YIELD_EVERY == 0:
                await self.yield_to_reactor()
            if not should_be_in_endpoints(pod, terminating=True):
                continue
            node_name = pod["spec"].get("nodeName") or ""
            node = self._nodes.get("", node_name) if node_name else None
            if node is None and not publish_not_ready:
                # The zone is unknown until the node exists. The endpoint is published then.
                if node_name:
                    self._waiting_for_node.setdefault(node_name, set()).add(key)
                continue
            ips = [str(address) for address in addresses(pod, family)]
            ports = _endpoint_ports(pod, service)
            if not ips:
                continue
            zone = "" if node is None else node.labels.get(_ZONE) or ""
            endpoint = _endpoint(pod, service, ips, zone)
            hints = _hints(endpoint, distribution)
            if hints:
                endpoint["hints"] = hints
            endpoints.setdefault(ports, {})[_identity(endpoint)] = endpoint
        return endpoints

    async def _write(self, service: JSONObject, slices: Sequence[Slice], surplus: Sequence[Record], time: str) -> None:
        meta = service["metadata"]
        namespace = meta["namespace"]
        labels = _labels(service)
        for one in slices:
            if one.record is not None:
                if one.changed or decoded_object(one.record)["metadata"].get("labels") != labels:
                    await self._update(one, one.record, labels, time)
            elif "deletionTimestamp" not in meta:
                try:
                    await self._create(one, service, labels, time)
                except APIStatusError as error:
                    if is_namespace_terminating_error(error):
                        return
                    raise
            await self.yield_to_reactor()
        for record in surplus:
            uid = decoded_object(record)["metadata"]["uid"]
            await self.client.delete(GROUP, "endpointslices", namespace, record.name, uid=uid)

    async def _create(self, one: Slice, service: JSONObject, labels: Mapping[str, str], time: str) -> None:
        meta: JSONObject = {
            "generateName": f"{service['metadata']['name']}-",
            "namespace": service["metadata"]["namespace"],
            "labels": dict(labels),
            "ownerReferences": [controller_reference("Service", "v1", service)],
        }
        if time:
            meta["annotations"] = {LAST_CHANGE: time}
        obj = {
            "metadata": meta,
            "addressType": one.family,
            "endpoints": one.endpoints or None,
            "ports": to_slice_ports(one.ports),
        }
        await self.client.create(GROUP, "endpointslices", obj)

    async def _update(self, one: Slice, record: Record, labels: Mapping[str, str], time: str) -> None:
        def change(obj: JSONObject) -> None:
            meta = obj["metadata"]
            meta["labels"] = dict(labels)
            annotations = meta.setdefault("annotations", {})
            if time:
                annotations[LAST_CHANGE] = time
            else:
                annotations.pop(LAST_CHANGE, None)
            if not annotations:
                del meta["annotations"]
            obj["endpoints"] = one.endpoints or None
            if ports_of(obj) != one.ports:
                obj["ports"] = to_slice_ports(one.ports)

        self._writing[record.key] = record.revision
        try:
            await self.client.update(
                GROUP, "endpointslices", record.namespace, record.name, change, revision=record.revision
            )
        finally:
            del self._writing[record.key]


def _reconcile_family(
    stored: Sequence[Record], desired: dict[Ports, dict[_Identity, JSONObject]], family: str
) -> tuple[list[Slice], list[Record]]:
    """Return the desired slices of an address family, and surplus stored slices."""
    by_ports: dict[Ports, list[Record]] = {}
    for record in stored:
        by_ports.setdefault(ports_of(decoded_object(record)), []).append(record)
    slices: list[Slice] = []
    surplus: list[Record] = []
    for ports, endpoints in desired.items():
        reconciled, empty = reconcile_slices(by_ports.pop(ports, []), endpoints, family, ports)
        slices += reconciled
        surplus += empty
    for records in by_ports.values():
        surplus += records
    if not slices:
        # An empty slice signals that there are no endpoints, as opposed to unknown ones.
        placeholder = next(
            (
                one
                for one in surplus
                if not decoded_object(one).get("endpoints") and not decoded_object(one).get("ports")
            ),
            None,
        )
        slices.append(Slice(family, (), placeholder))
        surplus = [one for one in surplus if one is not placeholder]
    return slices, surplus


def _reuse_surplus(slices: Sequence[Slice], surplus: Sequence[Record]) -> list[Record]:
    """Replace new slices by surplus ones, and return the remaining surplus slices."""
    remaining = list(surplus)
    for one in slices:
        if one.record is None and remaining:
            one.record, one.changed = remaining.pop(0), True
    return remaining


def _service_of(record: Record) -> tuple[str, ...]:
    labels = record.labels
    if labels.get(MANAGED_BY) != _MANAGER or not labels.get(SERVICE_NAME):
        return ()
    return (f"{record.namespace}/{labels[SERVICE_NAME]}",)


def _labels(service: JSONObject) -> dict[str, str]:
    meta = service["metadata"]
    labels = {name: value for name, value in (meta.get("labels") or {}).items() if name not in _RESERVED}
    if is_headless(service):
        labels[HEADLESS] = ""
    return {**labels, SERVICE_NAME: meta["name"], MANAGED_BY: _MANAGER}


def _families(service: JSONObject) -> tuple[str, ...]:
    spec = service["spec"]
    if spec.get("ipFamilies"):
        return tuple(spec["ipFamilies"])
    if not is_headless(service):
        return ("IPv6",) if ":" in spec["clusterIP"] else ("IPv4",)
    return ("IPv4", "IPv6")


def _endpoint_ports(pod: JSONObject, service: JSONObject) -> Ports:
    """Return the ports of a service in a pod, without those that the pod does not have."""
    ports = []
    for port in service["spec"].get("ports") or ():
        number = port_number(pod, port)
        if number is not None:
            ports.append((port.get("name") or "", number, port.get("protocol") or "TCP", port.get("appProtocol") or ""))
    return tuple(sorted(ports))


def _endpoint(pod: JSONObject, service: JSONObject, ips: list[str], zone: str) -> JSONObject:
    serving, terminating = is_ready(pod), "deletionTimestamp" in pod["metadata"]
    ready = bool(service["spec"].get("publishNotReadyAddresses")) or (serving and not terminating)
    endpoint: JSONObject = {
        "addresses": ips,
        "conditions": {"ready": ready, "serving": serving, "terminating": terminating},
        "targetRef": reference_to(pod),
    }
    for name, value in (
        ("nodeName", pod["spec"].get("nodeName")),
        ("zone", zone),
        ("hostname", host_name(pod, service)),
    ):
        if value:
            endpoint[name] = value
    return endpoint


def _hints(endpoint: JSONObject, distribution: str) -> JSONObject | None:
    """Return the topology hints of an endpoint."""
    hints: JSONObject = {}
    if not endpoint["conditions"]["ready"] or distribution not in (*_SAME_ZONE, _SAME_NODE):
        return None
    if endpoint.get("zone"):
        hints["forZones"] = [{"name": endpoint["zone"]}]
    if distribution == _SAME_NODE and endpoint.get("nodeName"):
        hints["forNodes"] = [{"name": endpoint["nodeName"]}]
    return hints or None
