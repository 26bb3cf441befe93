"""Tests for L{kubetwist.controllers.autoscaling.metricproposals}."""

from __future__ import annotations

from typing import Any, cast

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.selectors import EVERYTHING
from kubetwist.controllers.autoscaling.metricproposals import MetricError, MetricEvaluator
from kubetwist.controllers.autoscaling.metricsclient import MetricTarget
from kubetwist.controllers.autoscaling.replicas import Target
from kubetwist.controllers.autoscaling.samples import Tolerances
from tests.controllers.autoscaling.fakemetrics import NOW, FakeMetrics, pod
from tests.resources.server import all_kinds


class Kinds:
    """The built-in resources, as of a L{kubetwist.controllers.autoscaling.scaletargets.ScaleTargets}."""

    def resources(self, group: str, kind: str) -> list[Any]:
        """Return the resources of a kind."""
        return [info for info in all_kinds() if (info.group, info.kind) == (group, kind)]


class MetricEvaluatorTests(SynchronousTestCase):
    """Metrics of a target with two pods, each of which requests one CPU."""

    def setUp(self) -> None:
        """Create the pods."""
        self.metrics = FakeMetrics()
        self.metrics.usage = {"a": 900, "b": 700}
        target = Target(2, [pod("a"), pod("b")], Tolerances(), NOW)
        self.evaluator = MetricEvaluator(self.metrics, target, 2, "ns", EVERYTHING, cast("Any", Kinds()))

    def evaluate(self, kind: str, field: str, **source: Any) -> tuple[int, str, Any]:
        """Return the replicas, the name of the metric, and its status without the type."""
        found = self.successResultOf(self.evaluator.evaluate({"type": kind, field: source}))
        self.assertEqual(found.status["type"], kind)
        return found.replicas, found.name, found.status[field]

    def failure(self, kind: str, field: str, **source: Any) -> tuple[str, str, str]:
        """Return the reason, the message and the text of the error."""
        error = self.failureResultOf(self.evaluator.evaluate({"type": kind, field: source}), MetricError).value
        return error.reason, error.message, str(error)

    def test_resource(self) -> None:
        """The target of a resource is a utilization or an average."""
        target: Any = {"type": "Utilization", "averageUtilization": 40}
        current: Any = {"averageUtilization": 80, "averageValue": "800m"}
        self.assertEqual(
            self.evaluate("Resource", "resource", name="cpu", target=target),
            (4, "cpu resource utilization (percentage of request)", {"name": "cpu", "current": current}),
        )
        target = {"type": "AverageValue", "averageValue": "300m"}
        current = {"averageValue": "800m"}
        self.assertEqual(
            self.evaluate("Resource", "resource", name="cpu", target=target),
            (6, "cpu resource", {"name": "cpu", "current": current}),
        )

    def test_container(self) -> None:
        """The same holds for one container."""
        target = {"type": "Utilization", "averageUtilization": 40}
        current = {"averageUtilization": 80, "averageValue": "800m"}
        self.assertEqual(
            self.evaluate("ContainerResource", "containerResource", name="cpu", container="c", target=target),
            (
                4,
                "cpu container resource utilization (percentage of request)",
                {"name": "cpu", "container": "c", "current": current},
            ),
        )
        self.assertEqual(self.metrics.containers, ["c"])

    def test_pods(self) -> None:
        """A metric of pods is averaged."""
        self.metrics.custom["rate"] = 0
        target = {"type": "AverageValue", "averageValue": "400m"}
        metric = {"name": "rate", "selector": {"matchLabels": {"a": "b"}}}
        self.assertEqual(
            self.evaluate("Pods", "pods", metric=metric, target=target),
            (4, "pods metric rate", {"metric": metric, "current": {"averageValue": "800m"}}),
        )

    def test_object(self) -> None:
        """A metric of an object is compared with a value, or with the share of a pod."""
        self.metrics.custom["hits"] = 30_000
        described = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "main"}
        source: dict[str, Any] = {"metric": {"name": "hits"}, "describedObject": described}
        self.assertEqual(
            self.evaluate("Object", "object", **source, target={"type": "Value", "value": "10"}),
            (6, "Ingress metric hits", {**source, "current": {"value": "30"}}),
        )
        self.assertEqual(
            self.evaluate("Object", "object", **source, target={"type": "AverageValue", "averageValue": "10"}),
            (3, "external metric hits(nil)", {**source, "current": {"averageValue": "15"}}),
        )
        self.assertEqual(self.metrics.targets[0], MetricTarget("ingresses.networking.k8s.io", "ns", "main"))

    def test_objects_without_namespace(self) -> None:
        """The object may be a namespace, or have none."""
        self.metrics.custom["hits"] = 1
        for version, kind, resource in (("v1", "Namespace", "namespaces"), ("v1", "Node", "nodes")):
            described = {"apiVersion": version, "kind": kind, "name": "x"}
            target = {"type": "Value", "value": "10"}
            self.evaluate("Object", "object", metric={"name": "hits"}, describedObject=described, target=target)
            self.assertEqual(self.metrics.targets[-1], MetricTarget(resource, "", "x"))

    def test_external(self) -> None:
        """The values of an external metric are added."""
        self.metrics.custom["queue"] = 30_000
        selector = {
            "matchLabels": {"queue": "mail"},
            "matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}],
        }
        metric = {"name": "queue", "selector": selector}
        shown = (
            "external metric queue(&LabelSelector{MatchLabels:map[string]string{queue: mail,},MatchExpressions:"
            "[]LabelSelectorRequirement{LabelSelectorRequirement{Key:zone,Operator:In,Values:[a b],},},})"
        )
        self.assertEqual(
            self.evaluate("External", "external", metric=metric, target={"type": "Value", "value": "20"}),
            (3, shown, {"metric": metric, "current": {"value": "30"}}),
        )
        self.assertEqual(
            self.evaluate("External", "external", metric=metric, target={"type": "AverageValue", "averageValue": "20"}),
            (2, shown, {"metric": metric, "current": {"averageValue": "15"}}),
        )

    def test_errors(self) -> None:
        """Errors have the texts of the reference."""
        self.metrics.usage = None
        value, average = {"type": "Value", "value": "1"}, {"type": "AverageValue", "averageValue": "1"}
        service: dict[str, Any] = {
            "metric": {"name": "x"},
            "describedObject": {"apiVersion": "v1", "kind": "Service", "name": "s"},
        }
        strange = {**service, "describedObject": {"apiVersion": "a.b/v1", "kind": "C", "name": "s"}}
        external: dict[str, Any] = {"metric": {"name": "x"}}
        cases: list[tuple[str, str, dict[str, Any], str, str]] = [
            (
                "Resource",
                "resource",
                {"name": "cpu", "target": average},
                "failed to get cpu usage: unable to get metrics for resource cpu: no metrics",
                "cpu resource metric",
            ),
            (
                "Resource",
                "resource",
                {"name": "cpu", "target": {"type": "Utilization"}},
                "invalid resource metric source: neither an average utilization target nor an average value (usage) "
                "target was set",
                "cpu resource metric",
            ),
            (
                "ContainerResource",
                "containerResource",
                {"name": "cpu", "container": "c", "target": {"type": "Utilization", "averageUtilization": 1}},
                "failed to get cpu utilization: unable to get metrics for resource cpu: no metrics",
                "c container metric",
            ),
            ("Pods", "pods", {**external, "target": average}, "unable to get metric x: no metric x", "pods metric"),
            (
                "Object",
                "object",
                {**service, "target": value},
                "unable to get metric x: Service ns/s/no metric x",
                "object metric",
            ),
            (
                "Object",
                "object",
                {**service, "target": average},
                "failed to get x object metric: unable to get metric x: Service ns/s/no metric x",
                "object metric",
            ),
            (
                "Object",
                "object",
                {**strange, "target": value},
                'unable to get metric x: C ns/s/no matches for kind "C" in group "a.b"',
                "object metric",
            ),
            (
                "Object",
                "object",
                {**service, "target": {"type": "Value"}},
                "invalid object metric source: neither a value target nor an average value target was set",
                "object metric",
            ),
            (
                "External",
                "external",
                {**external, "target": value},
                "failed to get external metric x: unable to get external metric ns/x/nil: no metric x",
                "x external metric",
            ),
            (
                "External",
                "external",
                {**external, "target": average},
                "failed to get x external metric: unable to get external metric ns/x/nil: no metric x",
                "x external metric",
            ),
            (
                "External",
                "external",
                {**external, "target": {"type": "Value"}},
                "invalid external metric source: neither a value target nor an average value target was set",
                "x external metric",
            ),
        ]
        for kind, field, source, message, described in cases:
            text = f"failed to get {described} value: {message}"
            self.assertEqual(self.failure(kind, field, **source), (f"FailedGet{kind}Metric", message, text))

    def test_bad_selector(self) -> None:
        """An invalid selector of a metric is an error of the metric."""
        metric = {"name": "x", "selector": {"matchExpressions": [{"key": "a", "operator": "Nope"}]}}
        reason, message, _ = self.failure("External", "external", metric=metric, target={"type": "Value", "value": "1"})
        self.assertEqual(
            (reason, message), ("FailedGetExternalMetric", '"Nope" is not a valid label selector operator')
        )

    def test_unknown(self) -> None:
        """An unknown type is an error."""
        text = 'unknown metric source type "Magic"'
        self.assertEqual(self.failure("Magic", "magic"), ("InvalidMetricSourceType", text, text))
