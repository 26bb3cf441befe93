"""
Evictions by the kubelet of a simulated node under pressure: which pods, in which order, with which messages.

A pass every L{EVICTION_INTERVAL} evicts one pod. The pressure of a simulated node lasts until its annotation is
removed. Therefore only pods are evicted whose usage exceeds their requests; under C{PIDPressure}, for which there are
no requests, all are.

@see: kubernetes, C{pkg/kubelet/eviction/eviction_manager.go}, C{pkg/kubelet/eviction/helpers.go}.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from attrs import frozen

from ...api.go.quote import quoted
from ...api.quantity import Quantity
from ...api.resource import JSONObject
from ..fakeimages import FakeImages
from ..workloads.nodeselection import NO_SCHEDULE, tolerates
from .containerusage import EPHEMERAL_STORAGE, container_usage

MEMORY_PRESSURE: Final = "MemoryPressure"
DISK_PRESSURE: Final = "DiskPressure"
PID_PRESSURE: Final = "PIDPressure"
#: Seconds between two evictions.
EVICTION_INTERVAL: Final = 10.0
#: The lowest priority of critical pods, which are not evicted.
CRITICAL_PRIORITY: Final = 2_000_000_000
_ZERO: Final = Quantity(0)
_PIDS: Final = "pids"
_MEMORY_TAINT: Final = {"key": "node.kubernetes.io/memory-pressure", "effect": NO_SCHEDULE}


@frozen
class _Threshold:
    """
    The threshold of a pressure, with the defaults of a kubelet where it has any, and an amount below it.

    @ivar condition: The condition.
    @ivar resource: The resource that is reclaimed.
    @ivar quantity: The threshold.
    @ivar available: The available amount.
    """

    condition: str
    resource: str
    quantity: str
    available: str

    @property
    def message(self) -> str:
        """Return the beginning of the message of an eviction."""
        return (
            f"The node was low on resource: {self.resource}. Threshold quantity: {self.quantity}, available:"
            f" {self.available}. "
        )


#: By the order in which they are reclaimed.
_THRESHOLDS: Final = (
    _Threshold(MEMORY_PRESSURE, "memory", "100Mi", "64Mi"),
    _Threshold(DISK_PRESSURE, EPHEMERAL_STORAGE, "10Gi", "5Gi"),
    _Threshold(PID_PRESSURE, _PIDS, "1k", "512"),
)


@frozen
class Eviction:
    """
    A pod that is evicted.

    @ivar pod: The pod.
    @ivar message: The message of its status and its event.
    """

    pod: JSONObject
    message: str


def is_critical(pod: JSONObject) -> bool:
    """Return whether a pod is not evicted."""
    return bool((pod["spec"].get("priority") or 0) >= CRITICAL_PRIORITY)


def next_eviction(pods: Iterable[JSONObject], pressures: Collection[str], images: FakeImages) -> Eviction | None:
    """
    Return the pod that the next pass evicts, or L{None}.

    The pod with the lowest priority is first, then the one with the largest usage above its requests.

    @param pods: The running pods of the node.
    @param pressures: The conditions of the node.
    @param images: The behavior of images.
    """
    candidates = [pod for pod in pods if not is_critical(pod)]
    for threshold in _THRESHOLDS:
        if threshold.condition in pressures:
            ranked = [one for one in (_rank(pod, threshold.resource, images) for pod in candidates) if one is not None]
            if ranked:
                pod = min(ranked, key=lambda one: one[0])[1]
                return Eviction(pod, threshold.message + "".join(_excesses(pod, threshold.resource, images)))
    return None


def _rank(
    pod: JSONObject, resource: str, images: FakeImages
) -> tuple[tuple[int, Quantity, str, str], JSONObject] | None:
    """Return the sort key of a pod, the first to be evicted has the lowest; L{None} if the pod remains."""
    meta, priority = pod["metadata"], pod["spec"].get("priority") or 0
    if resource == _PIDS:
        excess = Quantity(len(pod["spec"].get("containers") or ()))
    else:
        used = request = _ZERO
        for container in pod["spec"].get("containers") or ():
            used += _used(pod, container, resource, images)
            request += _requested(container, resource)
        if not request < used:
            return None
        excess = used - request
    return (priority, -excess, meta.get("namespace") or "", meta["name"]), pod


def _used(pod: JSONObject, container: JSONObject, resource: str, images: FakeImages) -> Quantity:
    annotations = pod["metadata"].get("annotations") or {}
    configured = images.find(container.get("image") or "").usage
    return container_usage(annotations, container["name"], configured, resource)


def _requested(container: JSONObject, resource: str) -> Quantity:
    text = ((container.get("resources") or {}).get("requests") or {}).get(resource)
    return _ZERO if text is None else Quantity.parse(text)


def _excesses(pod: JSONObject, resource: str, images: FakeImages) -> Iterator[str]:
    """Yield the sentences about containers that use more than they request."""
    for container in pod["spec"].get("containers") or () if resource != _PIDS else ():
        used, request = _used(pod, container, resource, images), _requested(container, resource)
        if request < used:
            name = container["name"]
            yield f"Container {name} was using {used}, request is {request}, has larger consumption of {resource}. "


def rejection(pod: JSONObject, pressures: Collection[str]) -> str:
    """
    Return the reason why a kubelet does not admit a new pod; C{""} if it does.

    @param pod: The pod.
    @param pressures: The conditions of the node.
    @see: kubernetes, C{pkg/kubelet/eviction/eviction_manager.go}: C{Admit}.
    """
    if not pressures or is_critical(pod):
        return ""
    if set(pressures) == {MEMORY_PRESSURE}:
        if (pod.get("status") or {}).get("qosClass") != "BestEffort":
            return ""
        if any(tolerates(one, _MEMORY_TAINT) for one in pod["spec"].get("tolerations") or ()):
            return ""
    names = [one.condition for one in _THRESHOLDS if one.condition in pressures]
    return f"Pod was rejected: The node had condition: [{' '.join(names)}]. "


def exceeded_limit(pod: JSONObject, images: FakeImages) -> str:
    """
    Return the message of the eviction of a pod with a container that uses more ephemeral storage than its limit.

    @return: C{""} if there is none.
    @see: kubernetes, C{pkg/kubelet/eviction/eviction_manager.go}: C{containerEphemeralStorageLimitEviction}.
    """
    for container in pod["spec"].get("containers") or ():
        limit = ((container.get("resources") or {}).get("limits") or {}).get(EPHEMERAL_STORAGE)
        if limit is not None and Quantity.parse(limit) < _used(pod, container, EPHEMERAL_STORAGE, images):
            return f"Container {container['name']} exceeded its local ephemeral storage limit {quoted(str(limit))}. "
    return ""
