"""Tests of L{kubetwist.registry.generic.conversion}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import GroupVersionKind
from kubetwist.registry.generic.conversion import convert, only_renames
from tests.registry.autoscaling.test_conversion import V1, V2, scaler


class RenamingTests(SynchronousTestCase):
    """Tests of versions that differ in their names only."""

    def test_api_version(self) -> None:
        """Only kind and apiVersion change, and the fields are shared."""
        old = GroupVersionKind("admissionregistration.k8s.io", "v1beta1", "MutatingAdmissionPolicy")
        new = old._replace(version="v1")
        obj = {"apiVersion": old.api_version, "kind": old.kind, "metadata": {"name": "a"}, "spec": {"x": 1}}
        converted = convert(obj, old, new)
        self.assertEqual(converted, {**obj, "apiVersion": "admissionregistration.k8s.io/v1"})
        self.assertIs(converted["spec"], obj["spec"])
        self.assertTrue(only_renames(old, new))
        self.assertFalse(only_renames(V1, V2))

    def test_same_version(self) -> None:
        """An object in the target version is returned unchanged."""
        obj = scaler(V2)
        self.assertIs(convert(obj, V2, V2), obj)
