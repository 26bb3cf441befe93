"""Tests for L{kubetwist.registry.autoscaling.conversion}."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import GroupVersionKind
from kubetwist.registry.autoscaling.conversion import BEHAVIOR, METRICS
from kubetwist.registry.generic.conversion import convert

V1 = GroupVersionKind("autoscaling", "v1", "HorizontalPodAutoscaler")
V2 = GroupVersionKind("autoscaling", "v2", "HorizontalPodAutoscaler")


def scaler(gvk: GroupVersionKind, spec: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Return a HorizontalPodAutoscaler."""
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    return {
        "apiVersion": gvk.api_version,
        "kind": gvk.kind,
        "metadata": {"name": "h"},
        "spec": {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 9, **(spec or {})},
        **more,
    }


def cpu(utilization: int) -> dict[str, Any]:
    """Return a metric of v2 that is a field in v1."""
    target = {"type": "Utilization", "averageUtilization": utilization}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


MEMORY = {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}}
QUEUE = {
    "type": "External",
    "external": {
        "metric": {"name": "q", "selector": {"matchLabels": {"a": "<b>"}}},
        "target": {"type": "Value", "value": "30"},
    },
}
RATE = {"type": "Pods", "pods": {"metric": {"name": "rps"}, "target": {"type": "AverageValue", "averageValue": "500m"}}}
HITS = {
    "type": "Object",
    "object": {
        "describedObject": {"kind": "Ingress", "name": "i", "apiVersion": "networking.k8s.io/v1"},
        "target": {"type": "Value", "value": "10"},
        "metric": {"name": "hits"},
    },
}
PART = {
    "type": "ContainerResource",
    "containerResource": {
        "name": "cpu",
        "container": "app",
        "target": {"type": "Utilization", "averageUtilization": 60},
    },
}


class AutoscalerTests(SynchronousTestCase):
    """Tests for the conversion between v1 and v2."""

    def test_cpu_target(self) -> None:
        """The CPU target of v2 is a field in v1, without an annotation."""
        v1 = convert(scaler(V2, {"metrics": [cpu(70)]}), V2, V1)
        self.assertEqual(v1["spec"]["targetCPUUtilizationPercentage"], 70)
        self.assertEqual(v1["metadata"], {"name": "h"})
        self.assertEqual(v1["status"], {"currentReplicas": 0, "desiredReplicas": 0})

    def test_default_target(self) -> None:
        """A v1 object without a target gets a CPU target of 80 per cent."""
        self.assertEqual(convert(scaler(V1), V1, V2)["spec"]["metrics"], [cpu(80)])

    def test_other_metrics(self) -> None:
        """Other metrics are in an annotation, as v1 types in Go's JSON."""
        v1 = convert(scaler(V2, {"metrics": [MEMORY, QUEUE]}), V2, V1)
        self.assertEqual(
            v1["metadata"]["annotations"],
            {
                METRICS: '[{"type":"Resource","resource":{"name":"memory","targetAverageValue":"1Gi"}},'
                '{"type":"External","external":{"metricName":"q","metricSelector":{"matchLabels":'
                '{"a":"\\u003cb\\u003e"}},"targetValue":"30"}}]'
            },
        )

    def test_cpu_moves_to_the_end(self) -> None:
        """After a conversion from v1, the CPU target is the last metric."""
        v1 = convert(scaler(V2, {"metrics": [cpu(50), MEMORY]}), V2, V1)
        self.assertEqual(convert(v1, V1, V2)["spec"]["metrics"], [MEMORY, cpu(50)])

    def test_behavior(self) -> None:
        """The behavior is in an annotation in the format of the reference's internal type."""
        behavior = {"scaleDown": {"stabilizationWindowSeconds": 60, "tolerance": "50m"}}
        v1 = convert(scaler(V2, {"behavior": behavior}), V2, V1)
        self.assertEqual(
            json.loads(v1["metadata"]["annotations"][BEHAVIOR]),
            {
                "ScaleUp": None,
                "ScaleDown": {
                    "StabilizationWindowSeconds": 60,
                    "SelectPolicy": None,
                    "Policies": None,
                    "Tolerance": "50m",
                },
            },
        )
        self.assertEqual(convert(v1, V1, V2)["spec"]["behavior"], behavior)

    def test_status(self) -> None:
        """Current metrics and conditions are preserved."""
        status = {
            "currentReplicas": 3,
            "desiredReplicas": 4,
            "lastScaleTime": "2026-01-01T00:00:00Z",
            "currentMetrics": [
                {
                    "type": "Resource",
                    "resource": {"name": "cpu", "current": {"averageUtilization": 40, "averageValue": "200m"}},
                }
            ],
            "conditions": [{"type": "AbleToScale", "status": "True", "lastTransitionTime": None, "reason": "Ready"}],
        }
        v1 = convert(scaler(V2, {"metrics": [cpu(50)]}, status=status), V2, V1)
        self.assertEqual(v1["status"]["currentCPUUtilizationPercentage"], 40)
        self.assertEqual(convert(v1, V1, V2)["status"], status)

    def test_no_current_metrics(self) -> None:
        """Without current metrics, v2 has null."""
        self.assertEqual(convert(scaler(V1), V1, V2)["status"], {"currentMetrics": None, "desiredReplicas": 0})

    def test_annotations_of_clients(self) -> None:
        """Values of clients in conversion annotations of a v2 object are dropped."""
        v2 = scaler(V2, {"metrics": [cpu(50)]}, metadata={"name": "h", "annotations": {METRICS: "[]", "mine": "x"}})
        self.assertEqual(convert(v2, V2, V1)["metadata"], {"name": "h", "annotations": {"mine": "x"}})
        self.assertIn(METRICS, v2["metadata"]["annotations"])

    def test_invalid_annotations(self) -> None:
        """Annotations that are not JSON, or have other types, are dropped silently."""
        for text in (
            "{",
            "{}",
            "[1]",
            '[{"type":1}]',
            '[{"type":"Resource","resource":{"name":5}}]',
            '[{"type":"Pods","pods":{"metricName":"a","targetAverageValue":"many"}}]',
            '[{"target":' * 500 + "{}" + "}]" * 500,
            '[{"type":"Object","object":' + '{"target":' * 900 + "{}" + "}" * 901 + "]",
            '[{"type":"External","external":{"metricName":"a","metricSelector":{"matchLabels":{"a":1}}}}]',
        ):
            metadata = {"name": "h", "annotations": {METRICS: text, BEHAVIOR: text}}
            v2 = convert(scaler(V1, metadata=metadata), V1, V2)
            self.assertEqual(v2["spec"]["metrics"], [cpu(80)], text)
            self.assertEqual(v2["metadata"], {"name": "h"})
            self.assertNotIn("behavior", v2["spec"])

    def test_names_in_any_case(self) -> None:
        """Names in annotations are case-insensitive, and the last one wins; labels keep their names."""
        metric = {
            "Type": "Pods",
            "PODS": {
                "metricname": "a",
                "metricName": "b",
                "targetAverageValue": 1,
                "Selector": {"matchLabels": {"Type": "x"}},
            },
        }
        v2 = convert(scaler(V1, metadata={"name": "h", "annotations": {METRICS: json.dumps([metric])}}), V1, V2)
        pods = {
            "metric": {"name": "b", "selector": {"matchLabels": {"Type": "x"}}},
            "target": {"type": "AverageValue", "averageValue": "1"},
        }
        self.assertEqual(v2["spec"]["metrics"], [{"type": "Pods", "pods": pods}])

    def test_quantities(self) -> None:
        """Quantities in annotations may be numbers, and are returned in their canonical form."""
        for sent, shown in (("1000m", "1"), (0.1, "100m"), (2, "2")):
            metric = {"type": "Resource", "resource": {"name": "memory", "targetAverageValue": sent}}
            v2 = convert(scaler(V1, metadata={"name": "h", "annotations": {METRICS: json.dumps([metric])}}), V1, V2)
            self.assertEqual(v2["spec"]["metrics"][0]["resource"]["target"]["averageValue"], shown)

    def test_cpu_without_utilization(self) -> None:
        """The target of v1 is the utilization of the first CPU metric that has one."""
        value = {
            "type": "Resource",
            "resource": {"name": "cpu", "target": {"type": "AverageValue", "averageValue": "1"}},
        }
        v1 = convert(scaler(V2, {"metrics": [value, cpu(40)]}), V2, V1)
        self.assertEqual(v1["spec"]["targetCPUUtilizationPercentage"], 40)

    def test_invalid_behavior(self) -> None:
        """A behavior of wrong types is dropped whole."""
        text = '{"ScaleUp":{"SelectPolicy":"Max"},"ScaleDown":{"Policies":[{"Type":"Pods","Value":true}]}}'
        v2 = convert(scaler(V1, metadata={"name": "h", "annotations": {BEHAVIOR: text}}), V1, V2)
        self.assertNotIn("behavior", v2["spec"])

    @settings(max_examples=40)
    @given(metrics=st.lists(st.sampled_from([MEMORY, QUEUE, RATE, HITS, PART, cpu(10)]), min_size=1, max_size=5))
    def test_round_trip(self, metrics: list[dict[str, Any]]) -> None:
        """A round trip through v1 loses only CPU targets after the first; a second one changes nothing."""
        v2 = scaler(V2, {"metrics": metrics})
        before = json.dumps(v2)
        back = convert(convert(v2, V2, V1), V1, V2)
        self.assertEqual(json.dumps(v2), before)
        other_metrics = [metric for metric in metrics if metric != cpu(10)]
        self.assertEqual(back["spec"]["metrics"], other_metrics + [cpu(10)] * (cpu(10) in metrics))
        self.assertEqual(convert(convert(back, V2, V1), V1, V2), back)
