"""Tests of admission plugins that feature gates enable."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.admission_plugins.nodedeclaredfeaturevalidator import NodeDeclaredFeatureValidator
from kubetwist.admission_plugins.noderestriction import NodeRestriction
from kubetwist.admission_plugins.podtopologylabels import PodTopologyLabels
from kubetwist.admission_plugins.policies.plugins import MutatingAdmissionPolicy
from kubetwist.admission_plugins.priority import Priority
from kubetwist.admission_plugins.storageobjectinuseprotection import StorageObjectInUseProtection
from kubetwist.api.errors import APIStatusError
from kubetwist.api.featuregates import FeatureGates
from kubetwist.api.resource import JSONObject
from kubetwist.registry.admissioncontext import ServerAdmissionContext
from kubetwist.registry.stores import Stores
from tests.admission_plugins.nodetools import NodeRestrictionTestCase
from tests.admission_plugins.objects import Objects, attributes, call_plugin


def configured(plugin_class: Any, minor: int = 36, **gates: bool) -> Any:
    """Return a plugin of a server with feature gates."""
    return plugin_class.configured(SimpleNamespace(features=FeatureGates((1, minor), gates)), None)


class GateTests(SynchronousTestCase):
    """Plugins that do nothing without their gate."""

    def test_handles(self) -> None:
        """A plugin handles its operation if the gate is enabled."""
        for plugin_class, gate, operation in (
            (NodeDeclaredFeatureValidator, "NodeDeclaredFeatures", "UPDATE"),
            (PodTopologyLabels, "PodTopologyLabelsAdmission", "CREATE"),
        ):
            self.assertTrue(configured(plugin_class).handles(operation))
            disabled = {gate: False}
            if gate == "NodeDeclaredFeatures":
                # Other gates require it.
                disabled |= dict.fromkeys(
                    (
                        "ExtendWebSocketsToKubelet",
                        "InPlacePodLevelResourcesVerticalScaling",
                        "InPlacePodVerticalScalingInitContainers",
                        "RestartAllContainersOnContainerExits",
                    ),
                    False,
                )
            self.assertFalse(configured(plugin_class, **disabled).handles(operation))
        self.assertFalse(configured(PodTopologyLabels, 34).handles("CREATE"))
        self.assertFalse(configured(NodeDeclaredFeatureValidator, 35).handles("UPDATE"))
        self.assertTrue(configured(NodeDeclaredFeatureValidator, 35, NodeDeclaredFeatures=True).handles("UPDATE"))

    def test_policies(self) -> None:
        """Mutating policies are off by default before 1.36."""
        for minor, gates, expected in ((36, {}, True), (35, {}, False), (35, {"MutatingAdmissionPolicy": True}, True)):
            features = FeatureGates((1, minor), gates)
            plugin = MutatingAdmissionPolicy.configured(
                ServerAdmissionContext(Stores(), None, features=features),  # type: ignore[arg-type] # nothing waits
                None,
            )
            self.assertEqual(plugin.handles("CREATE"), expected, (minor, gates))

    def test_attribute_classes(self) -> None:
        """VolumeAttributesClasses have a finalizer with their gate, on by default since 1.34."""
        resource = "volumeattributesclasses"
        for minor, finalizers in ((34, ["kubernetes.io/vac-protection"]), (33, None)):
            obj: JSONObject = {"metadata": {"name": "x"}}
            plugin = configured(StorageObjectInUseProtection, minor)
            self.successResultOf(call_plugin(plugin.admit, attributes(obj, resource)))
            self.assertEqual(obj["metadata"].get("finalizers"), finalizers)
        volume: JSONObject = {"metadata": {"name": "x"}}
        plugin = configured(StorageObjectInUseProtection, 33)
        self.successResultOf(call_plugin(plugin.admit, attributes(volume, "persistentvolumes")))
        self.assertEqual(volume["metadata"]["finalizers"], ["kubernetes.io/pv-protection"])

    def test_pod_groups(self) -> None:
        """A pod group has the priority of its class with the gate WorkloadAwarePreemption."""
        low = {"metadata": {"name": "low"}, "value": -5}
        gates = dict.fromkeys(("GenericWorkload", "GangScheduling", "WorkloadAwarePreemption"), True)
        for plugin, spec, expected in (
            (configured(Priority, **gates), {"priorityClassName": "low"}, {"priorityClassName": "low", "priority": -5}),
            (configured(Priority, **gates), {}, {"priority": 0}),
            (configured(Priority), {"priorityClassName": "low"}, {"priorityClassName": "low"}),
        ):
            obj: JSONObject = {"metadata": {"name": "g"}, "spec": dict(spec)}
            request = attributes(obj, "podgroups", context=Objects(priorityclasses_low=low))
            self.successResultOf(call_plugin(plugin.admit, request))
            self.successResultOf(call_plugin(plugin.validate, request))
            self.assertEqual(obj["spec"], expected)
        wrong = {"metadata": {"name": "g"}, "spec": {"priority": 3}}
        request = attributes(wrong, "podgroups", context=Objects())
        failure = self.failureResultOf(call_plugin(configured(Priority, **gates).admit, request), APIStatusError)
        self.assertIn(
            "priority set in the pod group (3) must match the priority computed (0) based on the priority class set in"
            " the spec",
            failure.value.message,
        )


class NodeRestrictionTests(NodeRestrictionTestCase):
    """Checks of writes of kubelets."""

    def test_signing_requests(self) -> None:
        """The names in certificates of kubelets are not checked with AllowInsecureKubeletCertificateSigningRequests."""
        csr: JSONObject = {
            "metadata": {"name": "x"},
            "spec": {"signerName": "kubernetes.io/kubelet-serving", "request": ""},
        }
        resource = "certificatesigningrequests.certificates.k8s.io"
        self.plugin = configured(NodeRestriction)
        self.assertIn("unable to parse csr", self.rejection("CREATE", resource, csr))
        for minor, gates in ((36, {"AllowInsecureKubeletCertificateSigningRequests": True}), (30, {})):
            self.plugin = configured(NodeRestriction, minor, **gates)
            self.assertEqual(self.rejection("CREATE", resource, csr), "")

    def test_claims(self) -> None:
        """Kubelets may write the allocated resources of a claim with RecoverVolumeExpansionFailure, on since 1.32."""
        old: JSONObject = {"metadata": {"name": "c"}, "spec": {"volumeName": "v"}, "status": {}}
        for field, rejected in (("allocatedResources", "status.allocatedResources"), ("capacity", "")):
            new = {**old, "status": {field: {"storage": "2Gi"}}}
            self.plugin = configured(NodeRestriction, 32)
            self.assertEqual(self.rejection("UPDATE", "persistentvolumeclaims/status", new, old), "")
            self.plugin = configured(NodeRestriction, 31)
            text = self.rejection("UPDATE", "persistentvolumeclaims/status", new, old)
            self.assertEqual(text.rpartition(": ")[2], rejected)

    def test_audiences(self) -> None:
        """Audiences of tokens are restricted with ServiceAccountNodeAudienceRestriction, on since 1.33."""
        reference = {"apiVersion": "v1", "kind": "Pod", "name": "mine", "uid": "pod-uid"}
        request: JSONObject = {"metadata": {}, "spec": {"audiences": ["vault"], "boundObjectRef": reference}}
        for minor, gates, text in (
            (33, {}, "not authorized to request tokens for this audience"),
            (32, {}, ""),
            (32, {"ServiceAccountNodeAudienceRestriction": True}, "not authorized"),
            (36, {"ServiceAccountNodeAudienceRestriction": False}, ""),
        ):
            self.plugin = configured(NodeRestriction, minor, **gates)
            rejection = self.rejection("CREATE", "serviceaccounts/token", request, name="default")
            self.assertIn(text, rejection)
            self.assertEqual(bool(text), bool(rejection))
