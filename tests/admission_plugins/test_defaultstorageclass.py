"""Tests for L{DefaultStorageClass}."""

from __future__ import annotations

from zope.interface.verify import verifyObject

from kubetwist.admission_plugins.defaultstorageclass import DefaultStorageClass
from kubetwist.api.resource import JSONObject
from kubetwist.interfaces import IMutatingAdmission
from tests.admission_plugins.classes import ClassTestCase, named


class DefaultStorageClassTests(ClassTestCase):
    """Tests for L{DefaultStorageClass}."""

    def test_default(self) -> None:
        """A claim without a class gets the newest default class; an empty class name is a class."""
        mark = {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
        classes = [
            named("old", "2026-01-01T00:00:00Z", metadata=mark),
            named("new", "2026-02-01T00:00:00Z", metadata=mark),
            named("newer", "2026-03-01T00:00:00Z"),
        ]
        plugin = DefaultStorageClass()
        verifyObject(IMutatingAdmission, plugin)
        for spec, expected in (({}, "new"), ({"storageClassName": ""}, ""), ({"storageClassName": "x"}, "x")):
            obj: JSONObject = {"metadata": {}, "spec": dict(spec)}
            self.assert_admitted(plugin.admit, "persistentvolumeclaims", obj, storageclasses=classes)
            self.assertEqual(obj["spec"]["storageClassName"], expected)
        bare: JSONObject = {"metadata": {}, "spec": {}}
        self.assert_admitted(plugin.admit, "persistentvolumeclaims", bare)
        self.assertEqual(bare["spec"], {})
