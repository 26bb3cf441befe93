"""
NodeRestriction: limits kubelets to writes of their Node and of the pods on it.

The authorizer C{Node} allows kubelets to write some resources. This plugin checks which objects and fields they write.
Requests of kubelets for tokens and certificates are checked by L{kubetwist.admission_plugins.nodecredentials}.

@see: kubernetes, C{plugin/pkg/admission/noderestriction/admission.go}.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

from attrs import field, frozen

from zope.interface import implementer

from ..api.admission import (
    CREATE,
    DELETE,
    UPDATE,
    AdmissionAttributes,
)
from ..api.errors import APIStatusError
from ..api.go.quote import quoted
from ..api.jsontypes import JSONValue
from ..api.resource import GroupResource, JSONObject
from ..api.users import node_of
from ..interfaces import IMutatingAdmission
from ..registry.core.pod.references import MIRROR_ANNOTATION, object_reference
from .nodecredentials import (
    admit_csr,
    admit_pod_certificate_request,
    admit_service_account_token,
)

if TYPE_CHECKING:
    from ..api.admission import AdmissionContext

LEASES_NAMESPACE: Final = "kube-node-lease"

#: Labels below L{_API_DOMAINS} that kubelets may set on their Node, in addition to labels of L{_KUBELET_DOMAINS}.
_KUBELET_LABELS: Final = frozenset(
    (
        "kubernetes.io/hostname",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
        "node.kubernetes.io/instance-type",
        "beta.kubernetes.io/instance-type",
        "kubernetes.io/os",
        "kubernetes.io/arch",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/arch",
    )
)
_KUBELET_DOMAINS: Final = ("kubelet.kubernetes.io", "node.kubernetes.io")
_RESTRICTED_DOMAIN: Final = ("node-restriction.kubernetes.io",)
_API_DOMAINS: Final = ("kubernetes.io", "k8s.io")

#: Metadata that changes with every write.
_IGNORED_METADATA: Final = ("resourceVersion", "managedFields")
#: Status fields of a claim that kubelets may set while its volume is resized.
_CLAIM_STATUS: Final = ("capacity", "conditions", "allocatedResources", "allocatedResourceStatuses")


#: Checks a write of a kubelet, with the name of its node.
Check = Callable[[AdmissionAttributes, str], Any]


@implementer(IMutatingAdmission)
@frozen
class NodeRestriction:
    """
    Checks writes of kubelets. It runs in the mutating phase, before other plugins change the object.

    @ivar checks: The check of each resource, by group and resource.
    """

    name: ClassVar[str] = "NodeRestriction"

    checks: Mapping[tuple[str, str], Check] = field(factory=lambda: _CHECKS)

    @classmethod
    def configured(cls, server: AdmissionContext, configuration: JSONValue) -> NodeRestriction:
        """See L{kubetwist.interfaces.IAdmissionPluginFactory.make}."""
        features = server.features
        checks = dict(_CHECKS)
        if features.enabled("AllowInsecureKubeletCertificateSigningRequests"):
            del checks["certificates.k8s.io", "certificatesigningrequests"]
        if not features.enabled("ServiceAccountNodeAudienceRestriction"):
            checks["", "serviceaccounts"] = partial(_admit_service_account, audiences=False)
        if not features.enabled("RecoverVolumeExpansionFailure"):
            checks["", "persistentvolumeclaims"] = partial(_admit_pvc_status, writable=_CLAIM_STATUS[:2])
        return cls(checks)

    def handles(self, operation: str) -> bool:
        """Return true for all operations that write."""
        return operation in (CREATE, UPDATE, DELETE)

    def admit(self, attributes: AdmissionAttributes) -> Awaitable[None] | None:
        """See L{IMutatingAdmission.admit}."""
        node = node_of(attributes.user)
        if node is None:
            return None
        if not node:
            raise attributes.forbidden(f"could not determine node from user {quoted(attributes.user.name)}")
        check = self.checks.get((attributes.group, attributes.resource))
        return None if check is None else check(attributes, node)


# --- pods


def _admit_pod(attributes: AdmissionAttributes, node: str) -> None:
    subresource = attributes.subresource
    if subresource == "status":
        _admit_pod_status(attributes, node)
    elif subresource == "eviction":
        _admit_pod_eviction(attributes, node)
    elif subresource:
        message = f"unexpected pod subresource {quoted(subresource)}, only 'status' and 'eviction' are allowed"
        raise attributes.forbidden(message)
    elif attributes.operation == CREATE:
        _admit_pod_create(attributes, node)
    elif attributes.operation == DELETE:
        if _existing_pod(attributes, attributes.name)["spec"].get("nodeName") != node:
            message = f"node {quoted(node)} can only delete pods with spec.nodeName set to itself"
            raise attributes.forbidden(message)
    else:
        raise attributes.forbidden(
            f"unexpected operation {quoted(attributes.operation)},"
            f" node {quoted(node)} can only create and delete mirror pods"
        )


def _admit_pod_create(attributes: AdmissionAttributes, node: str) -> None:
    """Allow a node to create only mirror pods without references to other objects."""
    pod = _object(attributes)
    meta = pod["metadata"]
    if MIRROR_ANNOTATION not in (meta.get("annotations") or {}):
        raise attributes.forbidden(
            f"pod does not have {quoted(MIRROR_ANNOTATION)} annotation, node {quoted(node)} can only create mirror pods"
        )
    can_only = f"node {quoted(node)} can only create pods with"
    if (pod.get("spec") or {}).get("nodeName") != node:
        raise attributes.forbidden(f"{can_only} spec.nodeName set to itself")
    owners = meta.get("ownerReferences") or ()
    if len(owners) > 1:
        raise attributes.forbidden(f"{can_only} a single owner reference set to itself")
    owner = owners[0] if owners else {}
    if (owner.get("apiVersion"), owner.get("kind"), owner.get("name")) != ("v1", "Node", node):
        raise attributes.forbidden(f"{can_only} an owner reference set to itself")
    if not owner.get("controller"):
        raise attributes.forbidden(f"{can_only} a controller owner reference set to itself")
    if owner.get("blockOwnerDeletion"):
        raise attributes.forbidden(f"node {quoted(node)} must not set blockOwnerDeletion on an owner reference")
    node_object = attributes.context.get_decoded("", "nodes", "", node)
    if node_object is None:
        raise APIStatusError.not_found(GroupResource("", "node"), node)
    uid, actual_uid = owner.get("uid", ""), node_object["metadata"].get("uid", "")
    if uid != actual_uid:
        raise attributes.forbidden(f"node {node} UID mismatch: expected {uid} got {actual_uid}")
    reference = object_reference(pod)
    if reference:
        raise attributes.forbidden(f"node {quoted(node)} can not create pods that reference {reference}")


def _admit_pod_status(attributes: AdmissionAttributes, node: str) -> None:
    if attributes.operation != UPDATE:
        raise attributes.forbidden(f"unexpected operation {quoted(attributes.operation)}")
    old, new = _old(attributes), _object(attributes)
    if (old.get("spec") or {}).get("nodeName") != node:
        message = f"node {quoted(node)} can only update pod status for pods with spec.nodeName set to itself"
        raise attributes.forbidden(message)
    if (old["metadata"].get("labels") or {}) != (new["metadata"].get("labels") or {}):
        raise attributes.forbidden(f"node {quoted(node)} cannot update labels through pod status")
    if _claim_statuses(old) != _claim_statuses(new):
        raise attributes.forbidden(f"node {quoted(node)} cannot update resource claim statues")
    extended = "extendedResourceClaimStatus"
    if not same((old.get("status") or {}).get(extended), (new.get("status") or {}).get(extended)):
        raise attributes.forbidden(f"node {quoted(node)} cannot update extended resource claim status")


def _claim_statuses(pod: JSONObject) -> list[tuple[JSONValue, JSONValue]]:
    statuses = (pod.get("status") or {}).get("resourceClaimStatuses") or ()
    return [(one.get("name"), one.get("resourceClaimName")) for one in statuses]


def _admit_pod_eviction(attributes: AdmissionAttributes, node: str) -> None:
    if attributes.operation != CREATE:
        raise attributes.forbidden(f"unexpected operation {attributes.operation}")
    name = attributes.name or _object(attributes)["metadata"].get("name", "")
    if not name:
        raise attributes.forbidden("could not determine pod from request data")
    if (_existing_pod(attributes, name).get("spec") or {}).get("nodeName") != node:
        raise attributes.forbidden(f"node {node} can only evict pods with spec.nodeName set to itself")


def _existing_pod(attributes: AdmissionAttributes, name: str) -> JSONObject:
    pod = attributes.context.get_decoded("", "pods", attributes.namespace, name)
    if pod is None:
        raise APIStatusError.not_found(GroupResource("", "pod"), name)
    return pod


# --- nodes


def _admit_node(attributes: AdmissionAttributes, node: str) -> None:
    if attributes.name != node:
        raise attributes.forbidden(f"node {quoted(node)} is not allowed to modify node {quoted(attributes.name)}")
    if attributes.operation == CREATE:
        _admit_node_create(attributes, node)
    elif attributes.operation == UPDATE:
        _admit_node_update(attributes, node)


def _admit_node_create(attributes: AdmissionAttributes, node: str) -> None:
    new = _object(attributes)
    if (new.get("spec") or {}).get("configSource") is not None:
        message = f"node {quoted(node)} is not allowed to create pods with a non-nil configSource"
        raise attributes.forbidden(message)
    if new["metadata"].get("ownerReferences"):
        # The reference checks only updates. An owner set at creation could be deleted later, which deletes the node.
        raise attributes.forbidden(f"node {quoted(node)} is not allowed to modify ownerReferences")
    labels = forbidden_labels(new["metadata"].get("labels") or {}, {})
    if labels:
        message = f"node {quoted(node)} is not allowed to set the following labels: {', '.join(labels)}"
        raise attributes.forbidden(message)


def _admit_node_update(attributes: AdmissionAttributes, node: str) -> None:
    """Reject changes by which a node could attract pods, avoid eviction, or have itself deleted (CVE-2025-5187)."""
    new, old = _object(attributes), _old(attributes)
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    source = spec.get("configSource")
    if source is not None and not same(source, before.get("configSource")):
        message = f"node {quoted(node)} is not allowed to update configSource to a new non-nil configSource"
        raise attributes.forbidden(message)
    if not same(spec.get("taints"), before.get("taints")):
        raise attributes.forbidden(f"node {quoted(node)} is not allowed to modify taints")
    if not same(new["metadata"].get("ownerReferences"), old["metadata"].get("ownerReferences")):
        raise attributes.forbidden(f"node {quoted(node)} is not allowed to modify ownerReferences")
    labels = forbidden_labels(new["metadata"].get("labels") or {}, old["metadata"].get("labels") or {})
    if labels:
        raise attributes.forbidden(f"is not allowed to modify labels: {', '.join(labels)}")


def forbidden_labels(new: Mapping[str, str], old: Mapping[str, str]) -> list[str]:
    """Return the sorted labels that differ between C{new} and C{old} and that kubelets may not modify."""
    changed = {label for label in {*new, *old} if new.get(label) != old.get(label)}
    return sorted(label for label in changed if not _may_kubelet_set(label))


def _may_kubelet_set(label: str) -> bool:
    domain, slash, _ = label.partition("/")
    domain = domain if slash else ""
    if _is_below(domain, _RESTRICTED_DOMAIN):
        return False
    return not _is_below(domain, _API_DOMAINS) or label in _KUBELET_LABELS or _is_below(domain, _KUBELET_DOMAINS)


def _is_below(domain: str, parents: Iterable[str]) -> bool:
    """Return whether a domain is one of the parents or a subdomain of one."""
    return any(domain == parent or domain.endswith(f".{parent}") for parent in parents)


# --- other resources


def _admit_pvc_status(attributes: AdmissionAttributes, node: str, writable: Sequence[str] = _CLAIM_STATUS) -> None:
    if attributes.subresource != "status":
        raise attributes.forbidden("may only update PVC status")
    if attributes.operation != UPDATE:
        raise attributes.forbidden(f"unexpected operation {quoted(attributes.operation)}")
    before, after = (_comparable(one(attributes), writable) for one in (_old, _object))
    changed = sorted(_differences(before, after))
    if changed:
        raise attributes.forbidden(
            f"node {quoted(node)} is not allowed to update fields other than status.quantity and status.conditions:"
            f" {', '.join(changed)}"
        )


def _comparable(claim: JSONObject, writable: Sequence[str]) -> JSONObject:
    """
    Return a claim without the fields that kubelets may change and the metadata that every write changes.

    @param writable: The fields of the status.
    """
    meta = {
        name: value for name, value in claim["metadata"].items() if name not in ("resourceVersion", "managedFields")
    }
    status = {name: value for name, value in (claim.get("status") or {}).items() if name not in writable}
    other_fields = {name: value for name, value in claim.items() if name not in ("kind", "apiVersion")}
    return {**other_fields, "metadata": meta, "status": status}


def _differences(old: JSONObject, new: JSONObject) -> Iterable[str]:
    """Return the fields, two levels deep, in which two objects differ."""
    for name in {*old, *new}:
        before, after = old.get(name), new.get(name)
        if isinstance(before, dict) and isinstance(after, dict):
            for inner in {*before, *after}:
                if not same(before.get(inner), after.get(inner)):
                    yield f"{name}.{inner}"
        elif not same(before, after):
            yield name


def _admit_service_account(attributes: AdmissionAttributes, node: str, audiences: bool = True) -> JSONValue:
    if attributes.operation == CREATE and attributes.subresource == "token":
        return admit_service_account_token(attributes, _object(attributes), node, audiences=audiences)
    return None


def _admit_lease(attributes: AdmissionAttributes, node: str) -> None:
    if attributes.namespace != LEASES_NAMESPACE:
        raise attributes.forbidden(f"can only access leases in the {quoted(LEASES_NAMESPACE)} system namespace")
    if _written_name(attributes) != node:
        raise attributes.forbidden("can only access node lease with the same name as the requesting node")


def _admit_csi_node(attributes: AdmissionAttributes, node: str) -> None:
    if _written_name(attributes) != node:
        raise attributes.forbidden("can only access CSINode with the same name as the requesting node")


def _written_name(attributes: AdmissionAttributes) -> str:
    if attributes.operation == CREATE:
        name: str = _object(attributes)["metadata"].get("name", "")
        return name
    return attributes.name


def _admit_resource_slice(attributes: AdmissionAttributes, node: str) -> None:
    """Check the content that is not in the authorizer's attributes: new slices, and slices of a deletecollection."""
    if attributes.operation == CREATE:
        verb, resource_slice = "create", _object(attributes)
    elif attributes.operation == DELETE:
        verb, resource_slice = "delete", _old(attributes)
    else:
        return
    if (resource_slice.get("spec") or {}).get("nodeName") != node:
        raise attributes.forbidden(f"can only {verb} ResourceSlice with the same NodeName as the requesting node")


def same(one: JSONValue, other: JSONValue) -> bool:
    """Return whether two values are equal, where an absent value equals an empty one."""
    if isinstance(one, dict) and isinstance(other, dict):
        return all(same(one.get(name), other.get(name)) for name in {*one, *other})
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other or (one in _EMPTY and other in _EMPTY)


_EMPTY: Final[tuple[Any, ...]] = (None, {}, [])


def _object(attributes: AdmissionAttributes) -> JSONObject:
    assert attributes.object is not None
    return attributes.object


def _old(attributes: AdmissionAttributes) -> JSONObject:
    assert attributes.old_object is not None
    return attributes.old_object


_CHECKS: Final[Mapping[tuple[str, str], Check]] = {
    ("", "pods"): _admit_pod,
    ("", "nodes"): _admit_node,
    ("", "persistentvolumeclaims"): _admit_pvc_status,
    ("", "serviceaccounts"): _admit_service_account,
    ("coordination.k8s.io", "leases"): _admit_lease,
    ("storage.k8s.io", "csinodes"): _admit_csi_node,
    ("resource.k8s.io", "resourceslices"): _admit_resource_slice,
    ("certificates.k8s.io", "certificatesigningrequests"): admit_csr,
    ("certificates.k8s.io", "podcertificaterequests"): admit_pod_certificate_request,
}
