"""
Pods of StatefulSets: names, volume claims and state. No I/O.

@see: kubernetes, C{pkg/controller/statefulset/stateful_set_utils.go}.
"""

from __future__ import annotations

from typing import Final

from ...api.frozen import mutable_copy
from ...api.resource import JSONObject
from ..machinery.metadata import controller_reference
from .history import REVISION_LABEL
from .pods import available_in, is_ready, phase_of
from .rollout import desired_replicas

NAME_LABEL: Final = "statefulset.kubernetes.io/pod-name"
INDEX_LABEL: Final = "apps.kubernetes.io/pod-index"


def ordinal_of(set_name: str, name: str) -> int:
    """Return the ordinal in the name of a pod, or -1 if the pod does not belong to the StatefulSet."""
    parent, dash, number = name.rpartition("-")
    if not dash or parent != set_name or not (number.isascii() and number.isdigit()) or len(number) > 10:
        return -1
    return int(number)


def start_ordinal(stateful: JSONObject) -> int:
    """Return the ordinal of the first pod."""
    return (stateful["spec"].get("ordinals") or {}).get("start") or 0


def is_in_range(stateful: JSONObject, ordinal: int) -> bool:
    """Return whether an ordinal belongs to the replicas of a StatefulSet."""
    start = start_ordinal(stateful)
    return start <= ordinal < start + desired_replicas(stateful)


def is_monotonic(stateful: JSONObject) -> bool:
    """Return whether pods are created and deleted one after another (C{podManagementPolicy: OrderedReady})."""
    return bool(stateful["spec"].get("podManagementPolicy") != "Parallel")


def is_terminating(pod: JSONObject) -> bool:
    """Return whether a pod is being deleted."""
    return "deletionTimestamp" in pod["metadata"]


def is_running(pod: JSONObject) -> bool:
    """Return whether a pod is running and ready."""
    return phase_of(pod) == "Running" and is_ready(pod)


def is_unavailable(stateful: JSONObject, pod: JSONObject | None, now: float) -> bool:
    """Return whether a pod is missing, being deleted, not ready, or not ready for long enough."""
    if pod is None or is_terminating(pod) or phase_of(pod) != "Running":
        return True
    return available_in(pod, stateful["spec"].get("minReadySeconds") or 0, now) != 0


def revision_of_pod(pod: JSONObject) -> str:
    """Return the name of the revision of a pod."""
    return str((pod["metadata"].get("labels") or {}).get(REVISION_LABEL, ""))


def claim_name(stateful: JSONObject, template: JSONObject, ordinal: int) -> str:
    """
    Return the name of the claim of a pod.

    @param template: The volume claim template.
    """
    return f"{template['metadata']['name']}-{stateful['metadata']['name']}-{ordinal}"


def claims_of(stateful: JSONObject, ordinal: int) -> list[JSONObject]:
    """Return new volume claims of a pod."""
    claims = []
    labels = (stateful["spec"].get("selector") or {}).get("matchLabels") or {}
    for template in stateful["spec"].get("volumeClaimTemplates") or ():
        claim = mutable_copy({"metadata": template["metadata"], "spec": template.get("spec") or {}})
        meta = claim["metadata"]
        meta["name"] = claim_name(stateful, template, ordinal)
        meta["namespace"] = stateful["metadata"]["namespace"]
        meta["labels"] = {**(meta.get("labels") or {}), **labels}
        claims.append(claim)
    return claims


def update_identity(stateful: JSONObject, pod: JSONObject, ordinal: int) -> None:
    """Set the name, labels and volumes of a pod according to its ordinal."""
    meta, spec = pod["metadata"], pod["spec"]
    name = f"{stateful['metadata']['name']}-{ordinal}"
    meta.pop("generateName", None)
    meta["name"] = name
    meta["namespace"] = stateful["metadata"]["namespace"]
    meta.setdefault("labels", {}).update({NAME_LABEL: name, INDEX_LABEL: str(ordinal)})
    claimed = {
        template["metadata"]["name"]: claim_name(stateful, template, ordinal)
        for template in stateful["spec"].get("volumeClaimTemplates") or ()
    }
    if claimed:
        other_volumes = [volume for volume in spec.get("volumes") or () if volume["name"] not in claimed]
        spec["volumes"] = [
            *({"name": volume, "persistentVolumeClaim": {"claimName": claim}} for volume, claim in claimed.items()),
            *other_volumes,
        ]


def new_pod(stateful: JSONObject, revision: str, ordinal: int, kind: str, api_version: str) -> JSONObject:
    """
    Return the pod of an ordinal.

    @param stateful: The StatefulSet with the template of the revision.
    @param revision: The name of the revision.
    @param ordinal: The ordinal.
    @param kind: The kind of the owner reference.
    @param api_version: The API version of the owner reference.
    """
    template = mutable_copy(stateful["spec"]["template"])
    meta = template.get("metadata") or {}
    pod = {
        "metadata": {name: meta[name] for name in ("labels", "annotations", "finalizers") if meta.get(name)},
        "spec": template.get("spec") or {},
    }
    pod["metadata"]["ownerReferences"] = [controller_reference(kind, api_version, stateful)]
    update_identity(stateful, pod, ordinal)
    pod["metadata"]["labels"][REVISION_LABEL] = revision
    pod["spec"]["hostname"] = pod["metadata"]["name"]
    if stateful["spec"].get("serviceName"):
        pod["spec"]["subdomain"] = stateful["spec"]["serviceName"]
    return pod


def identity_matches(pod: JSONObject, ordinal: int) -> bool:
    """Return whether a pod has the labels of its ordinal. The rest of its identity is immutable."""
    labels = pod["metadata"].get("labels") or {}
    return labels.get(NAME_LABEL) == pod["metadata"]["name"] and labels.get(INDEX_LABEL) == str(ordinal)


def claim_owner(stateful: JSONObject, condemned: bool) -> str:
    """Return the owner of a claim for garbage collection: C{"set"}, C{"pod"}, or C{""} for none."""
    policy = stateful["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    if condemned and policy.get("whenScaled") == "Delete":
        return "pod"
    return "set" if policy.get("whenDeleted") == "Delete" else ""
