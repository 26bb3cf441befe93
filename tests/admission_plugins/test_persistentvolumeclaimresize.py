"""Tests for L{PersistentVolumeClaimResize}."""

from __future__ import annotations

from zope.interface.verify import verifyObject

from kubetwist.admission_plugins.persistentvolumeclaimresize import PersistentVolumeClaimResize
from kubetwist.api.resource import JSONObject
from kubetwist.interfaces import IValidatingAdmission
from tests.admission_plugins.classes import ClassTestCase, named
from tests.admission_plugins.fakes import Context, PluginTestCase, write


class ResizeTests(ClassTestCase):
    """Tests for L{PersistentVolumeClaimResize}."""

    def test_resize(self) -> None:
        """Bound claims can grow if their class allows expansion; shrinking is not checked by this plugin."""
        plugin = PersistentVolumeClaimResize()
        verifyObject(IValidatingAdmission, plugin)

        def grown(size: str, storage_class: str, phase: str = "Bound") -> tuple[JSONObject, JSONObject]:
            def claim(storage: str) -> JSONObject:
                spec = {"storageClassName": storage_class, "resources": {"requests": {"storage": storage}}}
                return {"metadata": {}, "spec": spec, "status": {"phase": phase}}

            return claim(size), claim("1Gi")

        classes = [named("grows", allowVolumeExpansion=True), named("stays")]
        resource = "persistentvolumeclaims"
        self.assert_admitted(plugin.validate, resource, *grown("2Gi", "grows"), storageclasses=classes)
        self.assert_admitted(plugin.validate, resource, *grown("1Mi", "stays"), storageclasses=classes)
        message = self.error_text(plugin.validate, resource, *grown("2Gi", "stays"), storageclasses=classes)
        self.assertIn("must support resize", message)
        message = self.error_text(plugin.validate, resource, *grown("2Gi", "grows", "Pending"), storageclasses=classes)
        self.assertIn("Only bound", message)


class AnnotationTests(PluginTestCase):
    """Tests of the annotation that preceded the field storageClassName."""

    def test_annotation(self) -> None:
        """The annotation takes precedence over the field, and a claim that changes its class cannot grow."""
        context = Context()
        context.add("storage.k8s.io", "storageclasses", {"metadata": {"name": "grows"}, "allowVolumeExpansion": True})

        def claim(size: str, class_name: str) -> JSONObject:
            spec = {"storageClassName": "stays", "resources": {"requests": {"storage": size}}}
            meta = {"name": "c", "annotations": {"volume.beta.kubernetes.io/storage-class": class_name}}
            return {"metadata": meta, "spec": spec, "status": {"phase": "Bound"}}

        plugin, resource = PersistentVolumeClaimResize(), "persistentvolumeclaims"
        grown = write(claim("2Gi", "grows"), resource, "UPDATE", old=claim("1Gi", "grows"), context=context)
        self.validate(plugin, grown)
        other = write(claim("2Gi", "grows"), resource, "UPDATE", old=claim("1Gi", "other"), context=context)
        self.assertIn("must support resize", self.error_text(plugin, other))
