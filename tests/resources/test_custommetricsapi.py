"""Tests for L{kubetwist.resources.custommetricsapi}, over HTTP in memory."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import GroupVersion
from kubetwist.controllers.fakekubelet.setmetrics import LABEL, NAMESPACE, SetMetrics
from kubetwist.controllers.machinery.client import Client
from kubetwist.controllers.machinery.context import ControllerContext
from kubetwist.resources.custommetricsapi import CustomMetricsAPI
from tests.resources.server import ADMIN, Server, definitions

CUSTOM = "/apis/custom.metrics.k8s.io"
EXTERNAL = "/apis/external.metrics.k8s.io/v1beta1"


class CustomMetricsAPITests(SynchronousTestCase):
    """The APIs with three metrics."""

    def setUp(self) -> None:
        """Create the metrics."""
        self.server = server = Server("namespaces", "nodes", "services", "configmaps", types=definitions())
        self.api = CustomMetricsAPI(server.installer.mux, SetMetrics(server.stores, server.clock))
        self.client = server.client()
        write = Client(ControllerContext(server.registry, server.clock), ADMIN)
        namespace = {"metadata": {"name": NAMESPACE}}
        self.successResultOf(Deferred.fromCoroutine(write.create("", "namespaces", namespace)))
        for number, data in enumerate(
            (
                {"resource": "services", "namespace": "default", "name": "web"},
                {"resource": "nodes", "name": "n"},
                {"resource": "namespaces", "name": "default"},
                {"labels": "queue=a"},
            )
        ):
            meta = {"name": f"m{number}", "namespace": NAMESPACE, "labels": {LABEL: "true"}}
            obj = {"metadata": meta, "data": {"metric": "m", "value": str(number), **data}}
            self.successResultOf(Deferred.fromCoroutine(write.create("", "configmaps", obj)))

    def get(self, path: str, code: int = 200) -> Any:
        """Return the answer to a GET."""
        found, answer = self.client.ask("GET", path)
        self.assertEqual(found, code, answer)
        return answer

    def test_custom(self) -> None:
        """Metrics of objects, of objects without namespace, and of namespaces are served in both versions."""
        for version, field in (("v1beta2", "metric"), ("v1beta1", "metricName")):
            for value, path in enumerate(
                ("namespaces/default/services/web/m", "nodes/n/m", "namespaces/default/metrics/m")
            ):
                found = self.get(f"{CUSTOM}/{version}/{path}")
                self.assertEqual(
                    (found["kind"], found["apiVersion"]), ("MetricValueList", f"custom.metrics.k8s.io/{version}")
                )
                (item,) = found["items"]
                self.assertEqual(item["value"], str(value))
                self.assertIn(field, item)

    def test_external(self) -> None:
        """External metrics are served, and selected by their labels."""
        found = self.get(f"{EXTERNAL}/namespaces/any/m?labelSelector=queue%3Da")
        self.assertEqual((found["kind"], found["items"][0]["value"]), ("ExternalMetricValueList", "3"))
        self.assertEqual(self.get(f"{EXTERNAL}/namespaces/any/m?labelSelector=queue%3Db")["items"], [])

    def test_errors(self) -> None:
        """A missing metric is not found, and an invalid selector is a bad request."""
        missing = self.get(f"{CUSTOM}/v1beta2/namespaces/default/services/web/none", 404)
        self.assertEqual(missing["message"], "the server could not find the metric none for services web")
        self.assertEqual(missing["reason"], "NotFound")
        for query in ("labelSelector", "metricLabelSelector"):
            self.get(f"{CUSTOM}/v1beta2/namespaces/default/services/web/m?{query}=a%3D%3D%3Db", 400)
        self.assertEqual(self.client.ask("PUT", f"{CUSTOM}/v1beta2/nodes/n/m")[0], 405)

    def test_discovery(self) -> None:
        """Discovery has an entry for each version, which OpenAPI does not document."""
        served = self.api.served_resources
        self.assertEqual(
            [str(one) for one in served.group_versions()],
            ["custom.metrics.k8s.io/v1beta2", "custom.metrics.k8s.io/v1beta1", "external.metrics.k8s.io/v1beta1"],
        )
        (entry,) = served.resources(GroupVersion("custom.metrics.k8s.io", "v1beta2"))
        self.assertEqual((entry.name, entry.verbs, entry.documented), ("pods/*", ("get",), False))
