"""Tests for L{kubetwist.registry.apps.conversion}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import GroupVersionKind
from kubetwist.registry.apps.conversion import ROLLBACK_TO, TEMPLATE_GENERATION
from kubetwist.registry.generic.internaltypes import ConversionError, internal_type, read_annotations


def gvk(kind: str) -> GroupVersionKind:
    """A kind of the group."""
    return GroupVersionKind("apps", "v1", kind)


class AnnotationTests(SynchronousTestCase):
    """Annotations that represent fields of internal types."""

    def read(self, kind: str, annotations: dict[str, str]) -> dict[str, Any]:
        """The metadata of an object after its annotations were read."""
        obj: dict[str, Any] = {"metadata": {"annotations": dict(annotations)}}
        read_annotations(gvk(kind), obj)
        meta: dict[str, Any] = obj["metadata"]
        return meta

    def test_template_generation(self) -> None:
        """The generation of a template becomes a number in its shortest form."""
        meta = self.read("DaemonSet", {TEMPLATE_GENERATION: "+07"})
        self.assertEqual(meta, {"annotations": {TEMPLATE_GENERATION: "7"}})
        self.assertRaises(ConversionError, self.read, "DaemonSet", {TEMPLATE_GENERATION: "x"})

    def test_rollback(self) -> None:
        """A revision for a rollback is a number, and an empty one is removed."""
        self.assertEqual(self.read("Deployment", {ROLLBACK_TO: ""}), {})
        self.assertEqual(self.read("Deployment", {ROLLBACK_TO: "3"}), {"annotations": {ROLLBACK_TO: "3"}})
        error = self.assertRaises(ConversionError, self.read, "Deployment", {ROLLBACK_TO: "x"})
        self.assertIn(f"failed to parse annotation[{ROLLBACK_TO}]=x as int64", str(error))

    def test_other_kinds(self) -> None:
        """Other kinds keep these annotations as they are."""
        meta = self.read("ReplicaSet", {ROLLBACK_TO: "x"})
        self.assertEqual(meta, {"annotations": {ROLLBACK_TO: "x"}})

    def test_zero(self) -> None:
        """The zero value of a workload has no replicas, that of a DaemonSet the first generation of its template."""
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
