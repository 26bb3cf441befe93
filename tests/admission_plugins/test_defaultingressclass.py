"""Tests for L{DefaultIngressClass}."""

from __future__ import annotations

from zope.interface.verify import verifyObject

from kubetwist.admission_plugins.defaultingressclass import DefaultIngressClass
from kubetwist.api.resource import JSONObject
from kubetwist.interfaces import IMutatingAdmission
from tests.admission_plugins.classes import ClassTestCase, named


class DefaultIngressClassTests(ClassTestCase):
    """Tests for L{DefaultIngressClass}."""

    def test_default(self) -> None:
        """An Ingress without a class gets the default one; the class annotation counts as a class."""
        mark = {"annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}}
        classes = [named("b", metadata=mark), named("a", metadata=mark)]
        plugin = DefaultIngressClass()
        verifyObject(IMutatingAdmission, plugin)
        group = "networking.k8s.io"
        obj: JSONObject = {"metadata": {}, "spec": {}}
        self.assert_admitted(plugin.admit, "ingresses", obj, group=group, ingressclasses=classes)
        self.assertEqual(obj["spec"], {"ingressClassName": "a"})
        old: JSONObject = {"metadata": {"annotations": {"kubernetes.io/ingress.class": "x"}}, "spec": {}}
        self.assert_admitted(plugin.admit, "ingresses", old, group=group, ingressclasses=classes)
        self.assertEqual(old["spec"], {})
