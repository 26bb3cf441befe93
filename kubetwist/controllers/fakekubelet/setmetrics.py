"""
Custom and external metrics that tests set: each is a ConfigMap in C{kube-system} with the label L{LABEL}.

The data of the ConfigMap are texts:

- C{metric}: the name of the metric,
- C{value}: a quantity,
- C{labels}: labels of the metric, C{"queue=a,tier=b"},
- C{resource}: the described resource, C{"pods"} or C{"ingresses.networking.k8s.io"}; none for an external metric,
- C{namespace}: the namespace of the objects; of an external metric C{""} for all namespaces,
- C{name}: the name of the object; without it, C{selector} selects pods by their labels, C{""} for all.

Stored metrics are the same for all servers of a cluster, and are undone with all other writes of a test. ConfigMaps
with invalid data are ignored.

@see: kubernetes-sigs/custom-metrics-apiserver, C{pkg/provider}: the messages of errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from attrs import frozen

from twisted.internet.interfaces import IReactorTime

from ...api.errors import APIStatusError
from ...api.quantity import Quantity
from ...api.record import Record
from ...api.resource import GroupVersion, JSONObject
from ...api.selectors import EVERYTHING, OPERATOR_NAMES, LabelSelector, parse_label_selector
from ...api.times import format_time
from ...registry.stores import Stores, decoded_object

#: The label of ConfigMaps with metrics, and their namespace.
LABEL: Final = "kubetwist.dev/metric"
NAMESPACE: Final = "kube-system"
CUSTOM_METRICS_GROUP: Final = "custom.metrics.k8s.io"
EXTERNAL_METRICS: Final = GroupVersion("external.metrics.k8s.io", "v1beta1")
#: The name that stands for all objects.
ALL: Final = "*"
_PODS: Final = "pods"


@frozen
class MetricSeries:
    """
    A metric that was set.

    @ivar metric: The name of the metric.
    @ivar value: Its value.
    @ivar labels: Its labels.
    @ivar resource: The resource that it describes; C{""} for an external metric.
    @ivar namespace: The namespace; C{""} for objects without one, and for external metrics of all namespaces.
    @ivar name: The name of the object; C{""} for pods that C{selector} selects.
    @ivar selector: Selects pods.
    """

    metric: str
    value: Quantity
    labels: Mapping[str, str]
    resource: str = ""
    namespace: str = ""
    name: str = ""
    selector: LabelSelector = EVERYTHING

    @classmethod
    def parse(cls, data: Mapping[str, str]) -> MetricSeries:
        """
        Return the metric that the data of a ConfigMap describe.

        @raise ValueError: They are invalid.
        """
        metric, resource = data.get("metric") or "", data.get("resource") or ""
        if not metric:
            raise ValueError("the metric has no name")
        name = data.get("name") or ""
        if resource not in ("", _PODS) and not name:
            raise ValueError("the object has no name")
        labels = {}
        for part in filter(None, (data.get("labels") or "").split(",")):
            key, separator, value = part.partition("=")
            if not separator or not key.strip():
                raise ValueError(f"invalid label {part!r}")
            labels[key.strip()] = value.strip()
        return cls(
            metric,
            Quantity.parse(data.get("value") or ""),
            labels,
            resource,
            data.get("namespace") or "",
            name,
            parse_label_selector(data.get("selector") or ""),
        )


@frozen
class MetricObjects:
    """
    The objects whose metric is requested.

    @ivar resource: Their resource as in the path of the API: C{"services"}, C{"ingresses.networking.k8s.io"}.
    @ivar namespace: Their namespace; C{""} for objects without one.
    @ivar name: The name of the object, or L{ALL}.
    @ivar selector: Selects objects by their labels.
    """

    resource: str
    namespace: str
    name: str
    selector: LabelSelector = EVERYTHING


class SetMetrics:
    """The metrics that were set, as objects of the APIs of metrics."""

    def __init__(self, stores: Stores, clock: IReactorTime) -> None:
        """
        @param stores: The stores of the server.
        @param clock: The clock for timestamps.
        """
        self._stores = stores
        self._clock = clock

    def custom(self, objects: MetricObjects, metric: str, metric_selector: LabelSelector) -> list[JSONObject]:
        """
        Return a metric of objects, as MetricValues of C{custom.metrics.k8s.io/v1beta2}.

        Several metrics of an object are added. A metric of a pod by its name precedes the ones of all pods.

        @param objects: The objects.
        @param metric: The name of the metric.
        @param metric_selector: Selects the metric by its labels.
        @raise APIStatusError: There is no such metric.
        """
        series = [
            one
            for one in self._series()
            if one.metric == metric
            and one.resource == objects.resource
            and one.namespace == objects.namespace
            and metric_selector.matches(one.labels)
        ]
        found = []
        for name, labels in self._described(objects, series):
            values = [one.value for one in series if one.name == name]
            if not values:
                values = [one.value for one in series if not one.name and one.selector.matches(labels)]
            if values:
                found.append(self._value(objects, name, metric, metric_selector, sum(values[1:], values[0])))
        if not found:
            raise APIStatusError(404, "NotFound", _missing(objects, metric))
        return found

    def external(self, namespace: str, metric: str, metric_selector: LabelSelector) -> list[JSONObject]:
        """
        Return the values of an external metric, as ExternalMetricValues of C{external.metrics.k8s.io/v1beta1}.

        @param namespace: The namespace of the request. The metrics of all namespaces are included.
        @param metric: The name of the metric.
        @param metric_selector: Selects values by their labels.
        @raise APIStatusError: There is no such metric.
        """
        series = [
            one
            for one in self._series()
            if one.metric == metric and not one.resource and one.namespace in ("", namespace)
        ]
        if not series:
            raise APIStatusError(404, "NotFound", f"the server could not find the metric {metric} for {namespace}")
        timestamp = format_time(self._clock.seconds())
        return [
            {
                "metricName": metric,
                "metricLabels": dict(one.labels),
                "timestamp": timestamp,
                "value": str(one.value),
            }
            for one in series
            if metric_selector.matches(one.labels)
        ]

    # --- reading

    def _series(self) -> list[MetricSeries]:
        found = []
        for record in self._stores.records("", "configmaps", NAMESPACE):
            if record.labels.get(LABEL) == "true":
                try:
                    found.append(MetricSeries.parse(decoded_object(record).get("data") or {}))
                except ValueError:
                    continue
        return found

    def _described(self, objects: MetricObjects, series: Sequence[MetricSeries]) -> list[tuple[str, Mapping[str, str]]]:
        """Return the names and labels of the requested objects, as far as there may be metrics of them."""
        group = objects.resource.partition(".")[2]
        resource = objects.resource.partition(".")[0]
        if objects.name != ALL:
            records = [one for one in self._records(group, resource, objects) if one.name == objects.name]
            return [(objects.name, records[0].labels if records else {})]
        names = {one.name for one in series}
        return [
            (one.name, one.labels)
            for one in self._records(group, resource, objects)
            if objects.selector.matches(one.labels) and (one.name in names or "" in names)
        ]

    def _records(self, group: str, resource: str, objects: MetricObjects) -> list[Record]:
        records = self._stores.records(group, resource, objects.namespace)
        if objects.resource == _PODS:
            # A pod that does not run has no metrics.
            return [one for one in records if one.fields.get("status.phase") == "Running"]
        return records

    def _value(
        self, objects: MetricObjects, name: str, metric: str, metric_selector: LabelSelector, value: Quantity
    ) -> JSONObject:
        resource, _, group = objects.resource.partition(".")
        described: JSONObject = {"name": name}
        info = self._stores.infos.get((group, resource))
        if info is not None:
            version = info.versions[0]
            described = {"kind": info.kind, **described, "apiVersion": f"{group}/{version}" if group else version}
        if objects.namespace:
            described["namespace"] = objects.namespace
        identifier: JSONObject = {"name": metric}
        if not metric_selector.empty:
            identifier["selector"] = _selector_object(metric_selector)
        return {
            "describedObject": described,
            "metric": identifier,
            "timestamp": format_time(self._clock.seconds()),
            "value": str(value),
        }


def _selector_object(selector: LabelSelector) -> JSONObject:
    """Return a selector as an object C{LabelSelector}."""
    expressions = []
    for one in selector.requirements:
        expression: JSONObject = {"key": one.key, "operator": OPERATOR_NAMES.get(one.operator, one.operator)}
        if one.values:
            expression["values"] = list(one.values)
        expressions.append(expression)
    return {"matchExpressions": expressions}


def _missing(objects: MetricObjects, metric: str) -> str:
    text = f"the server could not find the metric {metric} for {objects.resource}"
    if objects.name != ALL:
        return f"{text} {objects.name}"
    return text if objects.selector.empty else f"{text} {objects.name} with selector {objects.selector}"


def value_of_v1beta1(value: JSONObject) -> JSONObject:
    """
    Convert a MetricValue of v1beta2 to v1beta1.

    @param value: The value of v1beta2.
    """
    converted = {name: one for name, one in value.items() if name not in ("metric", "windowSeconds")}
    converted["metricName"] = value["metric"]["name"]
    if "selector" in value["metric"]:
        converted["selector"] = value["metric"]["selector"]
    return converted
