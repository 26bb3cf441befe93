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
        found = admission_request(write(pod(), "deployments.apps", kind="Deployment").attributes, FORM)
        self.assertEqual(found["resource"], {"group": "extensions", "version": "v1beta1", "resource": "deployments"})
        self.assertEqual(found["kind"], {"group": "extensions", "version": "v1beta1", "kind": "Deployment"})
        self.assertEqual(found["requestResource"], {"group": "apps", "version": "v1", "resource": "deployments"})
        self.assertEqual(found["requestKind"], {"group": "apps", "version": "v1", "kind": "Deployment"})

    def test_user_and_operation(self) -> None:
        """A request has the operation, the user, the name and the namespace."""
        found = admission_request(write(pod(), operation="UPDATE").attributes, FORM)
        self.assertEqual(
            {name: found[name] for name in ("name", "namespace", "operation", "userInfo")},
            {"name": "x", "namespace": "ns", "operation": "UPDATE", "userInfo": {"username": "alice"}},
        )

    def test_omitted(self) -> None:
        """Absent values are omitted: subresource, name and namespace."""
        found = admission_request(write(pod(), "nodes", namespace="", name="").attributes, FORM)
        for name in ("subResource", "requestSubResource", "name", "namespace"):
            self.assertNotIn(name, found)
        found = admission_request(write(pod(), "pods/exec").attributes, FORM)
        self.assertEqual((found["subResource"], found["requestSubResource"]), ("exec", "exec"))
