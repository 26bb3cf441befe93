"""
What is known of every built-in kind of every release from 1.25 on: names, scope, place in the store, subresources.

Which versions a release has comes from its type definitions, not from here; L{kubetwist.registry.kinds} joins the two.
Verbs are not here either: they follow from what a resource's storage can do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import frozen


@frozen
class SubresourceInfo:
    """
    A subresource, as discovery shows it.

    @ivar name: Behind the slash: C{"status"}.
    @ivar kind: What it takes and answers, by its kind.
    @ivar group: The group of that kind, where discovery names it (C{autoscaling} for C{scale}).
    @ivar version: Its version, likewise.
    @ivar view: What it is. C{part}: the object itself, of which only a part can be written (C{status},
        C{finalize}, C{approval}, C{resize}, C{ephemeralcontainers}). C{scale}: a C{Scale} made of the object.
        C{action}: only POST (C{binding}, C{eviction}, C{token}). C{connect}: the request goes on to a kubelet or
        an application (C{proxy}, C{exec}, C{attach}, C{portforward}). C{log}: a stream of text.
    @ivar since: The first minor release that has it.
    @ivar until: The last one; 0 for no end.
    """

    name: str
    kind: str
    group: str = ""
    version: str = ""
    view: str = "part"
    since: int = 0
    until: int = 0


@frozen
class Kind:
    """
    A built-in kind, whatever the release.

    @ivar versions: Every version that any release has of it, best first, with the minor release that brought
        it; 0 for those older than the oldest release known here.
    @ivar key_prefix: Where its objects are, below C{/registry/}, as kube-apiserver lays etcd out.
    @ivar storage_group: The group in whose shape its objects are stored.
    @ivar hash_version: The version that discovery's C{storageVersionHash} is made of; C{""} for the storage version.
    @ivar stored: Whether there are objects of it at all, which there are not of reviews and bindings.
    """

    group: str
    resource: str
    kind: str
    singular: str
    namespaced: bool
    versions: tuple[tuple[str, int], ...]
    short_names: tuple[str, ...]
    categories: tuple[str, ...]
    key_prefix: str
    storage_group: str
    subresources: tuple[SubresourceInfo, ...]
    stored: bool = True
    hash_version: str = ""


#: C{groupPriorityMinimum} of the groups' APIServices, which orders C{/apis}; equal ones are ordered by name.
GROUP_PRIORITIES: Final[Mapping[str, int]] = {
    "": 18000,
    "apiregistration.k8s.io": 20000,
    "apps": 17800,
    "events.k8s.io": 17750,
    "authentication.k8s.io": 17700,
    "authorization.k8s.io": 17600,
    "autoscaling": 17500,
    "batch": 17400,
    "certificates.k8s.io": 17300,
    "networking.k8s.io": 17200,
    "policy": 17100,
    "rbac.authorization.k8s.io": 17000,
    "storage.k8s.io": 16800,
    "admissionregistration.k8s.io": 16700,
    "apiextensions.k8s.io": 16700,
    "scheduling.k8s.io": 16600,
    "coordination.k8s.io": 16500,
    "node.k8s.io": 16300,
    "discovery.k8s.io": 16200,
    "resource.k8s.io": 16200,
    "flowcontrol.apiserver.k8s.io": 16100,
    "internal.apiserver.k8s.io": 16000,
    "storagemigration.k8s.io": 15800,
    "lifecycle.k8s.io": 15700,
}

#: C{versionPriority} of the APIServices, where it is not 15 for a stable, 9 for a beta and 1 for an alpha version.
VERSION_PRIORITIES: Final[Mapping[tuple[str, str], int]] = {
    ("", "v1"): 1,
    ("autoscaling", "v2"): 30,
    ("autoscaling", "v2beta2"): 1,
    ("admissionregistration.k8s.io", "v1beta1"): 12,
    ("admissionregistration.k8s.io", "v1alpha1"): 9,
    ("coordination.k8s.io", "v1beta1"): 13,
    ("coordination.k8s.io", "v1alpha2"): 12,
    ("flowcontrol.apiserver.k8s.io", "v1"): 21,
    ("flowcontrol.apiserver.k8s.io", "v1beta3"): 18,
    ("flowcontrol.apiserver.k8s.io", "v1beta2"): 15,
    ("flowcontrol.apiserver.k8s.io", "v1beta1"): 12,
    ("internal.apiserver.k8s.io", "v1alpha1"): 9,
    ("resource.k8s.io", "v1"): 21,
    ("resource.k8s.io", "v1beta2"): 15,
    ("resource.k8s.io", "v1beta1"): 12,
    ("resource.k8s.io", "v1alpha3"): 9,
    ("resource.k8s.io", "v1alpha2"): 9,
    ("storagemigration.k8s.io", "v1alpha1"): 9,
}

#: Betas that were on before 1.24 made off the rule, and stayed on until they went.
BETAS_ON_BY_DEFAULT: Final = frozenset(
    [
        ("autoscaling", "v2beta2", "horizontalpodautoscalers"),
        ("flowcontrol.apiserver.k8s.io", "v1beta1", "flowschemas"),
        ("flowcontrol.apiserver.k8s.io", "v1beta1", "prioritylevelconfigurations"),
        ("flowcontrol.apiserver.k8s.io", "v1beta2", "flowschemas"),
        ("flowcontrol.apiserver.k8s.io", "v1beta2", "prioritylevelconfigurations"),
        ("flowcontrol.apiserver.k8s.io", "v1beta3", "flowschemas"),
        ("flowcontrol.apiserver.k8s.io", "v1beta3", "prioritylevelconfigurations"),
        ("storage.k8s.io", "v1beta1", "csistoragecapacities"),
    ]
)


def _versions(text: str) -> tuple[tuple[str, int], ...]:
    """Read C{"v1:36 v1beta1"}."""
    pairs = (part.partition(":") for part in text.split())
    return tuple((version, int(since or 0)) for version, _, since in pairs)


def _kind(
    group: str,
    resource: str,
    kind: str,
    *,
    namespaced: bool = False,
    versions: str = "v1",
    short: str = "",
    categories: str = "",
    singular: str = "",
    prefix: str = "",
    storage_group: str | None = None,
    status: bool = False,
    subresources: tuple[SubresourceInfo, ...] = (),
    stored: bool = True,
    hash_version: str = "",
) -> Kind:
    if status:
        subresources = (*subresources, SubresourceInfo("status", kind))
    return Kind(
        group=group,
        resource=resource,
        kind=kind,
        singular=singular or kind.lower(),
        namespaced=namespaced,
        versions=_versions(versions),
        short_names=tuple(short.split()),
        categories=tuple(categories.split()),
        key_prefix=prefix or resource,
        storage_group=group if storage_group is None else storage_group,
        subresources=tuple(sorted(subresources, key=lambda subresource: subresource.name)),
        stored=stored,
        hash_version=hash_version,
    )


_SCALE = SubresourceInfo("scale", "Scale", "autoscaling", "v1", "scale")
_ADMISSION: Final = "admissionregistration.k8s.io"
_NETWORKING: Final = "networking.k8s.io"
_RBAC: Final = "rbac.authorization.k8s.io"
_STORAGE: Final = "storage.k8s.io"
_RESOURCE: Final = "resource.k8s.io"
_FLOWCONTROL: Final = "flowcontrol.apiserver.k8s.io"

_POD_SUBRESOURCES = (
    SubresourceInfo("attach", "PodAttachOptions", view="connect"),
    SubresourceInfo("binding", "Binding", view="action"),
    SubresourceInfo("ephemeralcontainers", "Pod"),
    SubresourceInfo("eviction", "Eviction", "policy", "v1", "action"),
    SubresourceInfo("exec", "PodExecOptions", view="connect"),
    SubresourceInfo("log", "Pod", view="log"),
    SubresourceInfo("portforward", "PodPortForwardOptions", view="connect"),
    SubresourceInfo("proxy", "PodProxyOptions", view="connect"),
    SubresourceInfo("resize", "Pod", since=33),
)

KINDS: Final[tuple[Kind, ...]] = (
    # core
    _kind("", "bindings", "Binding", namespaced=True, stored=False),
    _kind("", "componentstatuses", "ComponentStatus", short="cs", stored=False),
    _kind("", "configmaps", "ConfigMap", namespaced=True, short="cm"),
    _kind("", "endpoints", "Endpoints", namespaced=True, short="ep", prefix="services/endpoints"),
    _kind("", "events", "Event", namespaced=True, short="ev"),
    _kind("", "limitranges", "LimitRange", namespaced=True, short="limits"),
    _kind(
        "", "namespaces", "Namespace", short="ns", status=True, subresources=(SubresourceInfo("finalize", "Namespace"),)
    ),
    _kind(
        "",
        "nodes",
        "Node",
        short="no",
        prefix="minions",
        status=True,
        subresources=(SubresourceInfo("proxy", "NodeProxyOptions", view="connect"),),
    ),
    _kind("", "persistentvolumeclaims", "PersistentVolumeClaim", namespaced=True, short="pvc", status=True),
    _kind("", "persistentvolumes", "PersistentVolume", short="pv", status=True),
    _kind(
        "",
        "pods",
        "Pod",
        namespaced=True,
        short="po",
        categories="all",
        status=True,
        subresources=_POD_SUBRESOURCES,
    ),
    _kind("", "podtemplates", "PodTemplate", namespaced=True),
    _kind(
        "",
        "replicationcontrollers",
        "ReplicationController",
        namespaced=True,
        short="rc",
        categories="all",
        prefix="controllers",
        status=True,
        subresources=(_SCALE,),
    ),
    _kind("", "resourcequotas", "ResourceQuota", namespaced=True, short="quota", status=True),
    _kind("", "secrets", "Secret", namespaced=True),
    _kind(
        "",
        "serviceaccounts",
        "ServiceAccount",
        namespaced=True,
        short="sa",
        subresources=(SubresourceInfo("token", "TokenRequest", "authentication.k8s.io", "v1", "action"),),
    ),
    _kind(
        "",
        "services",
        "Service",
        namespaced=True,
        short="svc",
        categories="all",
        prefix="services/specs",
        status=True,
        subresources=(SubresourceInfo("proxy", "ServiceProxyOptions", view="connect"),),
    ),
    # The servers around kube-apiserver's own.
    _kind(
        "apiregistration.k8s.io",
        "apiservices",
        "APIService",
        categories="api-extensions",
        prefix="apiregistration.k8s.io/apiservices",
        status=True,
    ),
    # The reference stores CRDs as v1beta1, which is shorter; it reads v1 as well, and that is what is written here.
    _kind(
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        "CustomResourceDefinition",
        short="crd crds",
        categories="api-extensions",
        prefix="apiextensions.k8s.io/customresourcedefinitions",
        status=True,
        hash_version="v1beta1",
    ),
    # apps
    _kind("apps", "controllerrevisions", "ControllerRevision", namespaced=True),
    _kind("apps", "daemonsets", "DaemonSet", namespaced=True, short="ds", categories="all", status=True),
    _kind(
        "apps",
        "deployments",
        "Deployment",
        namespaced=True,
        short="deploy",
        categories="all",
        status=True,
        subresources=(_SCALE,),
    ),
    _kind(
        "apps",
        "replicasets",
        "ReplicaSet",
        namespaced=True,
        short="rs",
        categories="all",
        status=True,
        subresources=(_SCALE,),
    ),
    _kind(
        "apps",
        "statefulsets",
        "StatefulSet",
        namespaced=True,
        short="sts",
        categories="all",
        status=True,
        subresources=(_SCALE,),
    ),
    _kind("events.k8s.io", "events", "Event", namespaced=True, short="ev", storage_group=""),
    # Reviews
    _kind(
        "authentication.k8s.io",
        "selfsubjectreviews",
        "SelfSubjectReview",
        versions="v1:28 v1beta1:27 v1alpha1:26",
        stored=False,
    ),
    _kind("authentication.k8s.io", "tokenreviews", "TokenReview", stored=False),
    _kind(
        "authorization.k8s.io",
        "localsubjectaccessreviews",
        "LocalSubjectAccessReview",
        namespaced=True,
        stored=False,
    ),
    _kind("authorization.k8s.io", "selfsubjectaccessreviews", "SelfSubjectAccessReview", stored=False),
    _kind("authorization.k8s.io", "selfsubjectrulesreviews", "SelfSubjectRulesReview", stored=False),
    _kind("authorization.k8s.io", "subjectaccessreviews", "SubjectAccessReview", stored=False),
    _kind(
        "autoscaling",
        "horizontalpodautoscalers",
        "HorizontalPodAutoscaler",
        namespaced=True,
        versions="v2 v1 v2beta2",
        short="hpa",
        categories="all",
        status=True,
    ),
    _kind("batch", "cronjobs", "CronJob", namespaced=True, short="cj", categories="all", status=True),
    _kind("batch", "jobs", "Job", namespaced=True, categories="all", status=True),
    # certificates.k8s.io
    _kind(
        "certificates.k8s.io",
        "certificatesigningrequests",
        "CertificateSigningRequest",
        short="csr",
        status=True,
        subresources=(SubresourceInfo("approval", "CertificateSigningRequest"),),
    ),
    _kind("certificates.k8s.io", "clustertrustbundles", "ClusterTrustBundle", versions="v1:37 v1beta1:33 v1alpha1:27"),
    _kind(
        "certificates.k8s.io",
        "podcertificaterequests",
        "PodCertificateRequest",
        namespaced=True,
        versions="v1:37 v1beta1:35 v1alpha1:34",
        status=True,
    ),
    _kind("coordination.k8s.io", "leases", "Lease", namespaced=True),
    _kind(
        "coordination.k8s.io",
        "leasecandidates",
        "LeaseCandidate",
        namespaced=True,
        versions="v1beta1:33 v1alpha2:32 v1alpha1:31",
    ),
    _kind("discovery.k8s.io", "endpointslices", "EndpointSlice", namespaced=True),
    # networking.k8s.io
    _kind(_NETWORKING, "clustercidrs", "ClusterCIDR", versions="v1alpha1", short="cc"),
    _kind(_NETWORKING, "ingressclasses", "IngressClass"),
    _kind(_NETWORKING, "ingresses", "Ingress", namespaced=True, short="ing", prefix="ingress", status=True),
    _kind(_NETWORKING, "ipaddresses", "IPAddress", versions="v1:33 v1beta1:31 v1alpha1:27", short="ip"),
    _kind(
        _NETWORKING,
        "networkpolicies",
        "NetworkPolicy",
        namespaced=True,
        short="netpol",
        subresources=(SubresourceInfo("status", "NetworkPolicy", until=27),),
    ),
    _kind(_NETWORKING, "servicecidrs", "ServiceCIDR", versions="v1:33 v1beta1:31 v1alpha1:29", status=True),
    _kind("policy", "poddisruptionbudgets", "PodDisruptionBudget", namespaced=True, short="pdb", status=True),
    _kind(_RBAC, "clusterrolebindings", "ClusterRoleBinding"),
    _kind(_RBAC, "clusterroles", "ClusterRole"),
    _kind(_RBAC, "rolebindings", "RoleBinding", namespaced=True),
    _kind(_RBAC, "roles", "Role", namespaced=True),
    # storage.k8s.io
    _kind(_STORAGE, "csidrivers", "CSIDriver"),
    _kind(_STORAGE, "csinodes", "CSINode", subresources=(SubresourceInfo("status", "CSINode", since=37),)),
    _kind(_STORAGE, "csistoragecapacities", "CSIStorageCapacity", namespaced=True, versions="v1 v1beta1"),
    _kind(_STORAGE, "storageclasses", "StorageClass", short="sc"),
    _kind(_STORAGE, "volumeattachments", "VolumeAttachment", status=True),
    _kind(
        _STORAGE,
        "volumeattributesclasses",
        "VolumeAttributesClass",
        versions="v1:34 v1beta1:31 v1alpha1:29",
        short="vac",
    ),
    # admissionregistration.k8s.io
    _kind(
        _ADMISSION,
        "mutatingadmissionpolicies",
        "MutatingAdmissionPolicy",
        versions="v1:36 v1beta1:34 v1alpha1:32",
        categories="api-extensions",
    ),
    _kind(
        _ADMISSION,
        "mutatingadmissionpolicybindings",
        "MutatingAdmissionPolicyBinding",
        versions="v1:36 v1beta1:34 v1alpha1:32",
        categories="api-extensions",
    ),
    _kind(_ADMISSION, "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", categories="api-extensions"),
    _kind(
        _ADMISSION,
        "validatingadmissionpolicies",
        "ValidatingAdmissionPolicy",
        versions="v1:30 v1beta1:28 v1alpha1:26",
        categories="api-extensions",
        subresources=(SubresourceInfo("status", "ValidatingAdmissionPolicy", since=27),),
    ),
    _kind(
        _ADMISSION,
        "validatingadmissionpolicybindings",
        "ValidatingAdmissionPolicyBinding",
        versions="v1:30 v1beta1:28 v1alpha1:26",
        categories="api-extensions",
    ),
    _kind(_ADMISSION, "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", categories="api-extensions"),
    # scheduling.k8s.io
    _kind("scheduling.k8s.io", "priorityclasses", "PriorityClass", short="pc"),
    _kind(
        "scheduling.k8s.io",
        "compositepodgroups",
        "CompositePodGroup",
        namespaced=True,
        versions="v1alpha3:37",
        status=True,
    ),
    _kind(
        "scheduling.k8s.io",
        "podgroups",
        "PodGroup",
        namespaced=True,
        versions="v1beta1:37 v1alpha3:37 v1alpha2:36",
        status=True,
    ),
    _kind(
        "scheduling.k8s.io",
        "workloads",
        "Workload",
        namespaced=True,
        versions="v1beta1:37 v1alpha3:37 v1alpha2:36 v1alpha1:35",
    ),
    _kind("node.k8s.io", "runtimeclasses", "RuntimeClass"),
    # resource.k8s.io
    _kind(_RESOURCE, "deviceclasses", "DeviceClass", versions="v1:34 v1beta2:33 v1beta1:32 v1alpha3:31"),
    _kind(
        _RESOURCE,
        "devicetaintrules",
        "DeviceTaintRule",
        versions="v1:37 v1beta2:36 v1alpha3:33",
        subresources=(SubresourceInfo("status", "DeviceTaintRule", since=35),),
    ),
    _kind(
        _RESOURCE,
        "podschedulings",
        "PodScheduling",
        singular="podscheduling",
        namespaced=True,
        versions="v1alpha1:26",
        status=True,
    ),
    _kind(
        _RESOURCE,
        "podschedulingcontexts",
        "PodSchedulingContext",
        namespaced=True,
        versions="v1alpha3:31 v1alpha2:27",
        status=True,
    ),
    _kind(_RESOURCE, "resourceclaimparameters", "ResourceClaimParameters", namespaced=True, versions="v1alpha2:30"),
    _kind(
        _RESOURCE,
        "resourceclaims",
        "ResourceClaim",
        namespaced=True,
        versions="v1:34 v1beta2:33 v1beta1:32 v1alpha3:31 v1alpha2:27 v1alpha1:26",
        status=True,
    ),
    _kind(
        _RESOURCE,
        "resourceclaimtemplates",
        "ResourceClaimTemplate",
        namespaced=True,
        versions="v1:34 v1beta2:33 v1beta1:32 v1alpha3:31 v1alpha2:27 v1alpha1:26",
    ),
    _kind(_RESOURCE, "resourceclasses", "ResourceClass", versions="v1alpha2:27 v1alpha1:26"),
    _kind(_RESOURCE, "resourceclassparameters", "ResourceClassParameters", namespaced=True, versions="v1alpha2:30"),
    _kind(_RESOURCE, "resourcepoolstatusrequests", "ResourcePoolStatusRequest", versions="v1alpha3:36", status=True),
    _kind(_RESOURCE, "resourceslices", "ResourceSlice", versions="v1:34 v1beta2:33 v1beta1:32 v1alpha3:31 v1alpha2:30"),
    # What configures the server itself.
    _kind(_FLOWCONTROL, "flowschemas", "FlowSchema", versions="v1:29 v1beta3:26 v1beta2 v1beta1", status=True),
    _kind(
        _FLOWCONTROL,
        "prioritylevelconfigurations",
        "PriorityLevelConfiguration",
        versions="v1:29 v1beta3:26 v1beta2 v1beta1",
        status=True,
    ),
    _kind("internal.apiserver.k8s.io", "storageversions", "StorageVersion", versions="v1alpha1", status=True),
    _kind(
        "storagemigration.k8s.io",
        "storageversionmigrations",
        "StorageVersionMigration",
        versions="v1:37 v1beta1:35 v1alpha1:30",
        status=True,
    ),
    _kind(
        "lifecycle.k8s.io", "evictionrequests", "EvictionRequest", namespaced=True, versions="v1alpha1:37", status=True
    ),
    _kind("lifecycle.k8s.io", "evictions", "Eviction", namespaced=True, versions="v1alpha1:37", status=True),
)
