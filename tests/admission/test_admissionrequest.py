"""Tests for L{kubetwist.admission.admissionrequest}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.admission.admissionrequest import admission_request
from kubetwist.admission.matching.equivalents import EquivalentResource
from kubetwist.api.resource import GroupVersionKind, GroupVersionResource
from tests.admission_plugins.fakes import pod, write

FORM = EquivalentResource(
    GroupVersionResource("extensions", "v1beta1", "deployments"),
    GroupVersionKind("extensions", "v1beta1", "Deployment"),
)


class RequestTests(SynchronousTestCase):
    """Tests for L{admission_request}."""

    def test_resources(self) -> None:
        """A request has the requested resource and the equivalent one of the object."""
        result = admission_request(write(pod(), "deployments.apps", kind="Deployment").attributes, FORM)
        self.assertEqual(result["resource"], {"group": "extensions", "version": "v1beta1", "resource": "deployments"})
        self.assertEqual(result["kind"], {"group": "extensions", "version": "v1beta1", "kind": "Deployment"})
        self.assertEqual(result["requestResource"], {"group": "apps", "version": "v1", "resource": "deployments"})
        self.assertEqual(result["requestKind"], {"group": "apps", "version": "v1", "kind": "Deployment"})

    def test_user_and_operation(self) -> None:
        """A request has the operation, the user, the name and the namespace."""
        result = admission_request(write(pod(), operation="UPDATE").attributes, FORM)
        self.assertEqual(
            {name: result[name] for name in ("name", "namespace", "operation", "userInfo")},
            {"name": "x", "namespace": "ns", "operation": "UPDATE", "userInfo": {"username": "alice"}},
        )

    def test_omitted(self) -> None:
        """Absent values are omitted: subresource, name and namespace."""
        result = admission_request(write(pod(), "nodes", namespace="", name="").attributes, FORM)
        for name in ("subResource", "requestSubResource", "name", "namespace"):
            self.assertNotIn(name, result)
        result = admission_request(write(pod(), "pods/exec").attributes, FORM)
        self.assertEqual((result["subResource"], result["requestSubResource"]), ("exec", "exec"))
