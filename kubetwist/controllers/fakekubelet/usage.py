"""
Usage of CPU and memory by simulated nodes and their pods, as objects of C{metrics.k8s.io/v1beta1}.

See L{kubetwist.controllers.fakekubelet.containerusage} for the usage of a container.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import Final

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from ...api.quantity import Quantity
from ...api.record import Record
from ...api.resource import JSONObject
from ...api.selectors import LabelSelector
from ...api.times import format_time
from ...registry.stores import Stores, decoded_object
from ..fakeimages import FakeImages
from ..machinery.context import ControllerContext
from .containerusage import container_usage
from .fakenodes import LABEL

GROUP: Final = "metrics.k8s.io"
VERSION: Final = "v1beta1"
#: The resources that are measured.
RESOURCES: Final = ("cpu", "memory")
#: Seconds over which the usage is measured: pods are measured that have been ready for this time.
WINDOW: Final = 15
#: Maximum time, in seconds, for which the computation of many objects blocks the reactor.
_MAX_BLOCKING: Final = 0.004
_PODS_PER_CHECK: Final = 50


class SimulatedUsage:
    """The usage of the pods on simulated nodes, and of these nodes."""

    def __init__(self, stores: Stores, images: FakeImages, clock: IReactorTime) -> None:
        """
        @param stores: The stores of pods and nodes.
        @param images: The behavior of images.
        @param clock: The clock for timestamps; between slices of long computations the reactor runs.
        """
        self._stores = stores
        self._images = images
        self._clock = clock

    async def pods(self, namespace: str = "", selector: LabelSelector | None = None) -> list[JSONObject]:
        """
        Return the PodMetrics of running pods.

        @param namespace: The namespace; C{""} for all.
        @param selector: Selects pods; L{None} for all.
        """
        nodes, timestamp = self._nodes(), format_time(self._clock.seconds())
        found = []
        async for record in self._in_slices(self._records("pods", f"{namespace}/" if namespace else "")):
            if record.fields.get("spec.nodeName") in nodes and (selector is None or selector.matches(record.labels)):
                containers = self._containers(record)
                if containers:
                    found.append(_pod_metrics(record, containers, timestamp))
        return found

    def pod(self, namespace: str, name: str) -> JSONObject | None:
        """Return the PodMetrics of a running pod, or L{None}."""
        cache = self._stores.cache("", "pods")
        record = None if cache is None else cache.get(f"{namespace}/{name}")
        if record is None or record.fields.get("spec.nodeName") not in self._nodes():
            return None
        containers = self._containers(record)
        return _pod_metrics(record, containers, format_time(self._clock.seconds())) if containers else None

    async def nodes(self, name: str = "") -> list[JSONObject]:
        """
        Return the NodeMetrics of simulated nodes.

        @param name: The name of one node; C{""} for all.
        """
        nodes, timestamp = self._nodes(), format_time(self._clock.seconds())
        if name:
            nodes = {name: nodes[name]} if name in nodes else {}
        totals = {name: dict(_NOTHING) for name in nodes}
        async for record in self._in_slices(self._records("pods")):
            total = totals.get(record.fields.get("spec.nodeName") or "")
            if total is not None:
                for usage in self._containers(record).values():
                    for resource, amount in usage.items():
                        total[resource] += amount
        return [_node_metrics(record, totals[name], timestamp) for name, record in nodes.items()]

    # --- reading

    def _records(self, resource: str, prefix: str = "") -> list[Record]:
        cache = self._stores.cache("", resource)
        return [] if cache is None else cache.list(prefix).records

    def _nodes(self) -> dict[str, Record]:
        return {record.name: record for record in self._records("nodes") if record.labels.get(LABEL) == "true"}

    async def _in_slices(self, records: Iterable[Record]) -> AsyncIterator[Record]:
        """Yield records; the reactor runs in between."""
        started = self._clock.seconds()
        for number, record in enumerate(records):
            if not number % _PODS_PER_CHECK and self._clock.seconds() - started > _MAX_BLOCKING:
                turn: Deferred[None] = Deferred()
                self._clock.callLater(0, turn.callback, None)
                await turn
                started = self._clock.seconds()
            yield record

    def _containers(self, record: Record) -> dict[str, dict[str, Quantity]]:
        """Return the usage of the running containers of a pod, by name of the container."""
        if record.fields.get("status.phase") != "Running":
            return {}
        pod = decoded_object(record)
        annotations = pod["metadata"].get("annotations") or {}
        return {name: self._usage(annotations, name, image) for name, image in _running(pod)}

    def _usage(self, annotations: Mapping[str, str], container: str, image: str) -> dict[str, Quantity]:
        configured = self._images.find(image).usage
        return {one: container_usage(annotations, container, configured, one) for one in RESOURCES}


def simulated_usage(context: ControllerContext) -> SimulatedUsage | None:
    """Return the usage of the server's simulated nodes, or L{None} if there are none."""
    if not context.configured or not context.config.options["fake-nodes"]:
        return None
    return SimulatedUsage(context.stores, context.config.images, context.clock)


_NOTHING: Final[Mapping[str, Quantity]] = {"cpu": Quantity(0), "memory": Quantity(0, "binary")}


def _running(pod: JSONObject) -> Iterator[tuple[str, str]]:
    """Yield the names and images of the running containers of a pod."""
    spec, status = pod["spec"], pod.get("status") or {}
    images = {one["name"]: one.get("image") or "" for one in (*spec["containers"], *(spec.get("initContainers") or ()))}
    for one in (*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())):
        if "running" in (one.get("state") or {}):
            yield one["name"], images.get(one["name"], "")


def _pod_metrics(record: Record, containers: Mapping[str, Mapping[str, Quantity]], timestamp: str) -> JSONObject:
    listed = [{"name": name, "usage": _texts(usage)} for name, usage in containers.items()]
    return {**_head("PodMetrics", record, timestamp), "containers": listed}


def _node_metrics(record: Record, usage: Mapping[str, Quantity], timestamp: str) -> JSONObject:
    return {**_head("NodeMetrics", record, timestamp), "usage": _texts(usage)}


def _head(kind: str, record: Record, timestamp: str) -> JSONObject:
    metadata: JSONObject = {"name": record.name, "creationTimestamp": timestamp}
    if record.namespace:
        metadata["namespace"] = record.namespace
    if record.labels:
        metadata["labels"] = dict(record.labels)
    return {
        "kind": kind,
        "apiVersion": f"{GROUP}/{VERSION}",
        "metadata": metadata,
        "timestamp": timestamp,
        "window": f"{WINDOW}s",
    }


def _texts(usage: Mapping[str, Quantity]) -> JSONObject:
    return {resource: str(amount) for resource, amount in usage.items()}
