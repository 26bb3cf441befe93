"""
The replicas that one metric of a HorizontalPodAutoscaler demands, with its entry in the status.

@see: kubernetes, C{pkg/controller/podautoscaler/horizontal.go}, C{computeReplicasForMetric}.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from attrs import frozen

from ...api.go.quote import quoted
from ...api.resource import JSONObject
from ...api.selectors import EVERYTHING, LabelSelector, SelectorError, label_selector_from_object
from .metricsclient import IMetrics, MetricTarget
from .replicas import Proposal, Target
from .samples import MetricsError, milli_quantity, milli_value
from .scaletargets import ScaleTargets


class MetricError(Exception):
    """
    A metric is not usable.

    The text of the exception becomes part of the error of the autoscaler.

    @ivar reason: The reason of the event and the condition: C{FailedGetResourceMetric}.
    @ivar message: The message of the event, which the message of the condition contains.
    """

    def __init__(self, reason: str, message: str, text: str) -> None:
        """
        @param reason: See above.
        @param message: See above.
        @param text: The text of the exception.
        """
        super().__init__(text)
        self.reason = reason
        self.message = message


@frozen
class MetricProposal:
    """
    What a metric demands.

    @ivar replicas: The number of replicas.
    @ivar name: The name of the metric in conditions and events: C{"cpu resource utilization (percentage of request)"}.
    @ivar status: Its entry in C{status.currentMetrics}.
    """

    replicas: int
    name: str
    status: JSONObject


@frozen
class MetricEvaluator:
    """
    Evaluates the metrics of one autoscaler.

    @ivar metrics: Reads the metrics.
    @ivar target: What is scaled.
    @ivar current: Its observed number of replicas.
    @ivar namespace: Its namespace.
    @ivar selector: The selector of its pods.
    @ivar resources: The resources of kinds.
    """

    metrics: IMetrics
    target: Target
    current: int
    namespace: str
    selector: LabelSelector
    resources: ScaleTargets

    async def evaluate(self, metric: JSONObject) -> MetricProposal:
        """
        Return what a metric demands.

        @param metric: An item of C{spec.metrics}.
        @raise MetricError: The metric is not usable.
        """
        kind = metric["type"]
        if kind not in _EVALUATIONS:
            text = f"unknown metric source type {quoted(kind)}"
            raise MetricError("InvalidMetricSourceType", text, text)
        field, evaluation, reason, described = _EVALUATIONS[kind]
        source: JSONObject = metric[field]
        try:
            return await evaluation(self, source)
        except (MetricsError, SelectorError) as error:
            raise MetricError(reason, str(error), f"failed to get {described(source)} value: {error}") from error

    # --- resources

    async def _resource(self, source: JSONObject) -> MetricProposal:
        current, name = await self._resource_replicas(source, "")
        status = {"type": "Resource", "resource": {"name": source["name"], "current": _resource_value(current)}}
        return MetricProposal(current.replicas, name, status)

    async def _container_resource(self, source: JSONObject) -> MetricProposal:
        container = source["container"]
        current, name = await self._resource_replicas(source, container)
        status: JSONObject = {"name": source["name"], "container": container, "current": _resource_value(current)}
        return MetricProposal(current.replicas, name, {"type": "ContainerResource", "containerResource": status})

    async def _resource_replicas(self, source: JSONObject, container: str) -> tuple[Proposal, str]:
        resource, target = source["name"], source["target"]
        average, utilization = target.get("averageValue"), target.get("averageUtilization")
        by_average = average is not None
        if not by_average and utilization is None:
            raise MetricsError(
                "invalid resource metric source: neither an average utilization target nor an average value (usage) "
                "target was set"
            )
        try:
            try:
                samples = await self.metrics.resource(resource, self.namespace, self.selector, container)
            except MetricsError as error:
                raise MetricsError(f"unable to get metrics for resource {resource}: {error}") from error
            if by_average:
                return self.target.average_replicas(samples, milli_value(average), resource), f"{resource} resource"
            proposal = self.target.utilization_replicas(samples, utilization, resource, container)
        except MetricsError as error:
            raise MetricsError(
                f"failed to get {resource} {'usage' if by_average else 'utilization'}: {error}"
            ) from error
        of = "container resource" if container else "resource"
        return proposal, f"{resource} {of} utilization (percentage of request)"

    # --- custom metrics

    async def _pods(self, source: JSONObject) -> MetricProposal:
        metric = source["metric"]
        try:
            samples = await self.metrics.pods(metric["name"], self.namespace, self.selector, _metric_selector(metric))
        except MetricsError as error:
            raise MetricsError(f"unable to get metric {metric['name']}: {error}") from error
        proposal = self.target.average_replicas(samples, milli_value(source["target"]["averageValue"]))
        status = {"metric": _identified(metric), "current": {"averageValue": milli_quantity(proposal.value)}}
        return MetricProposal(proposal.replicas, f"pods metric {metric['name']}", {"type": "Pods", "pods": status})

    async def _object(self, source: JSONObject) -> MetricProposal:
        metric, target, described = source["metric"], source["target"], source["describedObject"]
        name = metric["name"]
        by_share = target["type"] == "AverageValue"
        if target.get("averageValue" if by_share else "value") is None:
            raise MetricsError(
                "invalid object metric source: neither a value target nor an average value target was set"
            )
        try:
            value = await self.metrics.object(name, self._described(described), _metric_selector(metric))
        except MetricsError as error:
            where = f"{described['kind']} {self.namespace}/{described['name']}"
            text = f"unable to get metric {name}: {where}/{error}"
            raise MetricsError(f"failed to get {name} object metric: {text}" if by_share else text) from error
        status: JSONObject = {"metric": _identified(metric), "describedObject": dict(described)}
        proposal, status["current"] = self._total_replicas(value, target, by_share)
        shown = (
            f"external metric {name}({_selector_text(metric)})" if by_share else f"{described['kind']} metric {name}"
        )
        return MetricProposal(proposal.replicas, shown, {"type": "Object", "object": status})

    def _described(self, described: JSONObject) -> MetricTarget:
        group, kind = (described.get("apiVersion") or "").rpartition("/")[0], described["kind"]
        if kind == "Namespace":
            return MetricTarget("namespaces", "", described["name"])
        infos = self.resources.resources(group, kind)
        if not infos:
            raise MetricsError(f"no matches for kind {quoted(kind)} in group {quoted(group)}")
        info = infos[0]
        return MetricTarget(str(info.group_resource), self.namespace if info.namespaced else "", described["name"])

    async def _external(self, source: JSONObject) -> MetricProposal:
        metric, target = source["metric"], source["target"]
        name = metric["name"]
        by_share = target.get("averageValue") is not None
        if not by_share and target.get("value") is None:
            raise MetricsError(
                "invalid external metric source: neither a value target nor an average value target was set"
            )
        try:
            values = await self.metrics.external(name, self.namespace, _metric_selector(metric))
        except MetricsError as error:
            text = f"unable to get external metric {self.namespace}/{name}/{_selector_text(metric)}: {error}"
            prefix = f"failed to get {name} external metric" if by_share else f"failed to get external metric {name}"
            raise MetricsError(f"{prefix}: {text}") from error
        status: JSONObject = {"metric": _identified(metric)}
        proposal, status["current"] = self._total_replicas(sum(values), target, by_share)
        shown = f"external metric {name}({_selector_text(metric)})"
        return MetricProposal(proposal.replicas, shown, {"type": "External", "external": status})

    def _total_replicas(self, value: int, target: JSONObject, by_share: bool) -> tuple[Proposal, JSONObject]:
        """
        Return the replicas for a metric that is no average of pods, and its current value.

        @param value: The value in thousandths.
        @param target: The target of the metric.
        @param by_share: Whether the target is the share of a pod.
        """
        if by_share:
            proposal = self.target.share_replicas(value, milli_value(target["averageValue"]), self.current)
            return proposal, {"averageValue": milli_quantity(proposal.value)}
        proposal = self.target.value_replicas(value, milli_value(target["value"]))
        return proposal, {"value": milli_quantity(proposal.value)}


_Evaluation = Callable[[MetricEvaluator, JSONObject], Awaitable[MetricProposal]]
#: By type: the field, the function, the reason of its failure, and the metric in the error.
_EVALUATIONS: Final[dict[str, tuple[str, _Evaluation, str, Callable[[JSONObject], str]]]] = {
    "Object": ("object", MetricEvaluator._object, "FailedGetObjectMetric", lambda source: "object metric"),
    "Pods": ("pods", MetricEvaluator._pods, "FailedGetPodsMetric", lambda source: "pods metric"),
    "Resource": (
        "resource",
        MetricEvaluator._resource,
        "FailedGetResourceMetric",
        lambda source: f"{source['name']} resource metric",
    ),
    "ContainerResource": (
        "containerResource",
        MetricEvaluator._container_resource,
        "FailedGetContainerResourceMetric",
        lambda source: f"{source['container']} container metric",
    ),
    "External": (
        "external",
        MetricEvaluator._external,
        "FailedGetExternalMetric",
        lambda source: f"{source['metric']['name']} external metric",
    ),
}


def _metric_selector(metric: JSONObject) -> LabelSelector:
    selector = metric.get("selector")
    return EVERYTHING if selector is None else label_selector_from_object(selector)


def _identified(metric: JSONObject) -> JSONObject:
    return {name: metric[name] for name in ("name", "selector") if metric.get(name) is not None}


def _resource_value(proposal: Proposal) -> JSONObject:
    value: JSONObject = {"averageValue": milli_quantity(proposal.value)}
    if proposal.utilization is not None:
        value["averageUtilization"] = proposal.utilization
    return value


def _selector_text(metric: JSONObject) -> str:
    """Return the selector of a metric in Go's format C{%+v}."""
    selector = metric.get("selector")
    if selector is None:
        return "nil"
    labels = "".join(f"{key}: {value}," for key, value in sorted((selector.get("matchLabels") or {}).items()))
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{one['key']},Operator:{one['operator']},"
        f"Values:[{' '.join(one.get('values') or ())}],}},"
        for one in selector.get("matchExpressions") or ()
    )
    listed = f"[]LabelSelectorRequirement{{{expressions}}}"
    return f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},MatchExpressions:{listed},}}"
