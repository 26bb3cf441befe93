"""
Kinds that the reference registers in addition to those that are served, for messages about bodies of other kinds.

@see: kubernetes, C{pkg/apis/*/*/register.go}, and C{staging/src/k8s.io/api/extensions/v1beta1}.
"""

from __future__ import annotations

from typing import Final

from ...api.resource import GroupVersionKind

#: The reference's name of its scheme, which is part of messages that users search for.
SCHEME: Final = "pkg/api/legacyscheme/scheme.go:30"
#: The names of the schemes of groups that are served by other servers in the reference.
_OWN_SCHEMES: Final = {
    "apiextensions.k8s.io": "k8s.io/apiextensions-apiserver/pkg/apiserver/apiserver.go:55",
    "apiregistration.k8s.io": "k8s.io/kube-aggregator/pkg/apiserver/scheme/scheme.go:28",
}
#: Kinds whose versions in this group have the internal type of another group.
_INTERNAL_GROUPS: Final = {
    ("extensions", "Deployment"): "apps",
    ("extensions", "DaemonSet"): "apps",
    ("extensions", "ReplicaSet"): "apps",
    ("extensions", "Ingress"): "networking.k8s.io",
    ("extensions", "NetworkPolicy"): "networking.k8s.io",
    ("extensions", "Scale"): "autoscaling",
    ("apps", "Scale"): "autoscaling",
    ("events.k8s.io", "Event"): "",
}
#: The version of the reference's internal types.
INTERNAL: Final = "__internal"

_POLICIES: Final = "ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding"
_RBAC: Final = "Role RoleBinding ClusterRole ClusterRoleBinding"
_FLOW_CONTROL: Final = "FlowSchema PriorityLevelConfiguration"
#: Kinds that the reference registers without serving them; C{register.go} of its API packages.
STILL_KNOWN: Final = frozenset(
    GroupVersionKind(group, version, kind)
    for group, version, kinds in (
        (
            "",
            "v1",
            "PodExecOptions PodAttachOptions PodLogOptions PodPortForwardOptions PodProxyOptions NodeProxyOptions "
            "ServiceProxyOptions PodStatusResult RangeAllocation SerializedReference List",
        ),
        ("admission.k8s.io", "v1", "AdmissionReview"),
        ("admission.k8s.io", "v1beta1", "AdmissionReview"),
        ("admissionregistration.k8s.io", "v1alpha1", _POLICIES),
        (
            "admissionregistration.k8s.io",
            "v1beta1",
            f"ValidatingWebhookConfiguration MutatingWebhookConfiguration {_POLICIES}",
        ),
        ("apiextensions.k8s.io", "v1beta1", "CustomResourceDefinition"),
        ("apiregistration.k8s.io", "v1beta1", "APIService"),
        ("apps", "v1beta1", "Deployment StatefulSet ControllerRevision Scale"),
        ("apps", "v1beta2", "Deployment StatefulSet DaemonSet ReplicaSet ControllerRevision Scale"),
        ("authentication.k8s.io", "v1alpha1", "SelfSubjectReview"),
        ("authentication.k8s.io", "v1beta1", "TokenReview SelfSubjectReview"),
        (
            "authorization.k8s.io",
            "v1beta1",
            "SelfSubjectRulesReview SelfSubjectAccessReview SubjectAccessReview LocalSubjectAccessReview",
        ),
        ("batch", "v1beta1", "CronJob"),
        ("certificates.k8s.io", "v1beta1", "CertificateSigningRequest"),
        ("coordination.k8s.io", "v1beta1", "Lease"),
        ("discovery.k8s.io", "v1beta1", "EndpointSlice"),
        ("events.k8s.io", "v1beta1", "Event"),
        ("extensions", "v1beta1", "Deployment DaemonSet ReplicaSet Ingress NetworkPolicy Scale"),
        ("flowcontrol.apiserver.k8s.io", "v1beta1", _FLOW_CONTROL),
        ("flowcontrol.apiserver.k8s.io", "v1beta2", _FLOW_CONTROL),
        ("flowcontrol.apiserver.k8s.io", "v1beta3", _FLOW_CONTROL),
        ("imagepolicy.k8s.io", "v1alpha1", "ImageReview"),
        ("networking.k8s.io", "v1beta1", "Ingress IngressClass"),
        ("node.k8s.io", "v1alpha1", "RuntimeClass"),
        ("node.k8s.io", "v1beta1", "RuntimeClass"),
        ("policy", "v1beta1", "PodDisruptionBudget Eviction"),
        ("rbac.authorization.k8s.io", "v1alpha1", _RBAC),
        ("rbac.authorization.k8s.io", "v1beta1", _RBAC),
        ("scheduling.k8s.io", "v1beta1", "PriorityClass"),
        ("storage.k8s.io", "v1alpha1", "VolumeAttachment CSIStorageCapacity VolumeAttributesClass"),
        ("storage.k8s.io", "v1beta1", "StorageClass VolumeAttachment CSIDriver CSINode CSIStorageCapacity"),
    )
    for kind in kinds.split()
)

#: Kinds of L{STILL_KNOWN} whose fields differ from the served version, and which are not converted here.
RESHAPED: Final = frozenset(("CustomResourceDefinition", "Scale"))


def scheme_of(group: str) -> str:
    """Return the reference's name of the scheme of a group's server."""
    return _OWN_SCHEMES.get(group, SCHEME)


def internal_group(group: str, kind: str) -> str:
    """Return the group of a kind's internal type: kinds with the same internal type are versions of one kind."""
    return _INTERNAL_GROUPS.get((group, kind), group)
