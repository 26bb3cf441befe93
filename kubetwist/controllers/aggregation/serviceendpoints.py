"""
Resolves services to their ready endpoints.

@see: kubernetes/apiserver, C{pkg/util/proxy/proxy.go}: C{ResolveEndpoint}.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from twisted.internet.interfaces import IReactorTime

from ...api.go.quote import quoted
from ...api.resource import JSONObject
from ...client.services import NoSuchService
from ...registry.stores import decoded_object
from ..machinery.informer import (
    Informer,
    StoreSource,
)

if TYPE_CHECKING:
    from ...api.record import Record
    from ...registry.stores import Stores

SERVICE_LABEL: Final = "kubernetes.io/service-name"
_ROUTED: Final = ("ClusterIP", "NodePort", "LoadBalancer")


class ServiceEndpoints:
    """Services and their EndpointSlices, read from informers."""

    def __init__(self, stores: Stores, clock: IReactorTime) -> None:
        self._services = Informer(StoreSource(stores.get("", "services")), clock)
        slices = stores.find("discovery.k8s.io", "endpointslices")
        self._slices = None if slices is None else Informer(StoreSource(slices), clock)
        self._by_service = None if self._slices is None else self._slices.index("service", _service_of)

    def start(self) -> None:
        """Start the informers. Idempotent."""
        self._services.start()
        if self._slices is not None:
            self._slices.start()

    def when_handlers_synced(self, done: Callable[[], object]) -> None:
        """Call C{done} when both informers have synced."""
        if self._slices is None:
            done()
        else:
            self._slices.when_handlers_synced(done)

    def stop(self) -> None:
        """Stop the informers."""
        self._services.stop()
        if self._slices is not None:
            self._slices.stop()

    def on_change(self, changed: Callable[[str, str], object]) -> None:
        """Call C{changed} with the namespace and name of each service that changes or whose endpoints change."""

        def service(event_type: str, record: Record, old: Record | None) -> None:
            changed(record.namespace, record.name)

        def slice_changed(event_type: str, record: Record, old: Record | None) -> None:
            for one in (record, old):
                if one is not None and one.labels.get(SERVICE_LABEL):
                    changed(one.namespace, one.labels[SERVICE_LABEL])

        self._services.add_event_handler(service, initial=False)
        if self._slices is not None:
            self._slices.add_event_handler(slice_changed, initial=False)

    def service(self, namespace: str, name: str) -> JSONObject | None:
        """Return a service, or L{None}. It is shared and must not be changed."""
        return self._services.get_decoded(namespace, name)

    def slices(self, namespace: str, name: str) -> Sequence[JSONObject]:
        """Return the EndpointSlices of a service. They are shared and must not be changed."""
        if self._by_service is None:
            return ()
        return [decoded_object(record) for record in self._by_service.get((namespace, name))]

    def endpoints(self, namespace: str, name: str, port: int) -> Sequence[tuple[str, int]]:
        """
        Return the addresses and ports of the ready endpoints of a service port, in the preferred address family.

        @raise NoSuchService: The service does not exist or has no ready endpoint.
        """
        service = self.service(namespace, name)
        if service is None:
            raise NoSuchService(f"service {quoted(name)} not found")
        spec = service.get("spec") or {}
        kind = spec.get("type") or "ClusterIP"
        if kind not in _ROUTED:
            raise NoSuchService(f"unsupported service type {quoted(kind)}")
        service_port = next((one for one in spec.get("ports") or () if one.get("port") == port), None)
        if service_port is None:
            raise NoSuchService(f"no service port {port} found for service {quoted(name)}")
        families = spec.get("ipFamilies") or ()
        targets = ready_endpoints(self.slices(namespace, name), service_port.get("name") or "", families)
        if not targets:
            raise NoSuchService(f"no endpoints available for service {quoted(name)}")
        return targets


def has_ready_endpoint(slices: Iterable[JSONObject], port_name: str) -> bool:
    """Return whether a slice with a port of that name has a ready endpoint."""
    return any(any(map(_is_ready, one.get("endpoints") or ())) and _port(one, port_name) is not None for one in slices)


def ready_endpoints(
    slices: Iterable[JSONObject], port_name: str, families: Sequence[str] = ()
) -> list[tuple[str, int]]:
    """
    Return the addresses and ports of ready endpoints.

    @param slices: The EndpointSlices of the service.
    @param port_name: The name of the service port.
    @param families: Address families in order of preference. Only the first one with addresses is used.
    """
    by_family: dict[str, list[tuple[str, int]]] = {}
    for one in slices:
        port = _port(one, port_name)
        if port is None:
            continue
        targets = by_family.setdefault(one.get("addressType") or "", [])
        for endpoint in one.get("endpoints") or ():
            addresses = endpoint.get("addresses")
            if addresses and _is_ready(endpoint):
                targets.append((addresses[0], port))
    preferred = by_family.get(families[0]) if families else None
    return sorted(set(preferred or [one for targets in by_family.values() for one in targets]))


def _port(one: JSONObject, name: str) -> int | None:
    for port in one.get("ports") or ():
        number: int | None = port.get("port")
        # A slice without a service name belongs to no service.
        if number is not None and port.get("name") == name:
            return number
    return None


def _is_ready(endpoint: JSONObject) -> bool:
    return (endpoint.get("conditions") or {}).get("ready") is not False


def _service_of(record: Record) -> Iterable[tuple[str, str]]:
    name = record.labels.get(SERVICE_LABEL)
    return ((record.namespace, name),) if name else ()
