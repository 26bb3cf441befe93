"""
The ClusterRoles of the controllers of kube-controller-manager, by the service account of the controller.

The name of a role is C{system:controller:} with the name of the service account, to which a ClusterRoleBinding binds
it. The service accounts are in C{kube-system}.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from .rules import EVENTS, RuleTemplate, events, rule

_DRA: Final = "DynamicResourceAllocation"
_DEVICE_TAINTS: Final = f"{_DRA},DRADeviceTaints"
_TAINT_RULES: Final = f"{_DEVICE_TAINTS},DRADeviceTaintRules,>=1.35"
_CIDRS: Final = "MultiCIDRServiceAllocator"
_MIGRATOR: Final = "StorageVersionMigrator"
_POOLS: Final = f"{_DRA},DRAResourcePoolStatus"
_SELINUX: Final = "SELinuxChangePolicy"
_STORAGE_VERSIONS: Final = "StorageVersionAPI,APIServerIdentity"
_VOLUME_ATTRIBUTES: Final = "VolumeAttributesClass,>=1.32"

#: The rules of the roles; a server has those with at least one rule.
CONTROLLERS: Final[Mapping[str, Sequence[RuleTemplate]]] = {
    "attachdetach-controller": (
        rule("list watch", "core", "persistentvolumeclaims persistentvolumes"),
        rule("read", "core", "nodes"),
        rule("update patch", "core", "nodes/status"),
        rule("list watch", "core", "pods"),
        EVENTS,
        rule("read create delete", "storage.k8s.io", "volumeattachments"),
        rule("read", "storage.k8s.io", "csidrivers"),
        rule("read", "storage.k8s.io", "csinodes"),
    ),
    "certificate-controller": (
        rule("read delete", "certificates.k8s.io", "certificatesigningrequests"),
        rule("update", "certificates.k8s.io", "certificatesigningrequests/approval certificatesigningrequests/status"),
        rule("approve", "certificates.k8s.io", "signers", "kubernetes.io/kube-apiserver-client-kubelet"),
        rule(
            "sign",
            "certificates.k8s.io",
            "signers",
            "kubernetes.io/kube-apiserver-client kubernetes.io/kube-apiserver-client-kubelet "
            "kubernetes.io/kubelet-serving kubernetes.io/legacy-unknown",
        ),
        rule("create", "authorization.k8s.io", "subjectaccessreviews"),
        EVENTS,
    ),
    "clusterrole-aggregation-controller": (
        rule("read update patch escalate", "rbac.authorization.k8s.io", "clusterroles"),
    ),
    "cronjob-controller": (
        rule("read update", "batch", "cronjobs"),
        rule("read create update patch delete", "batch", "jobs"),
        rule("update", "batch", "cronjobs/status"),
        rule("update", "batch", "cronjobs/finalizers"),
        rule("list watch[>=1.32] delete", "core", "pods"),
        EVENTS,
    ),
    "daemon-set-controller": (
        rule("read", "apps extensions", "daemonsets"),
        rule("update", "apps extensions", "daemonsets/status"),
        rule("update", "apps extensions", "daemonsets/finalizers"),
        rule("list watch", "core", "nodes"),
        rule("create list watch patch delete", "core", "pods"),
        rule("create", "core", "pods/binding"),
        rule("read create update patch delete", "apps", "controllerrevisions"),
        EVENTS,
    ),
    "deployment-controller": (
        rule("read update", "apps extensions", "deployments"),
        rule("update", "apps extensions", "deployments/status"),
        rule("update", "apps extensions", "deployments/finalizers"),
        rule("read create update patch delete", "apps extensions", "replicasets"),
        rule("read update", "core", "pods"),
        EVENTS,
    ),
    "device-taint-eviction-controller": (
        rule("read delete", "core", "pods", when=_DEVICE_TAINTS),
        rule("update patch", "core", "pods/status", when=_DEVICE_TAINTS),
        rule("read", "resource.k8s.io", "resourceclaims", when=_DEVICE_TAINTS),
        rule("read", "resource.k8s.io", "resourceslices", when=_DEVICE_TAINTS),
        rule("read", "resource.k8s.io", "deviceclasses", when=_DEVICE_TAINTS),
        rule("read", "resource.k8s.io", "devicetaintrules", when=f"{_DEVICE_TAINTS},<1.35"),
        events(_DEVICE_TAINTS),
        rule("update patch", "resource.k8s.io", "devicetaintrules/status", when=_TAINT_RULES),
        rule("read", "resource.k8s.io", "devicetaintrules", when=_TAINT_RULES),
    ),
    "disruption-controller": (
        rule("read", "apps extensions", "deployments"),
        rule("read", "apps extensions", "replicasets"),
        rule("read", "core", "replicationcontrollers"),
        rule("read", "policy", "poddisruptionbudgets"),
        rule("read", "apps", "statefulsets"),
        rule("update", "policy", "poddisruptionbudgets/status"),
        rule("update patch", "core", "pods/status"),
        rule("get", "*", "*/scale"),
        EVENTS,
    ),
    "endpoint-controller": (
        rule("read", "core", "pods services"),
        rule("get list watch[>=1.32] create update delete", "core", "endpoints"),
        rule("create", "core", "endpoints/restricted"),
        EVENTS,
    ),
    "endpointslice-controller": (
        rule("read", "core", "nodes pods services"),
        rule("update", "core", "services/finalizers"),
        rule("get list watch[>=1.32] create update delete", "discovery.k8s.io", "endpointslices"),
        rule("create", "discovery.k8s.io", "endpointslices/restricted"),
        EVENTS,
    ),
    "endpointslicemirroring-controller": (
        rule("read", "core", "endpoints services"),
        rule("update", "core", "services/finalizers"),
        rule("update", "core", "endpoints/finalizers"),
        rule("get list watch[>=1.32] create update delete", "discovery.k8s.io", "endpointslices"),
        rule("create", "discovery.k8s.io", "endpointslices/restricted"),
        EVENTS,
    ),
    "ephemeral-volume-controller": (
        rule("read", "core", "pods"),
        rule("update", "core", "pods/finalizers"),
        rule("read create", "core", "persistentvolumeclaims"),
        EVENTS,
    ),
    "expand-controller": (
        rule("read update patch", "core", "persistentvolumes"),
        rule("update patch", "core", "persistentvolumeclaims/status"),
        rule("read", "core", "persistentvolumeclaims"),
        rule("read", "storage.k8s.io", "storageclasses", when="<1.32"),
        rule("get", "core", "endpoints services", when="<1.32"),
        rule("get", "core", "secrets", when="<1.32"),
        EVENTS,
        rule("get", "core", "services", when=">=1.32,<1.36"),
    ),
    "generic-garbage-collector": (
        rule("read update patch delete", "*", "*"),
        EVENTS,
    ),
    "horizontal-pod-autoscaler": (
        rule("read", "autoscaling", "horizontalpodautoscalers"),
        rule("update", "autoscaling", "horizontalpodautoscalers/status"),
        rule("get update", "*", "*/scale"),
        rule("list watch[>=1.32]", "core", "pods"),
        rule("list watch[>=1.32]", "metrics.k8s.io", "pods"),
        rule("get list watch[>=1.32]", "custom.metrics.k8s.io", "*"),
        rule("get list watch[>=1.32]", "external.metrics.k8s.io", "*"),
        EVENTS,
    ),
    "job-controller": (
        rule("read update patch", "batch", "jobs"),
        rule("update", "batch", "jobs/status"),
        rule("update", "batch", "jobs/finalizers"),
        rule("create list watch patch delete", "core", "pods"),
        EVENTS,
        rule("read create", "scheduling.k8s.io", "podgroups workloads", when="WorkloadWithJob"),
    ),
    "kube-apiserver-serving-clustertrustbundle-publisher": (
        rule(
            "attest",
            "certificates.k8s.io",
            "signers",
            "kubernetes.io/kube-apiserver-serving",
            when="ClusterTrustBundle,>=1.32",
        ),
        rule(
            "create update delete list watch",
            "certificates.k8s.io",
            "clustertrustbundles",
            when="ClusterTrustBundle,>=1.32",
        ),
        events("ClusterTrustBundle,>=1.32"),
    ),
    "legacy-service-account-token-cleaner": (
        rule("get", "core", "configmaps", "kube-apiserver-legacy-service-account-token-tracking"),
        rule("patch delete", "core", "secrets"),
    ),
    "namespace-controller": (
        rule("read delete", "core", "namespaces"),
        rule("update", "core", "namespaces/finalize namespaces/status"),
        rule("get list watch[>=1.32] delete deletecollection", "*", "*"),
    ),
    "node-controller": (
        rule("get list watch[>=1.32] update patch delete", "core", "nodes"),
        rule("update patch", "core", "nodes/status"),
        rule("update patch", "core", "pods/status"),
        rule("get list watch[>=1.32] delete", "core", "pods"),
        EVENTS,
    ),
    "persistent-volume-binder": (
        rule("read create update delete", "core", "persistentvolumes"),
        rule("update", "core", "persistentvolumes/status"),
        rule("read update", "core", "persistentvolumeclaims"),
        rule("update", "core", "persistentvolumeclaims/status"),
        rule("read create delete", "core", "pods"),
        rule("read", "storage.k8s.io", "storageclasses"),
        rule("get create update delete", "core", "endpoints", when="<1.32"),
        rule("get create delete", "core", "services", when="<1.32"),
        rule("get", "core", "secrets", when="<1.32"),
        rule("get[<1.32] list watch[>=1.32]", "core", "nodes"),
        events(">=1.32"),
        rule("watch", "core", "events"),
        events("<1.32"),
        rule("get", "core", "services", when=">=1.32,<1.36"),
    ),
    "pod-garbage-collector": (
        rule("list watch delete", "core", "pods"),
        rule("get list watch[>=1.32]", "core", "nodes"),
        rule("patch", "core", "pods/status"),
    ),
    "podcertificaterequestcleaner": (
        rule("read delete", "certificates.k8s.io", "podcertificaterequests", when="PodCertificateRequest"),
    ),
    "podgroup-protection-controller": (
        rule("read update", "scheduling.k8s.io", "podgroups", when="GenericWorkload,>=1.36"),
        rule("read", "core", "pods", when="GenericWorkload,>=1.36"),
    ),
    "pv-protection-controller": (
        rule("read update", "core", "persistentvolumes"),
        EVENTS,
    ),
    "pvc-protection-controller": (
        rule("read update", "core", "persistentvolumeclaims"),
        rule("update", "core", "persistentvolumeclaims/status", when=">=1.36"),
        rule("read", "core", "pods"),
        EVENTS,
    ),
    "replicaset-controller": (
        rule("read update", "apps extensions", "replicasets"),
        rule("update", "apps extensions", "replicasets/status"),
        rule("update", "apps extensions", "replicasets/finalizers"),
        rule("create list watch patch delete", "core", "pods"),
        EVENTS,
    ),
    "replication-controller": (
        rule("read update", "core", "replicationcontrollers"),
        rule("update", "core", "replicationcontrollers/status"),
        rule("update", "core", "replicationcontrollers/finalizers"),
        rule("create list watch patch delete", "core", "pods"),
        EVENTS,
    ),
    "resource-claim-controller": (
        rule("read", "core", "pods", when=_DRA),
        rule("update", "core", "pods/finalizers", when=_DRA),
        rule("read create delete", "resource.k8s.io", "resourceclaims", when=_DRA),
        rule("read create update patch", "resource.k8s.io", "podschedulingcontexts", when=f"{_DRA},<1.32"),
        rule("update patch", "resource.k8s.io", "resourceclaims resourceclaims/status", when=_DRA),
        rule("update patch", "core", "pods/status", when=_DRA),
        events(_DRA),
        rule("read", "scheduling.k8s.io", "podgroups", when=f"{_DRA},DRAWorkloadResourceClaims"),
        rule("update patch", "scheduling.k8s.io", "podgroups/status", when=f"{_DRA},DRAWorkloadResourceClaims"),
        rule(
            "update patch",
            "resource.k8s.io",
            "resourceclaims/binding",
            when=f"{_DRA},DRAResourceClaimGranularStatusAuthorization",
        ),
    ),
    "resourcepoolstatusrequest-controller": (
        rule("read delete", "resource.k8s.io", "resourcepoolstatusrequests", when=_POOLS),
        rule("update patch", "resource.k8s.io", "resourcepoolstatusrequests/status", when=_POOLS),
        rule("read", "resource.k8s.io", "resourceslices", when=_POOLS),
        rule("read", "resource.k8s.io", "resourceclaims", when=_POOLS),
        events(_POOLS),
    ),
    "resourcequota-controller": (
        rule("list watch", "*", "*"),
        rule("update", "core", "resourcequotas/status"),
        EVENTS,
    ),
    "root-ca-cert-publisher": (
        rule("create update", "core", "configmaps"),
        EVENTS,
    ),
    "route-controller": (
        rule("list watch", "core", "nodes"),
        rule("patch", "core", "nodes/status"),
        EVENTS,
    ),
    "selinux-warning-controller": (
        events(_SELINUX),
        rule("read", "core", "persistentvolumes", when=_SELINUX),
        rule("read", "core", "persistentvolumeclaims", when=_SELINUX),
        rule("read", "core", "pods", when=_SELINUX),
        rule("read", "storage.k8s.io", "csidrivers", when=_SELINUX),
    ),
    "service-account-controller": (
        rule("create", "core", "serviceaccounts"),
        EVENTS,
    ),
    "service-ca-cert-publisher": (
        rule("create update", "core", "configmaps"),
        EVENTS,
    ),
    "service-cidrs-controller": (
        rule("read update patch", "networking.k8s.io", "servicecidrs", when=_CIDRS),
        rule("update patch", "networking.k8s.io", "servicecidrs/finalizers", when=_CIDRS),
        rule("update patch", "networking.k8s.io", "servicecidrs/status", when=_CIDRS),
        rule("read", "networking.k8s.io", "ipaddresses", when=_CIDRS),
        events(_CIDRS),
    ),
    "service-controller": (
        rule("read", "core", "services"),
        rule("update patch", "core", "services/status"),
        rule("list watch", "core", "nodes"),
        EVENTS,
    ),
    "statefulset-controller": (
        rule("list watch", "core", "pods"),
        rule("read", "apps", "statefulsets"),
        rule("update", "apps", "statefulsets/status"),
        rule("update", "apps", "statefulsets/finalizers"),
        rule("create get update patch delete", "core", "pods"),
        rule("read create update patch delete", "apps", "controllerrevisions"),
        rule("read create", "core", "persistentvolumeclaims"),
        events("<1.35"),
        rule("update delete", "core", "persistentvolumeclaims", when="StatefulSetAutoDeletePVC"),
        rule("update", "core", "pods/finalizers", when="StatefulSetAutoDeletePVC"),
        events(">=1.35"),
    ),
    "storage-version-garbage-collector": (
        rule("read", "coordination.k8s.io", "leases", when=_STORAGE_VERSIONS),
        rule("read update patch delete", "internal.apiserver.k8s.io", "storageversions", when=_STORAGE_VERSIONS),
        rule("get update patch", "internal.apiserver.k8s.io", "storageversions/status", when=_STORAGE_VERSIONS),
    ),
    "storage-version-migrator-controller": (
        rule("list watch[>=1.32,<1.35] create patch", "*", "*", when=_MIGRATOR),
        rule("get", "apiextensions.k8s.io", "customresourcedefinitions", when=f"{_MIGRATOR},>=1.36"),
        rule("patch", "apiextensions.k8s.io", "customresourcedefinitions/status", when=f"{_MIGRATOR},>=1.36"),
        rule("update", "storagemigration.k8s.io", "storageversionmigrations/status", when=_MIGRATOR),
    ),
    "ttl-after-finished-controller": (
        rule("read delete", "batch", "jobs"),
        EVENTS,
    ),
    "ttl-controller": (
        rule("list watch update patch", "core", "nodes"),
        EVENTS,
    ),
    "validatingadmissionpolicy-status-controller": (
        rule("read", "admissionregistration.k8s.io", "validatingadmissionpolicies"),
        rule("get update patch", "admissionregistration.k8s.io", "validatingadmissionpolicies/status"),
        EVENTS,
    ),
    "volumeattributesclass-protection-controller": (
        rule("read", "core", "persistentvolumeclaims", when=_VOLUME_ATTRIBUTES),
        rule("read", "core", "persistentvolumes", when=_VOLUME_ATTRIBUTES),
        rule("read update", "storage.k8s.io", "volumeattributesclasses", when=_VOLUME_ATTRIBUTES),
        events(_VOLUME_ATTRIBUTES),
    ),
}
