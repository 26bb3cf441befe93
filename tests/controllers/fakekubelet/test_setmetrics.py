"""Tests for L{kubetwist.controllers.fakekubelet.setmetrics}."""

from __future__ import annotations

import contextlib
from typing import Any

from hypothesis import given
from hypothesis.strategies import dictionaries, sampled_from, text

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.errors import APIStatusError
from kubetwist.api.selectors import EVERYTHING, parse_label_selector
from kubetwist.api.times import format_time
from kubetwist.controllers.fakekubelet.setmetrics import (
    LABEL,
    NAMESPACE,
    MetricObjects,
    MetricSeries,
    SetMetrics,
    value_of_v1beta1,
)
from kubetwist.controllers.machinery.client import Client
from kubetwist.controllers.machinery.context import ControllerContext
from tests.resources.server import ADMIN, Server, definitions

FIELDS = ("metric", "value", "labels", "resource", "namespace", "name", "selector")


class MetricSeriesTests(SynchronousTestCase):
    """Tests for L{MetricSeries}."""

    def test_parse(self) -> None:
        """The data of a ConfigMap are parsed."""
        found = MetricSeries.parse({"metric": "m", "value": "1500m", "labels": "a=b, c=", "namespace": "n"})
        self.assertEqual((found.metric, str(found.value), found.namespace), ("m", "1500m", "n"))
        self.assertEqual((found.labels, found.resource, found.selector), ({"a": "b", "c": ""}, "", EVERYTHING))

    def test_invalid(self) -> None:
        """Invalid data are errors with one line."""
        good = {"metric": "m", "value": "1"}
        for change in (
            {"metric": ""},
            {"value": "x"},
            {"value": ""},
            {"labels": "a"},
            {"labels": "=b"},
            {"resource": "services"},
            {"selector": "a=b,,"},
        ):
            with self.assertRaises(ValueError, msg=str(change)) as caught:
                MetricSeries.parse(good | change)
            self.assertNotIn("\n", str(caught.exception))

    @given(dictionaries(sampled_from(FIELDS), text(max_size=20)))
    def test_any_text(self, data: dict[str, str]) -> None:
        """Any texts are parsed, or a ValueError."""
        with contextlib.suppress(ValueError):
            MetricSeries.parse(data)


class SetMetricsTests(SynchronousTestCase):
    """Tests for L{SetMetrics}, with pods and services in stores."""

    def setUp(self) -> None:
        """Create the objects."""
        self.server = server = Server("namespaces", "nodes", "pods", "services", "configmaps", types=definitions())
        self.metrics = SetMetrics(server.stores, server.clock)
        self.write = Client(ControllerContext(server.registry, server.clock), ADMIN)
        for name in ("default", NAMESPACE):
            self.make("namespaces", {"metadata": {"name": name}})
        for name in "abc":
            meta = {"name": name, "namespace": "default", "labels": {"app": name}}
            self.make("pods", {"metadata": meta, "spec": {"containers": [{"name": "c", "image": "i"}]}})
            if name != "c":
                self.run_(self.write.update_status("", "pods", "default", name, _start))
        self.count = 0

    def run_(self, coroutine: Any) -> Any:
        """Return the result of a coroutine."""
        return self.successResultOf(Deferred.fromCoroutine(coroutine))

    def make(self, resource: str, obj: Any) -> None:
        """Create an object."""
        self.run_(self.write.create("", resource, obj))

    def set(self, label: str = "true", **data: str) -> None:
        """Set a metric."""
        self.count += 1
        meta = {"name": f"m{self.count}", "namespace": NAMESPACE, "labels": {LABEL: label}}
        self.make("configmaps", {"metadata": meta, "data": data})

    def custom(self, objects: MetricObjects, selector: str = "") -> dict[str, str]:
        """Return the values of the metric m by name of the object."""
        found = self.metrics.custom(objects, "m", parse_label_selector(selector))
        return {one["describedObject"]["name"]: one["value"] for one in found}

    def error(self, objects: MetricObjects) -> str:
        """Return the message of a missing metric."""
        with self.assertRaises(APIStatusError) as caught:
            self.custom(objects)
        self.assertEqual(caught.exception.code, 404)
        return str(caught.exception)

    def test_pods(self) -> None:
        """Running pods have the metric that selects them, or a more specific one by name."""
        everything = MetricObjects("pods", "default", "*")
        self.assertEqual(self.error(everything), "the server could not find the metric m for pods")
        self.set(metric="m", value="10", resource="pods", namespace="default")
        self.set(metric="m", value="500m", resource="pods", namespace="default", name="b")
        self.set(metric="other", value="9", resource="pods", namespace="default")
        self.set(metric="m", value="9", resource="pods", namespace="elsewhere")
        self.set("false", metric="m", value="9", resource="pods", namespace="default")
        self.set(metric="m", value="bad", resource="pods", namespace="default")
        self.assertEqual(self.custom(everything), {"a": "10", "b": "500m"})
        self.assertEqual(self.custom(MetricObjects("pods", "default", "a")), {"a": "10"})
        selected = MetricObjects("pods", "default", "*", parse_label_selector("app=b"))
        self.assertEqual(self.custom(selected), {"b": "500m"})
        none = MetricObjects("pods", "default", "*", parse_label_selector("app=c"))
        self.assertEqual(self.error(none), "the server could not find the metric m for pods * with selector app=c")

    def test_selected(self) -> None:
        """A metric may select pods by their labels; several metrics of a pod are added."""
        self.set(metric="m", value="1", resource="pods", namespace="default", selector="app=a")
        self.set(metric="m", value="2", resource="pods", namespace="default", selector="app=a", labels="path=x")
        everything = MetricObjects("pods", "default", "*")
        self.assertEqual(self.custom(everything), {"a": "3"})
        self.assertEqual(self.custom(everything, "path=x"), {"a": "2"})

    def test_objects(self) -> None:
        """A metric of an object describes it, in both versions."""
        self.set(metric="m", value="7", resource="services", namespace="default", name="web", labels="x=y")
        objects = MetricObjects("services", "default", "web")
        (found,) = self.metrics.custom(objects, "m", parse_label_selector("x=y"))
        described = {"kind": "Service", "name": "web", "apiVersion": "v1", "namespace": "default"}
        selector = {"matchExpressions": [{"key": "x", "operator": "In", "values": ["y"]}]}
        expected = {"describedObject": described, "timestamp": format_time(self.server.clock.seconds()), "value": "7"}
        self.assertEqual(found, expected | {"metric": {"name": "m", "selector": selector}})
        self.assertEqual(value_of_v1beta1(found), expected | {"metricName": "m", "selector": selector})
        self.assertEqual(
            self.error(MetricObjects("services", "default", "none")),
            "the server could not find the metric m for services none",
        )

    def test_external(self) -> None:
        """An external metric is for one namespace or for all, and is selected by its labels."""
        self.set(metric="m", value="3", labels="queue=a")
        self.set(metric="m", value="4", labels="queue=b", namespace="default")
        found = self.metrics.external("default", "m", EVERYTHING)
        self.assertEqual(
            [(one["value"], one["metricLabels"]) for one in found], [("3", {"queue": "a"}), ("4", {"queue": "b"})]
        )
        self.assertEqual([one["value"] for one in self.metrics.external("other", "m", EVERYTHING)], ["3"])
        self.assertEqual(self.metrics.external("default", "m", parse_label_selector("queue=c")), [])
        with self.assertRaises(APIStatusError) as caught:
            self.metrics.external("default", "none", EVERYTHING)
        self.assertEqual(caught.exception.code, 404)


def _start(obj: Any) -> None:
    obj["status"] = {**(obj.get("status") or {}), "phase": "Running"}
