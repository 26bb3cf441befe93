"""Tests of what servers of earlier releases answer, over HTTP."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.featuregates import FeatureGates, parse_release
from tests.resources.server import JSONClient, Server
from tests.schema.release import definitions_of

_TEMPLATE: Any = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
_DEPLOYMENT: Any = {
    "metadata": {"name": "a"},
    "spec": {"selector": {"matchLabels": {"app": "a"}}, "template": _TEMPLATE},
}


def client_of(minor: str, *resources: str) -> JSONClient:
    """Return a client of a server of a release."""
    features = FeatureGates(parse_release(minor))
    return Server(*resources, types=definitions_of(minor), features=features).client()


class CreationTimestampTests(SynchronousTestCase):
    """Before 1.34, a creation time that is not set is encoded as C{null}."""

    def test_template(self) -> None:
        """The metadata of a pod template has no creation time."""
        for minor, expected in [("1.33", {"creationTimestamp": None}), ("1.34", {})]:
            client = client_of(minor, "deployments")
            code, made = client.ask("POST", "/apis/apps/v1/namespaces/ns/deployments", _DEPLOYMENT)
            self.assertEqual((code, made["metadata"]["generation"]), (201, 1))
            self.assertIsNotNone(made["metadata"]["creationTimestamp"])
            self.assertEqual(made["spec"]["template"]["metadata"], {"labels": {"app": "a"}, **expected})

    def test_review(self) -> None:
        """An object that is not stored has no creation time, even if the client sets it."""
        body: Any = {
            "metadata": {"creationTimestamp": "2026-01-02T03:04:05Z"},
            "spec": {"user": "u", "nonResourceAttributes": {"path": "/", "verb": "get"}},
        }
        for minor, expected in [("1.33", {"creationTimestamp": None}), ("1.34", {})]:
            client = client_of(minor, "subjectaccessreviews")
            code, review = client.ask("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", body)
            review["metadata"].pop("managedFields", None)
            self.assertEqual((code, review["metadata"]), (201, expected))

    def test_component_status(self) -> None:
        """The status of a component has no creation time."""
        for minor, expected in [("1.33", {"creationTimestamp": None}), ("1.34", {})]:
            client = client_of(minor, "componentstatuses")
            code, status = client.ask("GET", "/api/v1/componentstatuses/etcd-0")
            self.assertEqual((code, status["metadata"]), (200, {"name": "etcd-0", **expected}))

    def test_custom_resources(self) -> None:
        """Metadata of custom objects has no C{null}: the reference removes it."""
        release = definitions_of("1.33")
        self.assertEqual(release.custom_metadata.compiled()({"name": "a"}, []), {"name": "a"})
        self.assertEqual(release.zero_metadata, {"creationTimestamp": None})

    def test_protobuf(self) -> None:
        """The protobuf of the two forms is the same."""
        release = definitions_of("1.33")
        name = "io.k8s.api.core.v1.PodTemplateSpec"
        unset, null = ({"metadata": {"name": "a", **more}} for more in ({}, {"creationTimestamp": None}))
        self.assertEqual(release.protobuf.encode(name, unset), release.protobuf.encode(name, null))


class MessageTests(SynchronousTestCase):
    """Messages with values differ between releases."""

    def test_workloads(self) -> None:
        """Values are shown in Go syntax before 1.34, in the message and in the causes."""
        template = {**_TEMPLATE, "metadata": {"labels": {"app": "b"}}}
        body = {**_DEPLOYMENT, "spec": {**_DEPLOYMENT["spec"], "template": template}}
        for minor, shown in [("1.33", 'map[string]string{"app":"b"}'), ("1.34", '{"app":"b"}')]:
            client = client_of(minor, "deployments")
            code, status = client.ask("POST", "/apis/apps/v1/namespaces/ns/deployments", body)
            text = f"Invalid value: {shown}: `selector` does not match template `labels`"
            self.assertEqual((code, [one["message"] for one in status["details"]["causes"]]), (422, [text]))
            self.assertIn(f"spec.template.metadata.labels: {text}", status["message"])

    def test_options(self) -> None:
        """So are the values of options."""
        for minor, shown in [("1.33", '[]string{"Some"}'), ("1.34", '["Some"]')]:
            code, status = client_of(minor, "pods").ask("POST", "/api/v1/namespaces/ns/pods?dryRun=Some", {})
            text = f'Unsupported value: {shown}: supported values: "All"'
            self.assertEqual((code, [one["message"] for one in status["details"]["causes"]]), (422, [text]))
