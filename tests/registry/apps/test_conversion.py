"""Tests for L{kubetwist.registry.apps.conversion}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import GroupVersionKind
from kubetwist.registry.apps.conversion import ROLLBACK_TO, TEMPLATE_GENERATION
from kubetwist.registry.generic.internaltypes import ConversionError, internal_type, read_annotations


def gvk(kind: str) -> GroupVersionKind:
    """Return a kind of the group."""
    return GroupVersionKind("apps", "v1", kind)


class AnnotationTests(SynchronousTestCase):
    """Tests for annotations that represent fields of internal types."""

    def read(self, kind: str, annotations: dict[str, str]) -> dict[str, Any]:
        """Return the metadata of an object after its annotations were read."""
        obj: dict[str, Any] = {"metadata": {"annotations": dict(annotations)}}
        read_annotations(gvk(kind), obj)
        meta: dict[str, Any] = obj["metadata"]
        return meta

    def test_template_generation(self) -> None:
        """The template generation is formatted as a number in its shortest form."""
        meta = self.read("DaemonSet", {TEMPLATE_GENERATION: "+07"})
        self.assertEqual(meta, {"annotations": {TEMPLATE_GENERATION: "7"}})
        self.assertRaises(ConversionError, self.read, "DaemonSet", {TEMPLATE_GENERATION: "x"})

    def test_rollback(self) -> None:
        """The rollback revision is a number, and an empty one is removed."""
        self.assertEqual(self.read("Deployment", {ROLLBACK_TO: ""}), {})
        self.assertEqual(self.read("Deployment", {ROLLBACK_TO: "3"}), {"annotations": {ROLLBACK_TO: "3"}})
        error = self.assertRaises(ConversionError, self.read, "Deployment", {ROLLBACK_TO: "x"})
        self.assertIn(f"failed to parse annotation[{ROLLBACK_TO}]=x as int64", str(error))

    def test_other_kinds(self) -> None:
        """Other kinds keep these annotations unchanged."""
        meta = self.read("ReplicaSet", {ROLLBACK_TO: "x"})
        self.assertEqual(meta, {"annotations": {ROLLBACK_TO: "x"}})

    def test_zero(self) -> None:
        """The zero value of a workload has no replicas, and a DaemonSet's has the first template generation."""
        convert_zero = internal_type(gvk("StatefulSet")).convert_zero
        assert convert_zero is not None
        zero: dict[str, Any] = {"metadata": {}, "spec": {"template": {}}}
        convert_zero(zero)
        self.assertEqual(zero["spec"], {"replicas": 0, "template": {}})
        convert_zero = internal_type(gvk("DaemonSet")).convert_zero
        assert convert_zero is not None
        convert_zero(zero)
        self.assertEqual(zero["metadata"], {"annotations": {TEMPLATE_GENERATION: "0"}})
        self.assertIsNone(internal_type(gvk("ControllerRevision")).convert_zero)
