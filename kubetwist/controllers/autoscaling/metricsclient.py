"""
Reads the APIs of metrics: C{metrics.k8s.io}, C{custom.metrics.k8s.io}, C{external.metrics.k8s.io}.

They are served by other servers, through their APIServices, or by this server itself.

@see: kubernetes, C{pkg/controller/podautoscaler/metrics/client.go}.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar
from urllib.parse import quote, urlencode

import orjson
from attrs import frozen

from ...api.errors import APIStatusError
from ...api.go.durations import parse_duration
from ...api.resource import GroupVersion, JSONObject, UserInfo
from ...api.selectors import EVERYTHING, LabelSelector
from ...api.times import seconds_since_epoch
from ...client.errors import CallError, Unreachable
from ...client.responses import raise_for_status
from ..fakekubelet.setmetrics import EXTERNAL_METRICS, MetricObjects, SetMetrics
from ..machinery.aggregated import IAggregatedServer, IAggregation
from .samples import MetricsError, Sample, milli_value

RESOURCE_METRICS: Final = GroupVersion("metrics.k8s.io", "v1beta1")
#: By preference.
CUSTOM_METRICS: Final = (
    GroupVersion("custom.metrics.k8s.io", "v1beta2"),
    GroupVersion("custom.metrics.k8s.io", "v1beta1"),
)
#: The window, in seconds, of a custom metric that states none.
_DEFAULT_WINDOW: Final = 60.0
_TIMEOUT: Final = 10.0
_INVALID: Final = "the response is no list of metrics"
_T = TypeVar("_T")

#: Returns the PodMetrics in a namespace that a selector matches.
LocalPodMetrics = Callable[[str, LabelSelector], Awaitable[Sequence[JSONObject]]]


class IMetrics(Protocol):
    """The metrics of pods and other objects. All amounts are in thousandths."""

    async def resource(
        self, resource: str, namespace: str, selector: LabelSelector, container: str = ""
    ) -> dict[str, Sample]:
        """
        Return the usage of a resource by name of the pod.

        @param resource: The name of the resource: C{"cpu"}.
        @param namespace: The namespace of the pods.
        @param selector: Selects the pods.
        @param container: The container that counts; C{""} for all.
        @raise MetricsError: There is no metric.
        """

    async def pods(
        self, metric: str, namespace: str, selector: LabelSelector, metric_selector: LabelSelector
    ) -> dict[str, Sample]:
        """
        Return a custom metric of pods by name of the pod.

        @param metric: The name of the metric.
        @param namespace: The namespace of the pods.
        @param selector: Selects the pods.
        @param metric_selector: Selects the metric by its labels.
        @raise MetricsError: There is no metric.
        """

    async def object(self, metric: str, target: MetricTarget, metric_selector: LabelSelector) -> int:
        """
        Return a custom metric of an object.

        @param metric: The name of the metric.
        @param target: The object.
        @param metric_selector: Selects the metric by its labels.
        @raise MetricsError: There is no metric.
        """

    async def external(self, metric: str, namespace: str, metric_selector: LabelSelector) -> list[int]:
        """
        Return the values of a metric that belongs to no object.

        @param metric: The name of the metric.
        @param namespace: The namespace of the autoscaler.
        @param metric_selector: Selects the metric by its labels.
        @raise MetricsError: There is no metric.
        """


@frozen
class MetricTarget:
    """
    An object with a custom metric.

    @ivar resource: Its resource as in the path of the API: C{"services"}, C{"ingresses.networking.k8s.io"}.
    @ivar namespace: The namespace; C{""} for an object without one.
    @ivar name: The name of the object.
    """

    resource: str
    namespace: str
    name: str


class MetricsClient:
    """L{IMetrics} over the APIs of metrics."""

    def __init__(
        self,
        user: UserInfo,
        aggregation: IAggregation | None,
        local: LocalPodMetrics | None = None,
        set_metrics: SetMetrics | None = None,
    ) -> None:
        """
        @param user: The user of requests to other servers.
        @param aggregation: The other servers; L{None} without them.
        @param local: The usage of pods that this server knows, used unless another server serves C{metrics.k8s.io};
            L{None} if it knows none.
        @param set_metrics: The custom and external metrics that tests set, used in the same way.
        """
        self._user = user
        self._aggregation = aggregation
        self._local = local
        self._set_metrics = set_metrics

    async def resource(
        self, resource: str, namespace: str, selector: LabelSelector, container: str = ""
    ) -> dict[str, Sample]:
        """See L{IMetrics.resource}."""
        try:
            items = await self._pod_metrics(namespace, selector)
        except _FAILURES as error:
            raise MetricsError(f"unable to fetch metrics from resource metrics API: {error}") from error
        if not items:
            raise MetricsError("no metrics returned from resource metrics API")
        return _parsed("resource", lambda: resource_samples(items, resource, container))

    async def _pod_metrics(self, namespace: str, selector: LabelSelector) -> Sequence[JSONObject]:
        server = self._server(RESOURCE_METRICS)
        if server is None:
            if self._local is None:
                raise _not_served("pods", RESOURCE_METRICS)
            return await self._local(namespace, selector)
        query = {"labelSelector": str(selector)} if not selector.empty else {}
        return await self._items(server, f"/namespaces/{quote(namespace)}/pods", query, "pods")

    async def pods(
        self, metric: str, namespace: str, selector: LabelSelector, metric_selector: LabelSelector
    ) -> dict[str, Sample]:
        """See L{IMetrics.pods}."""
        items = await self._custom(MetricTarget("pods", namespace, "*"), metric, selector, metric_selector)
        return _parsed("custom", lambda: custom_samples(items))

    async def object(self, metric: str, target: MetricTarget, metric_selector: LabelSelector) -> int:
        """See L{IMetrics.object}."""
        items = await self._custom(target, metric, None, metric_selector)
        return _parsed("custom", lambda: milli_value(items[0]["value"]))

    async def _custom(
        self, target: MetricTarget, metric: str, selector: LabelSelector | None, metric_selector: LabelSelector
    ) -> Sequence[JSONObject]:
        try:
            servers = [server for server in map(self._server, CUSTOM_METRICS) if server is not None]
            if not servers and self._set_metrics is not None:
                objects = MetricObjects(target.resource, target.namespace, target.name, selector or EVERYTHING)
                return self._set_metrics.custom(objects, metric, metric_selector)
            if not servers:
                raise _NoMetrics("no custom metrics API (custom.metrics.k8s.io) registered")
            path = f"/{quote(target.resource)}/{quote(target.name, safe='*')}/{quote(metric)}"
            if target.resource == "namespaces":
                path = f"/namespaces/{quote(target.name)}/metrics/{quote(metric)}"
            elif target.namespace:
                path = f"/namespaces/{quote(target.namespace)}{path}"
            query = {} if selector is None or selector.empty else {"labelSelector": str(selector)}
            if not metric_selector.empty:
                query["metricLabelSelector"] = str(metric_selector)
            items = await self._items(servers[0], path, query, target.resource)
        except _FAILURES as error:
            raise MetricsError(f"unable to fetch metrics from custom metrics API: {error}") from error
        if not items:
            raise MetricsError("no metrics returned from custom metrics API")
        return items

    async def external(self, metric: str, namespace: str, metric_selector: LabelSelector) -> list[int]:
        """See L{IMetrics.external}."""
        try:
            items = await self._external(metric, namespace, metric_selector)
        except _FAILURES as error:
            raise MetricsError(f"unable to fetch metrics from external metrics API: {error}") from error
        if not items:
            raise MetricsError("no metrics returned from external metrics API")
        return _parsed("external", lambda: [milli_value(one["value"]) for one in items])

    async def _external(self, metric: str, namespace: str, metric_selector: LabelSelector) -> Sequence[JSONObject]:
        server = self._server(EXTERNAL_METRICS)
        if server is None:
            if self._set_metrics is None:
                raise _not_served(metric, EXTERNAL_METRICS)
            return self._set_metrics.external(namespace, metric, metric_selector)
        query = {} if metric_selector.empty else {"labelSelector": str(metric_selector)}
        return await self._items(server, f"/namespaces/{quote(namespace)}/{quote(metric)}", query, metric)

    # --- requests

    def _server(self, group_version: GroupVersion) -> IAggregatedServer | None:
        return None if self._aggregation is None else self._aggregation.aggregated_servers.get(group_version)

    async def _items(
        self, server: IAggregatedServer, path: str, query: Mapping[str, str], resource: str
    ) -> Sequence[JSONObject]:
        """
        Get a list of metrics.

        @param path: The path below the group and version.
        @param query: The parameters of the query.
        @param resource: The resource, for errors.
        """
        if not server.available:
            name = f"{resource}.{server.group_version.group}"
            raise _NoMetrics(f"the server is currently unable to handle the request (get {name})")
        response = await server.call(
            "GET",
            f"{server.path}{path}",
            self._user,
            headers={"Accept": ["application/json"]},
            query=urlencode(query),
            timeout=_TIMEOUT,
        )
        raise_for_status(response)
        try:
            document: Any = orjson.loads(response.body)
        except ValueError as error:
            raise _NoMetrics(_INVALID) from error
        items = document.get("items") if isinstance(document, dict) else None
        if not isinstance(items, list):
            raise _NoMetrics(_INVALID)
        return items


class _NoMetrics(Exception):
    """An API of metrics is not served, or its response is invalid."""


_FAILURES: Final = (APIStatusError, CallError, Unreachable, _NoMetrics)


def _parsed(api: str, parse: Callable[[], _T]) -> _T:
    """
    Return the parsed metrics of another server.

    @param api: The first word of the API's name.
    @raise MetricsError: They are invalid.
    """
    try:
        return parse()
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise MetricsError(f"unable to fetch metrics from {api} metrics API: {_INVALID}") from error


def _not_served(resource: str, group_version: GroupVersion) -> _NoMetrics:
    return _NoMetrics(f"the server could not find the requested resource (get {resource}.{group_version.group})")


def resource_samples(items: Iterable[JSONObject], resource: str, container: str) -> dict[str, Sample]:
    """
    Return the usage of a resource by name of the pod.

    A pod is left out if the usage of a container is unknown.

    @param items: PodMetrics.
    @param resource: The name of the resource.
    @param container: The container that counts; C{""} for all.
    @raise MetricsError: A pod has no such container.
    """
    samples = {}
    for item in items:
        name = item["metadata"]["name"]
        containers = [one for one in item["containers"] if not container or one["name"] == container]
        if container and not containers:
            namespace = item["metadata"].get("namespace", "")
            raise MetricsError(f"container {container} not present in metrics for pod {namespace}/{name}")
        if not all(resource in one["usage"] for one in containers):
            continue
        value = sum(milli_value(one["usage"][resource]) for one in containers)
        samples[name] = Sample(value, seconds_since_epoch(item["timestamp"]), parse_duration(item["window"]))
    return samples


def custom_samples(items: Iterable[JSONObject]) -> dict[str, Sample]:
    """
    Return a custom metric by name of the pod.

    @param items: MetricValues of version v1beta1 or v1beta2.
    """
    samples = {}
    for item in items:
        window = item.get("windowSeconds")
        samples[item["describedObject"]["name"]] = Sample(
            milli_value(item["value"]),
            seconds_since_epoch(item["timestamp"]),
            _DEFAULT_WINDOW if window is None else float(window),
        )
    return samples
