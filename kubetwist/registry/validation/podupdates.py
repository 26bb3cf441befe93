"""Which changes of a pod are allowed; see kubernetes, C{pkg/apis/core/validation/validation.go}."""

from __future__ import annotations

from typing import Any, Final

from ...api.errors import Cause, duplicate, forbidden, invalid, required
from ...api.godiff import diff
from ...api.names import qualified_name_problems
from ...api.resource import JSONObject
from ...schema.gostructs import go_struct, pod_spec_struct
from ..qos import qos_class
from .containers import trimmed_image
from .fields import MAX_INT32, Causes, check, dns_subdomain, go_json, immutable, ip, is_ipv6
from .pods import validate_pod
from .podspec import validate_tolerations

_UPDATABLE: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_SYSTEM_CONDITIONS: Final = ("PodScheduled", "Ready", "Initialized")


def validate_pod_update(obj: JSONObject, old: JSONObject) -> list[Cause]:
    """The images, the deadline and little else."""
    causes: Causes = []
    validate_pod(obj, causes)
    spec, before = obj["spec"], old["spec"]
    for kind in ("containers", "initContainers"):
        if not _same_containers(spec, before, kind, causes):
            return causes
    if not _deadline(spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds"), causes):
        return causes
    _added_tolerations(spec.get("tolerations") or [], before.get("tolerations") or [], causes)
    known = {gate.get("name") for gate in before.get("schedulingGates") or ()}
    for index, gate in enumerate(spec.get("schedulingGates") or ()):
        if gate.get("name") not in known:
            text = f"only deletion is allowed, but found new scheduling gate '{gate.get('name', '')}'"
            causes.append(forbidden(f"spec.schedulingGates[{index}].name", text))
    if spec == before:
        return causes
    munged = _munged(spec, before)
    if before.get("schedulingGates"):
        _gated_changes(munged, before, causes)
    if munged != before:
        shown = diff(pod_spec_struct(before), pod_spec_struct(munged))
        causes.append(forbidden("spec", f"{_UPDATABLE}\n{shown}"))
    return causes


def _same_containers(spec: JSONObject, before: JSONObject, kind: str, causes: Causes) -> bool:
    new, old = spec.get(kind) or [], before.get(kind) or []
    if len(new) != len(old):
        causes.append(forbidden(f"spec.{kind}", "pod updates may not add or remove containers"))
        return False
    for index, container in enumerate(new):
        if not container.get("image"):
            causes.append(required(f"spec.{kind}[{index}].image"))
        trimmed_image(container, f"spec.{kind}[{index}]", causes)
    return True


def _deadline(new: int | None, old: int | None, causes: Causes) -> bool:
    """A deadline may come nearer; whether the other checks make sense still."""
    path = "spec.activeDeadlineSeconds"
    if new is None:
        if old is not None:
            causes.append(invalid(path, None, "must not update from a positive integer to nil value"))
        return True
    if not 0 <= new <= MAX_INT32:
        causes.append(invalid(path, new, f"must be between 0 and {MAX_INT32}, inclusive"))
        return False
    if old is not None and old < new:
        causes.append(invalid(path, new, "must be less than or equal to previous value"))
        return False
    return True


def _added_tolerations(new: list[JSONObject], old: list[JSONObject], causes: Causes) -> None:
    kept = [{name: part for name, part in one.items() if name != "tolerationSeconds"} for one in new]
    for toleration in old:
        if {name: part for name, part in toleration.items() if name != "tolerationSeconds"} not in kept:
            text = "existing toleration can not be modified except its tolerationSeconds"
            causes.append(forbidden("spec.tolerations", text))
            return
    validate_tolerations(new, "spec.tolerations", causes)


def _munged(spec: JSONObject, before: JSONObject) -> JSONObject:
    """C{spec} with all that may change put back to what it was."""
    munged = dict(spec)
    for kind in ("containers", "initContainers"):
        if spec.get(kind):
            munged[kind] = [
                {**container, "image": was["image"]} if "image" in was else container
                for container, was in zip(spec[kind], before[kind], strict=True)
            ]
    for name in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        _copy(munged, before, name)
    grace = before.get("terminationGracePeriodSeconds")
    if grace is not None and grace < 0 and spec.get("terminationGracePeriodSeconds") == 1:
        munged["terminationGracePeriodSeconds"] = grace
    return munged


def _copy(target: JSONObject, source: JSONObject, name: str) -> None:
    if name in source:
        target[name] = source[name]
    else:
        target.pop(name, None)


def _gated_changes(munged: JSONObject, before: JSONObject, causes: Causes) -> None:
    """A pod that waits at a gate may be sent to fewer nodes than before."""
    new, old = munged.get("nodeSelector") or {}, before.get("nodeSelector") or {}
    if new != old:
        if any(new.get(key) != value for key, value in old.items()):
            text = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
            causes.append(invalid("spec.nodeSelector", new, text))
        _copy(munged, before, "nodeSelector")
    affinity, was = munged.get("affinity"), before.get("affinity")
    nodes, were = (affinity or {}).get("nodeAffinity"), (was or {}).get("nodeAffinity")
    if nodes == were:
        return
    _node_affinity_change(nodes, were, causes)
    kept = {**(affinity or {})}
    _copy(kept, was or {}, "nodeAffinity")
    if kept or was is not None:
        munged["affinity"] = kept
    else:
        munged.pop("affinity", None)


def _node_affinity_change(new: JSONObject | None, old: JSONObject | None, causes: Causes) -> None:
    path = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    name = "requiredDuringSchedulingIgnoredDuringExecution"
    needed, was = (new or {}).get(name), (old or {}).get(name)
    if was is None:
        return
    if needed is None:
        causes.append(invalid(path, None, "field is immutable"))
        return
    terms, before = needed.get("nodeSelectorTerms") or [], was.get("nodeSelectorTerms") or []
    if before and len(terms) != len(before):
        shown = go_json([go_struct(term, "NodeSelectorTerm") for term in terms])
        text = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        causes.append(Cause("FieldValueInvalid", f"Invalid value: {shown}: {text}", f"{path}.nodeSelectorTerms"))
        return
    for index, (term, earlier) in enumerate(zip(terms, before, strict=False)):
        for part in ("matchExpressions", "matchFields"):
            if (term.get(part) or [])[: len(earlier.get(part) or [])] != (earlier.get(part) or []):
                text = "only additions are allowed (no mutations or deletions)"
                shown, where = go_json(go_struct(term, "NodeSelectorTerm")), f"{path}.nodeSelectorTerms[{index}]"
                causes.append(Cause("FieldValueInvalid", f"Invalid value: {shown}: {text}", where))
                break


# --- status ------------------------------------------------------------------------------------------------------


def validate_pod_status_update(obj: JSONObject, old: JSONObject) -> list[Cause]:
    """What a kubelet may report."""
    causes: Causes = []
    status, before = obj.get("status") or {}, old.get("status") or {}
    for index, condition in enumerate(status.get("conditions") or ()):
        name = condition.get("type") or ""
        if name not in _SYSTEM_CONDITIONS:
            # The reference's path, as it is.
            check(name, f"status.conditions[{index}].Type", qualified_name_problems, causes)
    nominated = status.get("nominatedNodeName")
    if nominated and nominated != before.get("nominatedNodeName"):
        check(nominated, "status.nominatedNodeName", dns_subdomain, causes)
    immutable(status.get("qosClass"), before.get("qosClass"), "status.qosClass", causes)
    policy = old["spec"].get("restartPolicy")
    _transitions(status, before, "containerStatuses", policy, causes)
    _transitions(status, before, "initContainerStatuses", policy, causes, old["spec"].get("initContainers") or ())
    _transitions(status, before, "ephemeralContainerStatuses", "Never", causes)
    _addresses(status, causes)
    return causes


def _transitions(
    status: JSONObject, before: JSONObject, kind: str, policy: str | None, causes: Causes, sidecars: Any = ()
) -> None:
    if policy == "Always":
        return
    lasting = {one.get("name") for one in sidecars if one.get("restartPolicy") == "Always"}
    new = {one.get("name"): one for one in status.get(kind) or ()}
    for index, old in enumerate(before.get(kind) or ()):
        ended = (old.get("state") or {}).get("terminated")
        if ended is None or (ended.get("exitCode") and policy == "OnFailure") or old.get("name") in lasting:
            continue
        now = new.get(old.get("name"))
        if now is not None and (now.get("state") or {}).get("terminated") is None:
            text = "may not be transitioned to non-terminated state"
            causes.append(forbidden(f"status.{kind}[{index}].state", text))


def _addresses(status: JSONObject, causes: Causes) -> None:
    pods = [one.get("ip") or "" for one in status.get("podIPs") or ()]
    _address_list(pods, "status.podIPs", causes)
    hosts = [one.get("ip") or "" for one in status.get("hostIPs") or ()]
    if hosts:
        if (status.get("hostIP") or "") != hosts[0]:
            causes.append(invalid("status.hostIPs[0].ip", hosts[0], "must be equal to `hostIP`"))
        _address_list(hosts, "status.hostIPs", causes)


def _address_list(addresses: list[str], path: str, causes: Causes) -> None:
    for index, address in enumerate(addresses):
        ip(address, f"{path}[{index}]", causes)
    if len(addresses) > 1:
        shown = [{"IP": address} for address in addresses]
        if len(addresses) > 2 or len({is_ipv6(address) for address in addresses}) < 2:
            causes.append(invalid(path, shown, "may specify no more than one IP for each IP family"))
        for index, address in enumerate(addresses):
            if address in addresses[:index]:
                causes.append(duplicate(f"{path}[{index}]", shown[index]))


# --- other subresources ------------------------------------------------------------------------------------------


def validate_ephemeral_update(obj: JSONObject, old: JSONObject) -> list[Cause]:
    """Containers are added; those that are there stay."""
    causes: Causes = []
    validate_pod(obj, causes)
    if "kubernetes.io/config.mirror" in (old["metadata"].get("annotations") or {}):
        return [forbidden("", "static pods do not support ephemeral containers")]
    now = {one.get("name"): one for one in obj["spec"].get("ephemeralContainers") or ()}
    for container in old["spec"].get("ephemeralContainers") or ():
        name = container.get("name")
        if name not in now:
            text = f'existing ephemeral containers "{name}" may not be removed\n'
            causes.append(forbidden("spec.ephemeralContainers", text))
        elif now[name] != container:
            shown = diff(*(go_struct(one, "EphemeralContainer") for one in (container, now[name])))
            text = f'existing ephemeral containers "{name}" may not be changed\n{shown}'
            causes.append(forbidden("spec.ephemeralContainers", text))
    return causes


def validate_resize(obj: JSONObject, old: JSONObject) -> list[Cause]:
    """More or less of the same: the quality of service stays."""
    causes: Causes = []
    validate_pod(obj, causes)
    spec, before = obj["spec"], old["spec"]
    quality = qos_class(spec)
    if (old.get("status") or {}).get("qosClass") not in (None, quality):
        shown = (obj.get("status") or {}).get("qosClass") or ""
        causes.append(invalid("spec", shown, "Pod QOS Class may not change as a result of resizing"))
    for kind in ("containers", "initContainers"):
        new, was = spec.get(kind) or [], before.get(kind) or []
        if len(new) != len(was):
            causes.append(forbidden(f"spec.{kind}", "containers may not be added or removed on resize"))
            continue
        for index, (container, earlier) in enumerate(zip(new, was, strict=True)):
            _resized(container, earlier, f"spec.{kind}[{index}]", causes)
    return causes


def _resized(container: JSONObject, earlier: JSONObject, path: str, causes: Causes) -> None:
    now, was = container.get("resources") or {}, earlier.get("resources") or {}
    for part, what in (("limits", "limits"), ("requests", "requests")):
        if any(name in ("cpu", "memory") and name not in (now.get(part) or {}) for name in was.get(part) or ()):
            causes.append(forbidden(f"{path}.resources.{part}", f"resource {what} cannot be removed"))
    for part in ("limits", "requests"):
        new, old = now.get(part) or {}, was.get(part) or {}
        if any(new.get(name) != old.get(name) for name in new.keys() | old.keys() if name not in ("cpu", "memory")):
            causes.append(forbidden("spec", "only cpu and memory resources are mutable"))
            return
