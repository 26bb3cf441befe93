"""
The ClusterRoles of the controllers of kube-controller-manager, by the service account of the controller.

The name of a role is C{system:controller:} with the name of the service account, to which a ClusterRoleBinding binds
it. The service accounts are in C{kube-system}.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ....api.rbacrules import Rule
from .rules import EVENTS, rule

CONTROLLERS: Final[Mapping[str, Sequence[Rule]]] = {
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
        rule("list watch delete", "core", "pods"),
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
        rule("read delete", "core", "pods"),
        rule("update patch", "core", "pods/status"),
        rule("read", "resource.k8s.io", "resourceclaims"),
        rule("read", "resource.k8s.io", "resourceslices"),
        rule("read", "resource.k8s.io", "deviceclasses"),
        EVENTS,
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
        rule("read create update delete", "core", "endpoints"),
        rule("create", "core", "endpoints/restricted"),
        EVENTS,
    ),
    "endpointslice-controller": (
        rule("read", "core", "nodes pods services"),
        rule("update", "core", "services/finalizers"),
        rule("read create update delete", "discovery.k8s.io", "endpointslices"),
        rule("create", "discovery.k8s.io", "endpointslices/restricted"),
        EVENTS,
    ),
    "endpointslicemirroring-controller": (
        rule("read", "core", "endpoints services"),
        rule("update", "core", "services/finalizers"),
        rule("update", "core", "endpoints/finalizers"),
        rule("read create update delete", "discovery.k8s.io", "endpointslices"),
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
        EVENTS,
    ),
    "generic-garbage-collector": (
        rule("read update patch delete", "*", "*"),
        EVENTS,
    ),
    "horizontal-pod-autoscaler": (
        rule("read", "autoscaling", "horizontalpodautoscalers"),
        rule("update", "autoscaling", "horizontalpodautoscalers/status"),
        rule("get update", "*", "*/scale"),
        rule("list watch", "core", "pods"),
        rule("list watch", "metrics.k8s.io", "pods"),
        rule("read", "custom.metrics.k8s.io", "*"),
        rule("read", "external.metrics.k8s.io", "*"),
        EVENTS,
    ),
    "job-controller": (
        rule("read update patch", "batch", "jobs"),
        rule("update", "batch", "jobs/status"),
        rule("update", "batch", "jobs/finalizers"),
        rule("create list watch patch delete", "core", "pods"),
        EVENTS,
    ),
    "legacy-service-account-token-cleaner": (
        rule("get", "core", "configmaps", "kube-apiserver-legacy-service-account-token-tracking"),
        rule("patch delete", "core", "secrets"),
    ),
    "namespace-controller": (
        rule("read delete", "core", "namespaces"),
        rule("update", "core", "namespaces/finalize namespaces/status"),
        rule("read delete deletecollection", "*", "*"),
    ),
    "node-controller": (
        rule("read update patch delete", "core", "nodes"),
        rule("update patch", "core", "nodes/status"),
        rule("update patch", "core", "pods/status"),
        rule("read delete", "core", "pods"),
        EVENTS,
    ),
    "persistent-volume-binder": (
        rule("read create update delete", "core", "persistentvolumes"),
        rule("update", "core", "persistentvolumes/status"),
        rule("read update", "core", "persistentvolumeclaims"),
        rule("update", "core", "persistentvolumeclaims/status"),
        rule("read create delete", "core", "pods"),
        rule("read", "storage.k8s.io", "storageclasses"),
        rule("list watch", "core", "nodes"),
        EVENTS,
        rule("watch", "core", "events"),
    ),
    "pod-garbage-collector": (
        rule("list watch delete", "core", "pods"),
        rule("read", "core", "nodes"),
        rule("patch", "core", "pods/status"),
    ),
    "pv-protection-controller": (
        rule("read update", "core", "persistentvolumes"),
        EVENTS,
    ),
    "pvc-protection-controller": (
        rule("read update", "core", "persistentvolumeclaims"),
        rule("update", "core", "persistentvolumeclaims/status"),
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
        rule("read", "core", "pods"),
        rule("update", "core", "pods/finalizers"),
        rule("read create delete", "resource.k8s.io", "resourceclaims"),
        rule("update patch", "resource.k8s.io", "resourceclaims resourceclaims/status"),
        rule("update patch", "core", "pods/status"),
        EVENTS,
        rule("update patch", "resource.k8s.io", "resourceclaims/binding"),
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
        EVENTS,
        rule("read", "core", "persistentvolumes"),
        rule("read", "core", "persistentvolumeclaims"),
        rule("read", "core", "pods"),
        rule("read", "storage.k8s.io", "csidrivers"),
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
        rule("read update patch", "networking.k8s.io", "servicecidrs"),
        rule("update patch", "networking.k8s.io", "servicecidrs/finalizers"),
        rule("update patch", "networking.k8s.io", "servicecidrs/status"),
        rule("read", "networking.k8s.io", "ipaddresses"),
        EVENTS,
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
        rule("update delete", "core", "persistentvolumeclaims"),
        rule("update", "core", "pods/finalizers"),
        EVENTS,
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
        rule("read", "core", "persistentvolumeclaims"),
        rule("read", "core", "persistentvolumes"),
        rule("read update", "storage.k8s.io", "volumeattributesclasses"),
        EVENTS,
    ),
}
