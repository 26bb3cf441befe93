"""Tests for L{NodeDeclaredFeatureValidator}."""

from __future__ import annotations

from zope.interface.verify import verifyObject

from kubetwist.admission_plugins.nodedeclaredfeaturevalidator import NodeDeclaredFeatureValidator
from kubetwist.interfaces import IValidatingAdmission
from tests.admission_plugins.fakes import write
from tests.admission_plugins.podtools import ResizeTestCase


class FeatureTests(ResizeTestCase):
    """Tests for L{NodeDeclaredFeatureValidator}."""

    def test_features(self) -> None:
        """Changes of the CPUs of a guaranteed pod and of pod-level resources need features of the node."""
        plugin = NodeDeclaredFeatureValidator()
        verifyObject(IValidatingAdmission, plugin)
        old, new = self.sized(), self.sized("2")
        old["status"] = {"qosClass": "Guaranteed"}
        new["spec"]["resources"] = {"requests": {"cpu": "2"}}
        request = write(new, "pods/resize", "UPDATE", old=old, context=self.node())
        self.assertEqual(
            self.error_text(plugin, request),
            "pod update requires features GuaranteedQoSPodCPUResize, InPlacePodLevelResourcesVerticalScaling which "
            'are not available on node "n"',
        )
        able = self.node(declaredFeatures=["GuaranteedQoSPodCPUResize", "InPlacePodLevelResourcesVerticalScaling"])
        self.validate(plugin, write(new, "pods/resize", "UPDATE", old=old, context=able))
        self.assertEqual(self.error_text(plugin, write(new, "pods/resize", "UPDATE", old=old)), 'node "n" not found')

    def test_no_features(self) -> None:
        """Other changes, other pods, and equal quantities in another notation need no features."""
        plugin, old = NodeDeclaredFeatureValidator(), self.sized()
        old["status"] = {"qosClass": "Burstable"}
        self.validate(plugin, write(self.sized("2"), "pods/resize", "UPDATE", old=old))
        old["status"] = {"qosClass": "Guaranteed"}
        self.validate(plugin, write(self.sized("1000m"), "pods/resize", "UPDATE", old=old))
        self.validate(plugin, write(self.sized(tolerations=[{"operator": "Exists"}]), "pods", "UPDATE", old=old))
