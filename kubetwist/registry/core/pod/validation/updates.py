"""Which changes of a pod are allowed; see kubernetes, C{pkg/apis/core/validation/validation.go}."""

from __future__ import annotations

from typing import Final

from .....api.addresses import parse_ip
from .....api.errors import FieldError, duplicate, forbidden, invalid, required
from .....api.go.diff import diff
from .....api.go.quote import quoted
from .....api.gostructs import (
    go_struct,
    pod_spec_struct,
)
from .....api.names import validate_qualified_name
from .....api.podspecs import declared
from .....api.resource import JSONObject
from ....generic.validation.fields import (
    MAX_INT32,
    NO_FIELD,
    ErrorList,
    check,
    dns_label,
    dns_subdomain,
    go_json,
    id_number,
    immutable,
    ip,
    is_ipv6,
    need,
    unsupported,
)
from ..qos import qos_class
from .containers import trimmed_image
from .pod import validate_annotation_update, validate_pod
from .spec import MIRROR, validate_tolerations

_UPDATABLE: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_SYSTEM_CONDITIONS: Final = ("PodScheduled", "Ready", "Initialized")


def validate_pod_update(obj: JSONObject, old: JSONObject) -> list[FieldError]:
    """The images, the deadline and little else."""
    errors: ErrorList = []
    validate_pod(obj, errors, old)
    validate_annotation_update(obj, old, errors)
    spec, before = obj["spec"], old["spec"]
    for kind in ("containers", "initContainers"):
        if not _same_containers(spec, before, kind, errors):
            return errors
    if not _deadline(spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds"), errors):
        return errors
    _added_tolerations(spec.get("tolerations") or [], before.get("tolerations") or [], errors)
    known = {gate.get("name") or "" for gate in before.get("schedulingGates") or ()}
    # Of those that have the same name, the last.
    gates = {gate.get("name") or "": index for index, gate in enumerate(spec.get("schedulingGates") or ())}
    for name, index in gates.items():
        if name not in known:
            text = f"only deletion is allowed, but found new scheduling gate '{name}'"
            errors.append(forbidden(f"spec.schedulingGates[{index}].name", text))
    if spec == before:
        return errors
    munged = _munged(spec, before)
    if before.get("schedulingGates"):
        _gated_changes(munged, before, errors)
    if munged != before:
        shown = diff(pod_spec_struct(before), pod_spec_struct(munged))
        errors.append(forbidden("spec", f"{_UPDATABLE}\n{shown}"))
    return errors


def _same_containers(spec: JSONObject, before: JSONObject, kind: str, errors: ErrorList) -> bool:
    new, old = spec.get(kind) or [], before.get(kind) or []
    if len(new) != len(old):
        errors.append(forbidden(f"spec.{kind}", "pod updates may not add or remove containers"))
        return False
    for index, container in enumerate(new):
        if not container.get("image"):
            errors.append(required(f"spec.{kind}[{index}].image"))
        trimmed_image(container, f"spec.{kind}[{index}]", errors)
    return True


def _deadline(new: int | None, old: int | None, errors: ErrorList) -> bool:
    """A deadline may come nearer; whether the other checks make sense still."""
    path = "spec.activeDeadlineSeconds"
    if new is None:
        if old is not None:
            errors.append(invalid(path, None, "must not update from a positive integer to nil value"))
        return True
    if not 0 <= new <= MAX_INT32:
        errors.append(invalid(path, new, f"must be between 0 and {MAX_INT32}, inclusive"))
        return False
    if old is not None and old < new:
        errors.append(invalid(path, new, "must be less than or equal to previous value"))
        return False
    return True


def _added_tolerations(new: list[JSONObject], old: list[JSONObject], errors: ErrorList) -> None:
    kept = set(map(_lasting, new))
    for toleration in old:
        if _lasting(toleration) not in kept:
            text = "existing toleration can not be modified except its tolerationSeconds"
            errors.append(forbidden("spec.tolerations", text))
            return
    validate_tolerations(new, "spec.tolerations", errors)


def _lasting(toleration: JSONObject) -> frozenset[tuple[str, str]]:
    """What of a toleration may not change."""
    return frozenset((name, part) for name, part in toleration.items() if part and name != "tolerationSeconds")


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


def _gated_changes(munged: JSONObject, before: JSONObject, errors: ErrorList) -> None:
    """A pod that waits at a gate may be sent to fewer nodes than before."""
    new, old = munged.get("nodeSelector"), before.get("nodeSelector") or {}
    if (new or {}) != old:
        if any((new or {}).get(key) != value for key, value in old.items()):
            text = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
            errors.append(invalid("spec.nodeSelector", new, text))
        _copy(munged, before, "nodeSelector")
    affinity, was = munged.get("affinity"), before.get("affinity")
    nodes, were = (affinity or {}).get("nodeAffinity"), (was or {}).get("nodeAffinity")
    if nodes == were:
        return
    _node_affinity_change(nodes, were, errors)
    kept = {**(affinity or {})}
    _copy(kept, was or {}, "nodeAffinity")
    if kept or was is not None:
        munged["affinity"] = kept
    else:
        munged.pop("affinity", None)


def _node_affinity_change(new: JSONObject | None, old: JSONObject | None, errors: ErrorList) -> None:
    path = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    name = "requiredDuringSchedulingIgnoredDuringExecution"
    needed, was = (new or {}).get(name), (old or {}).get(name)
    if was is None:
        return
    found, before = (needed or {}).get("nodeSelectorTerms"), was.get("nodeSelectorTerms") or []
    terms = found or []
    if before and len(terms) != len(before):
        shown = go_json(None if found is None else [go_struct(term, "NodeSelectorTerm") for term in terms])
        text = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        errors.append(FieldError("FieldValueInvalid", f"Invalid value: {shown}: {text}", f"{path}.nodeSelectorTerms"))
        return
    for index, (term, earlier) in enumerate(zip(terms, before, strict=False)):
        parts = [(term.get(part) or [], earlier.get(part) or []) for part in ("matchExpressions", "matchFields")]
        # A term without anything in it matches nothing, which is as few nodes as can be.
        empty = not any(part for _, part in parts) and any(part for part, _ in parts)
        if empty or any(now[: len(part)] != part for now, part in parts):
            text = "only additions are allowed (no mutations or deletions)"
            shown, where = go_json(go_struct(term, "NodeSelectorTerm")), f"{path}.nodeSelectorTerms[{index}]"
            errors.append(FieldError("FieldValueInvalid", f"Invalid value: {shown}: {text}", where))


# --- status ------------------------------------------------------------------------------------------------------


def validate_pod_status_update(obj: JSONObject, old: JSONObject) -> list[FieldError]:
    """What a kubelet may report."""
    errors: ErrorList = []
    validate_annotation_update(obj, old, errors)
    status, before, spec = obj.get("status") or {}, old.get("status") or {}, old["spec"]
    for index, condition in enumerate(status.get("conditions") or ()):
        name = condition.get("type") or ""
        _generation(condition, f"status.conditions[{index}]", errors)
        if name not in _SYSTEM_CONDITIONS:
            # The reference's path, as it is.
            check(name, f"status.conditions[{index}].Type", validate_qualified_name, errors)
    nominated = status.get("nominatedNodeName")
    if nominated and nominated != before.get("nominatedNodeName"):
        check(nominated, "status.nominatedNodeName", dns_subdomain, errors)
        if spec.get("nodeName"):
            text = "may not be set on pods that are already bound to a node"
            errors.append(forbidden("status.nominatedNodeName", text))
    _generation(status, "status", errors)
    immutable(status.get("qosClass"), before.get("qosClass"), "status.qosClass", errors)
    if not _all_can_restart(spec):
        _transitions(status, before, spec, "containers", "containerStatuses", errors)
        _transitions(status, before, spec, "initContainers", "initContainerStatuses", errors)
    _transitions(status, before, {}, "ephemeralContainers", "ephemeralContainerStatuses", errors)
    _claim_statuses(status.get("resourceClaimStatuses") or [], spec, errors)
    if status.get("extendedResourceClaimStatus") is not None:
        _extended(status["extendedResourceClaimStatus"], spec, errors)
    _addresses(status, before, errors)
    windows = (spec.get("os") or {}).get("name") == "windows"
    for kind in _STATUS_LISTS:
        for index, one in enumerate(status.get(kind) or ()):
            _user(one.get("user") or {}, windows, f"status.{kind}[{index}].user.linux", errors)
    for kind in ("containers", "initContainers"):
        _health(status, spec, kind, errors)
    for index, one in enumerate(status.get("ephemeralContainerStatuses") or ()):
        if one.get("allocatedResourcesStatus"):
            where = f"status.ephemeralContainerStatuses[{index}].allocatedResourcesStatus"
            errors.append(forbidden(where, "must not be specified in container status"))
    return errors


_STATUS_LISTS: Final = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
_HEALTH: Final = ("Healthy", "Unhealthy", "Unknown")


def _generation(observer: JSONObject, path: str, errors: ErrorList) -> None:
    generation = observer.get("observedGeneration") or 0
    if generation < 0:
        errors.append(invalid(f"{path}.observedGeneration", generation, "must be a non-negative integer"))


def _all_can_restart(spec: JSONObject) -> bool:
    """Whether one of the containers can have all of them started again."""
    return any(
        rule.get("action") == "RestartAllContainers"
        for container, _, _ in declared(spec)
        for rule in container.get("restartPolicyRules") or ()
    )


def _restarts(container: JSONObject, whole: str | None, code: int) -> bool:
    """
    Whether a container that has ended with C{code} is started again.

    @param whole: The policy of its pod.
    """
    policy = container.get("restartPolicy")
    if policy is not None:
        for rule in container.get("restartPolicyRules") or ():
            codes = rule.get("exitCodes") or {}
            inside = code in (codes.get("values") or ())
            if codes.get("operator") == ("In" if inside else "NotIn"):
                return rule.get("action") in ("Restart", "RestartAllContainers")
    policy = whole if policy is None else policy
    return policy != "Never" and (policy != "OnFailure" or code != 0)


def _transitions(
    status: JSONObject, before: JSONObject, spec: JSONObject, containers: str, kind: str, errors: ErrorList
) -> None:
    """What has ended stays so, unless it is started again."""
    known = {one.get("name"): one for one in spec.get(containers) or ()}
    new: dict[str | None, JSONObject] = {}
    for one in status.get(kind) or ():
        new.setdefault(one.get("name"), one)
    for index, old in enumerate(before.get(kind) or ()):
        ended, now = (old.get("state") or {}).get("terminated"), new.get(old.get("name"))
        if ended is None or now is None or (now.get("state") or {}).get("terminated") is not None:
            continue
        container = known.get(old.get("name"))
        if container is None or not _restarts(container, spec.get("restartPolicy"), ended.get("exitCode") or 0):
            text = "may not be transitioned to non-terminated state"
            errors.append(forbidden(f"status.{kind}[{index}].state", text))


def _claim_statuses(statuses: list[JSONObject], spec: JSONObject, errors: ErrorList) -> None:
    """Which claims were made for those of the spec."""
    known = {claim.get("name") or "" for claim in spec.get("resourceClaims") or ()}
    seen: set[str] = set()
    for index, one in enumerate(statuses):
        here, name = f"status.resourceClaimStatuses[{index}]", one.get("name") or ""
        if name not in known:
            text = "must match the name of an entry in `spec.resourceClaims`"
            errors.append(invalid(f"{here}.name", name, text))
        if name in seen:
            errors.append(duplicate(f"{here}.name", name))
        seen.add(name)
        if one.get("resourceClaimName") is not None:
            check(one["resourceClaimName"], f"{here}.resourceClaimName", dns_subdomain, errors)


def _extended(status: JSONObject, spec: JSONObject, errors: ErrorList) -> None:
    """The claim that was made for extended resources, and what of it is whose."""
    path = "status.extendedResourceClaimStatus"
    known = {one.get("name") or "": one for one in (*(spec.get("initContainers") or ()), *spec["containers"])}
    mappings = status.get("requestMappings") or []
    if not mappings:
        errors.append(required(f"{path}.requestMappings", "at least one request mapping is required"))
    seen: set[tuple[str, str, str]] = set()
    for index, mapping in enumerate(mappings):
        here = f"{path}.requestMappings[{index}]"
        container, resource, request = (
            mapping.get(name) or "" for name in ("containerName", "resourceName", "requestName")
        )
        if container not in known:
            text = "must match the name of an entry in spec.initContainers.name or spec.containers.name"
            errors.append(invalid(f"{here}.containerName", container, text))
        elif resource not in ((known[container].get("resources") or {}).get("requests") or {}):
            text = (
                "must match the extended resource name of an entry in spec.initContainers.resources.requests or "
                "spec.containers.resources.requests"
            )
            errors.append(invalid(f"{here}.resourceName", resource, text))
        # The reference leaves the index out.
        check(request, f"{path}.requestName", dns_label, errors)
        if (container, resource, request) in seen:
            errors.append(duplicate(f"{here}.containerName", container))
            errors.append(duplicate(f"{here}.resourceName", resource))
            errors.append(duplicate(f"{here}.requestName", request))
        seen.add((container, resource, request))
    need(status.get("resourceClaimName"), f"{path}.resourceClaimName", dns_subdomain, errors)


def _user(user: JSONObject, windows: bool, path: str, errors: ErrorList) -> None:
    """Whom a container runs as."""
    linux = user.get("linux")
    if linux is None:
        return
    if windows:
        errors.append(forbidden(path, "cannot be set for a windows pod"))
        return
    for name in ("uid", "gid"):
        id_number(linux.get(name), f"{path}.{name}", errors)
    for index, group in enumerate(linux.get("supplementalGroups") or ()):
        id_number(group, f"{path}.supplementalGroups[{index}]", errors)


def _health(status: JSONObject, spec: JSONObject, kind: str, errors: ErrorList) -> None:
    """How the devices of containers are."""
    known = {one.get("name"): one.get("resources") or {} for one in spec.get(kind) or ()}
    field = f"{kind.removesuffix('s')}Statuses"
    for index, one in enumerate(status.get(field) or ()):
        resources = known.get(one.get("name"))
        for place, allocated in enumerate(one.get("allocatedResourcesStatus") or ()):
            here = f"status.{field}[{index}].allocatedResourcesStatus[{place}]"
            if resources is not None:
                _allocated(allocated.get("name") or "", resources, f"{here}.name", errors)
            seen: set[str] = set()
            for number, part in enumerate(allocated.get("resources") or ()):
                where, name = f"{here}.resources[{number}]", part.get("resourceID") or ""
                if part.get("health") not in _HEALTH:
                    errors.append(unsupported(f"{where}.health", part.get("health") or "", _HEALTH))
                if name in seen:
                    errors.append(duplicate(f"{where}.resourceID", name))
                seen.add(name)


def _allocated(name: str, resources: JSONObject, path: str, errors: ErrorList) -> None:
    if name.startswith("claim:"):
        claims = resources.get("claims") or ()
        wanted = {":".join(("claim", "/".join(filter(None, (one.get("name"), one.get("request")))))) for one in claims}
        text = (
            "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' or "
            "'claim:<claimName>' if request is empty"
        )
    else:
        wanted, text = set(resources.get("requests") or ()), "must match one of the container's resource requests"
    if name not in wanted:
        errors.append(invalid(path, name, text))


def _addresses(status: JSONObject, before: JSONObject, errors: ErrorList) -> None:
    _address_list(status, before, "podIPs", errors)
    hosts = status.get("hostIPs")
    if hosts:
        first = hosts[0].get("ip") or ""
        if (status.get("hostIP") or "") != first:
            errors.append(invalid("status.hostIPs[0].ip", first, "must be equal to `hostIP`"))
        _address_list(status, before, "hostIPs", errors)


def _address_list(status: JSONObject, before: JSONObject, field: str, errors: ErrorList) -> None:
    addresses = [one.get("ip") or "" for one in status.get(field) or ()]
    known = {one.get("ip") or "" for one in before.get(field) or ()}
    for index, address in enumerate(addresses):
        if address not in known:
            ip(address, f"status.{field}[{index}]", errors)
    if len(addresses) < 2:
        return
    bad = next(((index, address) for index, address in enumerate(addresses) if parse_ip(address) is None), None)
    if bad is not None:
        text = f"failed to check for dual stack with error:invalid IP[{bad[0]}]: {bad[1]}"
        errors.append(FieldError("InternalError", f"Internal error: {text}", f"status.{field}"))
    if bad is not None or len(addresses) > 2 or len({is_ipv6(address) for address in addresses}) < 2:
        shown = [{"IP": address} for address in addresses]
        errors.append(invalid(f"status.{field}", shown, "may specify no more than one IP for each IP family"))


# --- other subresources ------------------------------------------------------------------------------------------


def validate_ephemeral_update(obj: JSONObject, old: JSONObject) -> list[FieldError]:
    """Containers are added; those that are there stay."""
    if MIRROR in (old["metadata"].get("annotations") or {}):
        return [forbidden(NO_FIELD, "static pods do not support ephemeral containers")]
    errors: ErrorList = []
    validate_pod(obj, errors, old)
    validate_annotation_update(obj, old, errors)
    now = {one.get("name"): one for one in obj["spec"].get("ephemeralContainers") or ()}
    for container in old["spec"].get("ephemeralContainers") or ():
        name = container.get("name")
        if name not in now:
            text = f"existing ephemeral containers {quoted(name or '')} may not be removed\n"
            errors.append(forbidden("spec.ephemeralContainers", text))
        elif now[name] != container:
            shown = diff(*(go_struct(one, "EphemeralContainer") for one in (container, now[name])))
            text = f"existing ephemeral containers {quoted(name or '')} may not be changed\n{shown}"
            errors.append(forbidden("spec.ephemeralContainers", text))
    return errors


def validate_resize(obj: JSONObject, old: JSONObject) -> list[FieldError]:
    """More or less of the same: the quality of service stays."""
    spec, before = obj["spec"], old["spec"]
    if MIRROR in (old["metadata"].get("annotations") or {}):
        return [forbidden(NO_FIELD, "static pods cannot be resized")]
    if (before.get("os") or {}).get("name") == "windows":
        return [forbidden(NO_FIELD, "windows pods cannot be resized")]
    errors: ErrorList = []
    validate_pod(obj, errors, old)
    if ((old.get("status") or {}).get("qosClass") or qos_class(before)) != qos_class(spec):
        shown = (obj.get("status") or {}).get("qosClass") or ""
        errors.append(invalid("spec", shown, "Pod QOS Class may not change as a result of resizing"))
    if not _resizable(old):
        errors.append(forbidden("spec", "Pod running on node without support for resize"))
    _resized_whole(spec, before, errors)
    if not _same_order(spec, before, errors):
        return errors
    pairs = {kind: list(zip(spec.get(kind) or (), before.get(kind) or (), strict=True)) for kind in _RESIZED}
    for kind, both in pairs.items():
        for index, (container, earlier) in enumerate(both):
            here = f"spec.{kind}[{index}].resources"
            _removed(container.get("resources"), earlier.get("resources"), here, "resource", errors)
    for container, earlier in pairs["containers"]:
        if _differs(container, earlier):
            errors.append(forbidden("spec", "only cpu and memory resources are mutable"))
    for index, (container, earlier) in enumerate(pairs["initContainers"]):
        here = f"spec.initContainers[{index}]"
        if _differs(container, earlier):
            text = "only cpu and memory resources for init or sidecar containers are mutable"
            errors.append(forbidden(here, text))
        if container != earlier and container.get("restartPolicy") != "Always":
            text = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
            policies = [one.get("restartPolicy") for one in container.get("resizePolicy") or ()]
            errors.extend([forbidden(here, text)] * policies.count("RestartContainer"))
    return errors


#: In the order in which they are looked at.
_RESIZED: Final = ("initContainers", "containers")
_MUTABLE: Final = ("cpu", "memory")


def _resizable(pod: JSONObject) -> bool:
    """Return whether the node supports resize: its status then has the resources of running containers."""
    for one in (pod.get("status") or {}).get("containerStatuses") or ():
        if (one.get("state") or {}).get("running") is not None:
            return one.get("resources") is not None
    return True


def _resized_whole(spec: JSONObject, before: JSONObject, errors: ErrorList) -> None:
    """Resources of a whole pod."""
    new, old = spec.get("resources"), before.get("resources")
    if not any((one or {}).get(part) for one in (new, old) for part in ("limits", "requests")):
        return
    if old is not None and new is None:
        errors.append(forbidden("spec.resources", "pod-level resources cannot be removed"))
        return
    if old is not None:
        _removed(new, old, "spec.resources", "pod-level resource", errors)
    if _others(new) != _others(old) or (new or {}).get("claims") != (old or {}).get("claims"):
        errors.append(forbidden("spec", "only cpu and memory resources are mutable at pod-level"))


def _same_order(spec: JSONObject, before: JSONObject, errors: ErrorList) -> bool:
    found = len(errors)
    for kind in ("containers", "initContainers"):
        new, was = ([one.get("name") or "" for one in part.get(kind) or ()] for part in (spec, before))
        if len(new) != len(was):
            errors.append(forbidden(f"spec.{kind}", f"{kind} may not be added or removed on resize"))
            continue
        for index, (name, earlier) in enumerate(zip(new, was, strict=True)):
            if name != earlier:
                text = f"{kind} may not be renamed or reordered on resize"
                errors.append(forbidden(f"spec.{kind}[{index}].name", text))
    return len(errors) == found


def _removed(new: JSONObject | None, old: JSONObject | None, path: str, what: str, errors: ErrorList) -> None:
    """What was asked for is asked for still."""
    for part in ("requests", "limits"):
        if ((old or {}).get(part) or {}).keys() - ((new or {}).get(part) or {}).keys():
            errors.append(forbidden(f"{path}.{part}", f"{what} {part} cannot be removed"))


def _others(resources: JSONObject | None) -> list[JSONObject]:
    """The limits and requests that a resize does not change."""
    parts = ((resources or {}).get(part) or {} for part in ("limits", "requests"))
    return [{name: amount for name, amount in part.items() if name not in _MUTABLE} for part in parts]


def _differs(container: JSONObject, earlier: JSONObject) -> bool:
    """Whether a container has changed in more than what a resize is for; claims of devices cannot be kept by one."""
    new, old = container.get("resources"), earlier.get("resources")
    kept = (container.get("resizePolicy") or []) == (earlier.get("resizePolicy") or [])
    return not kept or _others(new) != _others(old) or bool((old or {}).get("claims"))
