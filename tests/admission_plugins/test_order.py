"""Tests of the order and the defaults of the built-in plugins, which are the reference's."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.admission.plugins import (
    ALL_ORDERED_PLUGINS,
    installed,
)

#: The plugins of kube-apiserver v1.36.2; C{True} for plugins that are enabled by default.
PLUGINS = {
    "AlwaysAdmit": False,
    "NamespaceAutoProvision": False,
    "NamespaceLifecycle": True,
    "NamespaceExists": False,
    "LimitPodHardAntiAffinityTopology": False,
    "LimitRanger": True,
    "ServiceAccount": True,
    "NodeRestriction": False,
    "TaintNodesByCondition": True,
    "AlwaysPullImages": False,
    "ImagePolicyWebhook": False,
    "PodSecurity": True,
    "PodNodeSelector": False,
    "Priority": True,
    "DefaultTolerationSeconds": True,
    "PodTolerationRestriction": False,
    "EventRateLimit": False,
    "ExtendedResourceToleration": False,
    "DefaultStorageClass": True,
    "StorageObjectInUseProtection": True,
    "PodGroupProtection": True,
    "OwnerReferencesPermissionEnforcement": False,
    "PersistentVolumeClaimResize": True,
    "RuntimeClass": True,
    "CertificateApproval": True,
    "CertificateSigning": True,
    "ClusterTrustBundleAttest": True,
    "CertificateSubjectRestriction": True,
    "DefaultIngressClass": True,
    "DenyServiceExternalIPs": False,
    "PodTopologyLabels": True,
    "PodGroupWorkloadExists": True,
    "NodeDeclaredFeatureValidator": True,
    "JobValidation": True,
    "PodResizeValidator": True,
    "MutatingAdmissionPolicy": True,
    "MutatingAdmissionWebhook": True,
    "ValidatingAdmissionPolicy": True,
    "ValidatingAdmissionWebhook": True,
    "ResourceQuota": True,
    "AlwaysDeny": False,
}


class OrderTests(SynchronousTestCase):
    """Tests for C{twisted/plugins/kubetwist_admission.py} and L{ALL_ORDERED_PLUGINS}."""

    def test_order(self) -> None:
        """Plugins have the order of the reference."""
        self.assertEqual(ALL_ORDERED_PLUGINS, tuple(PLUGINS))

    def test_defaults(self) -> None:
        """The same plugins are enabled by default as in the reference."""
        result = {name: factory.default for name, factory in installed().items() if name in PLUGINS}
        self.assertEqual(result, PLUGINS)
