"""
Services and their pods, for the controllers of Endpoints and EndpointSlices.

@see: kubernetes, C{staging/src/k8s.io/endpointslice/util}.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import ClassVar, Final

from ...api.jsontypes import JSONValue
from ...api.record import Record
from ...api.resource import JSONObject
from ...registry.stores import decoded_object
from ...storage.cache.window import DELETED
from ..machinery.controller import Controller
from ..machinery.informer import Informer
from ..workloads.pods import (
    condition_of,
    is_ready,
    phase_of,
)

HEADLESS: Final = "service.kubernetes.io/headless"
LAST_CHANGE: Final = "endpoints.kubernetes.io/last-change-trigger-time"
#: Number of pods that are processed between two yields to the reactor.
YIELD_EVERY: Final = 200


def should_be_in_endpoints(pod: JSONObject, *, terminating: bool) -> bool:
    """
    Return whether a pod belongs in the endpoints of a service (Go: ShouldPodBeInEndpoints).

    @param terminating: Whether terminating pods belong in them.
    """
    status = pod.get("status") or {}
    if phase_of(pod) in ("Succeeded", "Failed") or not (status.get("podIP") or status.get("podIPs")):
        return False
    return terminating or "deletionTimestamp" not in pod["metadata"]


def addresses(pod: JSONObject, family: str) -> list[IPv4Address | IPv6Address]:
    """Return the IP addresses of a pod in the family C{IPv4} or C{IPv6}."""
    status = pod.get("status") or {}
    texts = [one.get("ip") or "" for one in status.get("podIPs") or ()] or [status.get("podIP") or ""]
    parsed = [_address(text) for text in texts]
    return [address for address in parsed if address is not None and f"IPv{address.version}" == family]


@lru_cache(maxsize=16384)
def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None


def port_number(pod: JSONObject, port: JSONObject) -> int | None:
    """Return the port number of a service port in a pod, or L{None} (Go: FindPort)."""
    target = port.get("targetPort")
    if not isinstance(target, str):
        return int(target or port["port"])
    spec, protocol = pod["spec"], port.get("protocol") or "TCP"
    sidecars = [one for one in spec.get("initContainers") or () if one.get("restartPolicy") == "Always"]
    for container in [*(spec.get("containers") or ()), *sidecars]:
        for container_port in container.get("ports") or ():
            if container_port.get("name") == target and (container_port.get("protocol") or "TCP") == protocol:
                number: int = container_port["containerPort"]
                return number
    return None


def host_name(pod: JSONObject, service: JSONObject) -> str:
    """Return the host name of a pod in the subdomain of a service; C{""} if none."""
    spec = pod["spec"]
    return str(spec.get("hostname") or "") if spec.get("subdomain") == service["metadata"]["name"] else ""


def is_headless(service: JSONObject) -> bool:
    """Return whether a service is headless: it has no cluster IP."""
    return (service["spec"].get("clusterIP") or "None") == "None"


def reference_to(pod: JSONObject) -> JSONObject:
    """Return the C{targetRef} of an endpoint."""
    meta = pod["metadata"]
    return {"kind": "Pod", "namespace": meta["namespace"], "name": meta["name"], "uid": meta["uid"]}


def selector_of(service: JSONObject) -> Mapping[str, str] | None:
    """Return the selector of a service, or L{None} if no controller manages its endpoints."""
    spec = service["spec"]
    if spec.get("type") == "ExternalName":
        return None
    selector: Mapping[str, str] | None = spec.get("selector")
    return selector or None


class TriggerTimeTracker:
    """
    Computes the time of the change that triggers a write of endpoints (Go: TriggerTimeTracker).

    Times are strings in the format of the API, which sort chronologically.
    """

    def __init__(self) -> None:
        self._last_times: dict[str, tuple[str, dict[str, str]]] = {}

    def changed(self, key: str, service: JSONObject, pods: Sequence[JSONObject]) -> str:
        """Return the earliest change since the last call; C{""} if unknown."""
        created = service["metadata"].get("creationTimestamp") or ""
        times = {
            pod["metadata"]["name"]: (condition_of(pod, "Ready") or {}).get("lastTransitionTime") or "" for pod in pods
        }
        previous = self._last_times.get(key)
        self._last_times[key] = created, times
        if previous is None:
            return created
        created_before, pods_before = previous
        changes = [time for name, time in times.items() if time > pods_before.get(name, "")]
        if created > created_before:
            changes.append(created)
        return min(changes, default="")

    def forget(self, key: str) -> None:
        """Remove a deleted service."""
        self._last_times.pop(key, None)


class ServicePodsController(Controller[str]):
    """Watches services and pods. The queue contains keys of services."""

    workers: ClassVar[int] = 5

    def register_handlers(self) -> None:
        """Register handlers for services and pods."""
        self.times = TriggerTimeTracker()
        self.services: Informer = self.watch("", "services")
        self._selecting = self.services.index("selecting", _selecting)
        self.pods: Informer = self.watch("", "pods", self._pod_changed)

    def _pod_changed(self, event_type: str, record: Record, old: Record | None) -> None:
        services = self._selecting.get(record.namespace)
        if not services:
            return
        labels = record.labels
        old_labels = labels if old is None else old.labels
        handled = event_type == DELETED or old is None or labels != old_labels
        for service in services:
            selector = (selector_of(decoded_object(service)) or {}).items()
            if selector <= labels.items() or selector <= old_labels.items():
                if not handled:
                    assert old is not None
                    if _endpoint_fields(decoded_object(old)) == _endpoint_fields(decoded_object(record)):
                        return
                    handled = True
                self.queue.add(service.key)

    async def pods_of(self, namespace: str, selector: Mapping[str, str]) -> list[JSONObject]:
        """Return the pods that match a selector, frozen."""
        pods = []
        required = selector.items()
        for number, record in enumerate(self.pods.list(namespace), 1):
            if required <= record.labels.items():
                pods.append(decoded_object(record))
            if number % YIELD_EVERY == 0:
                await self.yield_to_reactor()
        return pods


def _selecting(record: Record) -> tuple[str, ...]:
    return (record.namespace,) if selector_of(decoded_object(record)) else ()


def _endpoint_fields(pod: JSONObject) -> tuple[JSONValue, ...]:
    """Return the fields of a pod that endpoints contain."""
    spec, status = pod["spec"], pod.get("status") or {}
    return (
        pod["metadata"]["uid"],
        "deletionTimestamp" in pod["metadata"],
        is_ready(pod),
        phase_of(pod) in ("Succeeded", "Failed"),
        status.get("podIP"),
        status.get("podIPs"),
        spec.get("nodeName"),
        spec.get("hostname"),
        spec.get("subdomain"),
    )
