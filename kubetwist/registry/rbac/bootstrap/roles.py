"""
The built-in roles and bindings of users, components, nodes and leader election, as in kube-apiserver.

The roles of controllers are in L{kubetwist.registry.rbac.bootstrap.controllerroles}. Rules are constructed by
L{kubetwist.registry.rbac.bootstrap.rules}.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from .rules import EVENTS, RuleTemplate, paths, rule

#: The aggregating ClusterRoles, with the role that aggregates them; C{""} for none.
AGGREGATED: Final[Mapping[str, str]] = {"admin": "", "edit": "admin", "view": "edit"}

_DRA: Final = "DynamicResourceAllocation"

#: The rules of ClusterRoles, by name; a server has those with at least one rule.
CLUSTER_ROLES: Final[Mapping[str, Sequence[RuleTemplate]]] = {
    "cluster-admin": (
        rule("*", "*", "*"),
        paths("*", "*"),
    ),
    "system:aggregate-to-admin": (
        rule("create", "authorization.k8s.io", "localsubjectaccessreviews"),
        rule("read write", "rbac.authorization.k8s.io", "rolebindings roles"),
    ),
    "system:aggregate-to-edit": (
        rule("read", "core", "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy"),
        rule("impersonate", "core", "serviceaccounts"),
        rule("write", "core", "pods pods/attach pods/exec pods/portforward pods/proxy"),
        rule("create", "core", "pods/eviction"),
        rule(
            "write",
            "core",
            "configmaps endpoints[<1.34] events[<1.35] persistentvolumeclaims replicationcontrollers "
            "replicationcontrollers/scale secrets serviceaccounts services services/proxy",
        ),
        rule("create", "core", "serviceaccounts/token"),
        rule("write", "core events.k8s.io", "events", when=">=1.35"),
        rule(
            "write",
            "apps",
            "daemonsets deployments deployments/rollback deployments/scale replicasets replicasets/scale "
            "statefulsets statefulsets/scale",
        ),
        rule("write", "autoscaling", "horizontalpodautoscalers"),
        rule("write", "batch", "cronjobs jobs"),
        rule(
            "write",
            "extensions",
            "daemonsets deployments deployments/rollback deployments/scale ingresses networkpolicies "
            "replicasets replicasets/scale replicationcontrollers/scale",
        ),
        rule("write", "policy", "poddisruptionbudgets"),
        rule("write", "networking.k8s.io", "ingresses networkpolicies"),
        rule("read write", "coordination.k8s.io", "leases"),
        rule(
            "write",
            "resource.k8s.io",
            "resourceclaims resourceclaimtemplates",
            when=f"{_DRA},>=1.33",
        ),
        rule("write", "scheduling.k8s.io", "podgroups workloads", when="GenericWorkload,>=1.36"),
    ),
    "system:aggregate-to-view": (
        rule(
            "read",
            "core",
            "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods "
            "replicationcontrollers replicationcontrollers/scale serviceaccounts services services/status",
        ),
        rule(
            "read",
            "core",
            "bindings events[<1.35] limitranges namespaces/status pods/log pods/status "
            "replicationcontrollers/status resourcequotas resourcequotas/status",
        ),
        rule("read", "core", "namespaces"),
        rule("read", "core events.k8s.io", "events", when=">=1.35"),
        rule("read", "discovery.k8s.io", "endpointslices"),
        rule(
            "read",
            "apps",
            "controllerrevisions daemonsets daemonsets/status deployments deployments/scale "
            "deployments/status replicasets replicasets/scale replicasets/status statefulsets "
            "statefulsets/scale statefulsets/status",
        ),
        rule("read", "autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status"),
        rule("read", "batch", "cronjobs cronjobs/status jobs jobs/status"),
        rule(
            "read",
            "extensions",
            "daemonsets daemonsets/status deployments deployments/scale deployments/status ingresses "
            "ingresses/status networkpolicies replicasets replicasets/scale replicasets/status "
            "replicationcontrollers/scale",
        ),
        rule("read", "policy", "poddisruptionbudgets poddisruptionbudgets/status"),
        rule("read", "networking.k8s.io", "ingresses ingresses/status networkpolicies"),
        rule(
            "read",
            "resource.k8s.io",
            "resourceclaims resourceclaims/status resourceclaimtemplates",
            when=f"{_DRA},>=1.33",
        ),
        rule("read", "scheduling.k8s.io", "podgroups podgroups/status workloads", when="GenericWorkload,>=1.36"),
    ),
    "system:auth-delegator": (
        rule("create", "authentication.k8s.io", "tokenreviews"),
        rule("create", "authorization.k8s.io", "subjectaccessreviews"),
    ),
    "system:basic-user": (
        rule("create", "authorization.k8s.io", "selfsubjectaccessreviews selfsubjectrulesreviews"),
        rule("create", "authentication.k8s.io", "selfsubjectreviews"),
    ),
    "system:certificates.k8s.io:certificatesigningrequests:nodeclient": (
        rule("create", "certificates.k8s.io", "certificatesigningrequests/nodeclient"),
    ),
    "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient": (
        rule("create", "certificates.k8s.io", "certificatesigningrequests/selfnodeclient"),
    ),
    "system:certificates.k8s.io:kube-apiserver-client-approver": (
        rule("approve", "certificates.k8s.io", "signers", "kubernetes.io/kube-apiserver-client"),
    ),
    "system:certificates.k8s.io:kube-apiserver-client-kubelet-approver": (
        rule("approve", "certificates.k8s.io", "signers", "kubernetes.io/kube-apiserver-client-kubelet"),
    ),
    "system:certificates.k8s.io:kubelet-serving-approver": (
        rule("approve", "certificates.k8s.io", "signers", "kubernetes.io/kubelet-serving"),
    ),
    "system:certificates.k8s.io:legacy-unknown-approver": (
        rule("approve", "certificates.k8s.io", "signers", "kubernetes.io/legacy-unknown"),
    ),
    "system:cluster-trust-bundle-discovery": (
        rule("read", "certificates.k8s.io", "clustertrustbundles", when="ClusterTrustBundle"),
    ),
    "system:discovery": (
        paths("/api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version /version/"),
    ),
    "system:heapster": (
        rule("read", "core", "events namespaces nodes pods"),
        rule("read", "extensions", "deployments"),
    ),
    "system:kube-aggregator": (rule("read", "core", "endpoints services"),),
    "system:kube-controller-manager": (
        EVENTS,
        rule("create", "coordination.k8s.io", "leases"),
        rule("get update", "coordination.k8s.io", "leases", "kube-controller-manager"),
        rule("create", "core", "secrets serviceaccounts"),
        rule("delete", "core", "secrets"),
        rule("get", "core", "configmaps namespaces secrets serviceaccounts"),
        rule("update", "core", "secrets serviceaccounts"),
        rule("create", "authentication.k8s.io", "tokenreviews"),
        rule("create", "authorization.k8s.io", "subjectaccessreviews"),
        rule("list watch", "*", "*"),
        rule("create", "core", "serviceaccounts/token"),
    ),
    "system:kube-dns": (rule("list watch", "core", "endpoints services"),),
    "system:kube-scheduler": (
        EVENTS,
        rule("create", "coordination.k8s.io", "leases"),
        rule("read update", "coordination.k8s.io", "leases", "kube-scheduler"),
        rule("read write", "coordination.k8s.io", "leasecandidates"),
        rule("read", "core", "nodes"),
        rule("read delete", "core", "pods"),
        rule("create", "core", "bindings pods/binding"),
        rule("update patch", "core", "pods/status"),
        rule("read", "core", "replicationcontrollers services"),
        rule("read", "apps extensions", "replicasets"),
        rule("read", "apps", "statefulsets"),
        rule("read", "policy", "poddisruptionbudgets"),
        rule("read", "core", "persistentvolumeclaims persistentvolumes"),
        rule("create", "authentication.k8s.io", "tokenreviews"),
        rule("create", "authorization.k8s.io", "subjectaccessreviews"),
        rule("read", "storage.k8s.io", "csinodes"),
        rule("read", "storage.k8s.io", "volumeattachments"),
        rule("read", "core", "namespaces"),
        rule("read", "storage.k8s.io", "csidrivers"),
        rule("read", "storage.k8s.io", "csistoragecapacities"),
        rule("read", "resource.k8s.io", "deviceclasses", when=_DRA),
        rule("read update patch", "resource.k8s.io", "resourceclaims", when=_DRA),
        rule("read update patch", "resource.k8s.io", "resourceclaims/status", when=_DRA),
        rule("read write", "resource.k8s.io", "podschedulingcontexts", when=f"{_DRA},<1.32"),
        rule("read", "resource.k8s.io", "podschedulingcontexts/status", when=f"{_DRA},<1.32"),
        rule("read[<1.34] update patch[<1.34]", "core", "pods/finalizers", when=_DRA),
        rule("read", "resource.k8s.io", "resourceslices", when=_DRA),
        rule("create delete", "resource.k8s.io", "resourceclaims", when=f"{_DRA},DRAExtendedResource,>=1.34"),
        rule("read", "resource.k8s.io", "devicetaintrules", when=f"{_DRA},>=1.33,<1.34"),
        rule("read", "resource.k8s.io", "devicetaintrules", when=f"{_DRA},DRADeviceTaints,>=1.34,<1.35"),
        rule("read", "resource.k8s.io", "devicetaintrules", when=f"{_DRA},DRADeviceTaintRules,>=1.35"),
        rule(
            "update patch",
            "resource.k8s.io",
            "resourceclaims/binding",
            when=f"{_DRA},DRAResourceClaimGranularStatusAuthorization",
        ),
        rule("read", "scheduling.k8s.io", "workloads[<1.36] podgroups[>=1.36]", when="GenericWorkload"),
        rule("update patch", "scheduling.k8s.io", "podgroups/status", when="GenericWorkload,>=1.36"),
    ),
    "system:kubelet-api-admin": (
        rule("read", "core", "nodes"),
        rule("proxy", "core", "nodes"),
        rule("*", "core", "nodes/log nodes/metrics nodes/proxy nodes/stats"),
        rule("*", "core", "nodes/configz nodes/healthz nodes/pods", when="KubeletFineGrainedAuthz"),
    ),
    "system:monitoring": (
        paths(
            "/flagz[ComponentFlagz,>=1.36] /healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz "
            "/readyz/* /statusz[ComponentStatusz,>=1.36]"
        ),
        rule("get", "core", "nodes/metrics", when=">=1.34"),
        paths("/flagz", when="ComponentFlagz,<1.36"),
        paths("/statusz", when="ComponentStatusz,<1.36"),
    ),
    "system:node": (
        rule("create", "authentication.k8s.io", "tokenreviews"),
        rule("create", "authorization.k8s.io", "localsubjectaccessreviews subjectaccessreviews"),
        rule("read", "core", "services"),
        rule("read create", "core", "nodes"),
        rule("update patch", "core", "nodes/status"),
        rule("update patch", "core", "nodes"),
        rule("create update patch", "core events.k8s.io[>=1.35]", "events"),
        rule("read", "core", "pods"),
        rule("create delete", "core", "pods"),
        rule("update patch", "core", "pods/status"),
        rule("create", "core", "pods/eviction"),
        rule("read", "core", "configmaps secrets"),
        rule("get", "core", "persistentvolumeclaims persistentvolumes"),
        rule("get", "core", "endpoints"),
        rule("read create", "certificates.k8s.io", "certificatesigningrequests"),
        rule("create get update patch delete", "coordination.k8s.io", "leases"),
        rule("get", "storage.k8s.io", "volumeattachments"),
        rule("create", "core", "serviceaccounts/token"),
        rule("get update patch", "core", "persistentvolumeclaims/status"),
        rule("read", "storage.k8s.io", "csidrivers"),
        rule("create get update patch delete", "storage.k8s.io", "csinodes"),
        rule("read", "node.k8s.io", "runtimeclasses"),
        rule("get", "resource.k8s.io", "resourceclaims", when=_DRA),
        rule("deletecollection", "resource.k8s.io", "resourceslices", when=_DRA),
        rule("read", "certificates.k8s.io", "clustertrustbundles", when="ClusterTrustBundle"),
        rule("get", "core", "serviceaccounts", when="KubeletServiceAccountTokenForCredentialProviders"),
        rule("read create", "certificates.k8s.io", "podcertificaterequests", when="PodCertificateRequest"),
    ),
    "system:node-bootstrapper": (rule("read create", "certificates.k8s.io", "certificatesigningrequests"),),
    "system:node-problem-detector": (
        rule("get", "core", "nodes"),
        rule("patch", "core", "nodes/status"),
        EVENTS,
    ),
    "system:node-proxier": (
        rule("list watch", "core", "endpoints services"),
        rule("read", "core", "nodes"),
        EVENTS,
        rule("list watch", "networking.k8s.io", "servicecidrs", when="MultiCIDRServiceAllocator"),
        rule("list watch", "discovery.k8s.io", "endpointslices"),
    ),
    "system:persistent-volume-provisioner": (
        rule("read create delete", "core", "persistentvolumes"),
        rule("read update", "core", "persistentvolumeclaims"),
        rule("read", "storage.k8s.io", "storageclasses"),
        rule("watch", "core", "events"),
        EVENTS,
    ),
    "system:public-info-viewer": (paths("/healthz /livez /readyz /version /version/"),),
    "system:service-account-issuer-discovery": (
        paths("/.well-known/openid-configuration /.well-known/openid-configuration/ /openid/v1/jwks /openid/v1/jwks/"),
    ),
    "system:volume-scheduler": (
        rule("read update patch", "core", "persistentvolumes"),
        rule("read", "storage.k8s.io", "storageclasses"),
        rule("read update patch", "core", "persistentvolumeclaims"),
    ),
}

#: The aggregated ClusterRoles, with the role that aggregates them.
LABELLED: Final[Mapping[str, str]] = {f"system:aggregate-to-{name}": name for name in AGGREGATED}

#: The subjects of ClusterRoleBindings, by the name of the ClusterRole: kinds and names, service accounts with their
#: namespaces, separated by spaces.
CLUSTER_BINDINGS: Final[Mapping[str, str]] = {
    "cluster-admin": "Group/system:masters",
    "system:basic-user": "Group/system:authenticated",
    "system:cluster-trust-bundle-discovery": "Group/system:serviceaccounts",
    "system:discovery": "Group/system:authenticated",
    "system:kube-controller-manager": "User/system:kube-controller-manager",
    "system:kube-dns": "ServiceAccount/kube-system/kube-dns",
    "system:kube-scheduler": "User/system:kube-scheduler",
    "system:monitoring": "Group/system:monitoring",
    "system:node": "",
    "system:node-proxier": "User/system:kube-proxy",
    "system:public-info-viewer": "Group/system:authenticated Group/system:unauthenticated",
    "system:service-account-issuer-discovery": "Group/system:serviceaccounts",
    "system:volume-scheduler": "User/system:kube-scheduler",
}

#: The rules of Roles, by namespace and name.
ROLES: Final[Mapping[tuple[str, str], Sequence[RuleTemplate]]] = {
    ("kube-public", "system:controller:bootstrap-signer"): (
        rule("read", "core", "configmaps"),
        rule("update", "core", "configmaps", "cluster-info"),
        EVENTS,
    ),
    ("kube-system", "extension-apiserver-authentication-reader"): (
        rule("read", "core", "configmaps", "extension-apiserver-authentication"),
    ),
    ("kube-system", "system::leader-locking-kube-controller-manager"): (
        rule("watch", "core", "configmaps", when="<1.35"),
        rule("get update", "core", "configmaps", "kube-controller-manager", when="<1.35"),
        rule("read create update", "coordination.k8s.io", "leases"),
        rule("read create update", "coordination.k8s.io", "leasecandidates"),
    ),
    ("kube-system", "system::leader-locking-kube-scheduler"): (
        rule("watch", "core", "configmaps", when="<1.35"),
        rule("get update", "core", "configmaps", "kube-scheduler", when="<1.35"),
        rule("read create update", "coordination.k8s.io", "leases"),
        rule("read create update", "coordination.k8s.io", "leasecandidates"),
    ),
    ("kube-system", "system:controller:bootstrap-signer"): (rule("read", "core", "secrets"),),
    ("kube-system", "system:controller:cloud-provider"): (rule("read create", "core", "configmaps"),),
    ("kube-system", "system:controller:token-cleaner"): (
        rule("read delete", "core", "secrets"),
        EVENTS,
    ),
}

#: The role and the subjects of RoleBindings, by namespace and name; all but one have the name of the role.
BINDINGS: Final[Mapping[tuple[str, str], tuple[str, str]]] = {
    ("kube-public", "system:controller:bootstrap-signer"): (
        "system:controller:bootstrap-signer",
        "ServiceAccount/kube-system/bootstrap-signer",
    ),
    ("kube-system", "system::extension-apiserver-authentication-reader"): (
        "extension-apiserver-authentication-reader",
        "User/system:kube-controller-manager User/system:kube-scheduler",
    ),
    ("kube-system", "system::leader-locking-kube-controller-manager"): (
        "system::leader-locking-kube-controller-manager",
        "User/system:kube-controller-manager ServiceAccount/kube-system/kube-controller-manager "
        "ServiceAccount/kube-system/leader-election-controller",
    ),
    ("kube-system", "system::leader-locking-kube-scheduler"): (
        "system::leader-locking-kube-scheduler",
        "User/system:kube-scheduler ServiceAccount/kube-system/kube-scheduler",
    ),
    ("kube-system", "system:controller:bootstrap-signer"): (
        "system:controller:bootstrap-signer",
        "ServiceAccount/kube-system/bootstrap-signer",
    ),
    ("kube-system", "system:controller:cloud-provider"): (
        "system:controller:cloud-provider",
        "ServiceAccount/kube-system/cloud-provider",
    ),
    ("kube-system", "system:controller:token-cleaner"): (
        "system:controller:token-cleaner",
        "ServiceAccount/kube-system/token-cleaner",
    ),
}
