"""Validation of updates of pods; see kubernetes, C{pkg/apis/core/validation/validation.go}."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from .....api.addresses import parse_ip
from .....api.errors import FieldError, duplicate, forbidden, invalid, required, too_long
from .....api.featuregates import FeatureGates
from .....api.go.diff import diff
from .....api.go.quote import quoted
from .....api.gostructs import (
    go_struct,
    pod_spec_struct,
)
from .....api.names import validate_qualified_name
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
    invalid_shown,
    ip,
    is_ipv6,
    need,
    quantity,
    unsupported,
)
from ..qos import qos_class
from ._restarts import validate_transitions
from .containers import trimmed_image
from .options import PodValidationOptions
from .pod import validate_annotation_update, validate_pod
from .spec import MIRROR, validate_tolerations

_UPDATABLE: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
#: Maximum length of the reference of an image in bytes.
_MAX_IMAGE_REFERENCE_LENGTH: Final = 256
_SYSTEM_CONDITIONS: Final = ("PodScheduled", "Ready", "Initialized")


def validate_pod_update(obj: JSONObject, old: JSONObject, options: PodValidationOptions) -> list[FieldError]:
    """Return the validation errors of an update: images, the deadline, tolerations and gates may change."""
    errors: ErrorList = []
    options = options.for_update(old)
    validate_pod(obj, errors, options)
    validate_annotation_update(obj, old, errors, options)
    spec, before = obj["spec"], old["spec"]
    for kind in ("containers", "initContainers"):
        if not _same_containers(spec, before, kind, errors):
            return errors
    if not _deadline(spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds"), errors):
        return errors
    _added_tolerations(spec.get("tolerations") or [], before.get("tolerations") or [], errors, options)
    existing = {gate.get("name") or "" for gate in before.get("schedulingGates") or ()}
    # The last of gates with the same name.
    gates = {gate.get("name") or "": index for index, gate in enumerate(spec.get("schedulingGates") or ())}
    for name, index in gates.items():
        if name not in existing:
            text = f"only deletion is allowed, but found new scheduling gate '{name}'"
            errors.append(forbidden(f"spec.schedulingGates[{index}].name", text))
    if spec == before:
        return errors
    munged = _munged(spec, before)
    if before.get("schedulingGates"):
        _gated_changes(munged, before, errors)
    if munged != before:
        formatted = diff(pod_spec_struct(before), pod_spec_struct(munged))
        errors.append(forbidden("spec", f"{_UPDATABLE}\n{formatted}"))
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
    """Validate that the deadline is not extended; return whether the other fields should be validated."""
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


def _added_tolerations(
    new: list[JSONObject], old: list[JSONObject], errors: ErrorList, options: PodValidationOptions
) -> None:
    remaining = set(map(_lasting, new))
    for toleration in old:
        if _lasting(toleration) not in remaining:
            text = "existing toleration can not be modified except its tolerationSeconds"
            errors.append(forbidden("spec.tolerations", text))
            return
    validate_tolerations(new, "spec.tolerations", errors, options)


def _lasting(toleration: JSONObject) -> frozenset[tuple[str, str]]:
    """Return the immutable fields of a toleration."""
    return frozenset((name, value) for name, value in toleration.items() if value and name != "tolerationSeconds")


def _munged(spec: JSONObject, before: JSONObject) -> JSONObject:
    """Return C{spec} with the mutable fields of C{before}."""
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
    """Validate changes of scheduling fields of a pod with scheduling gates, which may only restrict its nodes."""
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
    remaining = {**(affinity or {})}
    _copy(remaining, was or {}, "nodeAffinity")
    if remaining or was is not None:
        munged["affinity"] = remaining
    else:
        munged.pop("affinity", None)


def _node_affinity_change(new: JSONObject | None, old: JSONObject | None, errors: ErrorList) -> None:
    path = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    name = "requiredDuringSchedulingIgnoredDuringExecution"
    needed, was = (new or {}).get(name), (old or {}).get(name)
    if was is None:
        return
    new_terms, before = (needed or {}).get("nodeSelectorTerms"), was.get("nodeSelectorTerms") or []
    terms = new_terms or []
    if before and len(terms) != len(before):
        formatted = go_json(None if new_terms is None else [go_struct(term, "NodeSelectorTerm") for term in terms])
        text = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        field_path, go_type = f"{path}.nodeSelectorTerms", "[]core.NodeSelectorTerm"
        errors.append(invalid_shown(field_path, formatted, text, new_terms, go_type))
        return
    for index, (term, earlier) in enumerate(zip(terms, before, strict=False)):
        lists = [(term.get(field) or [], earlier.get(field) or []) for field in ("matchExpressions", "matchFields")]
        # A term without requirements matches no node.
        was_empty = not any(old for _, old in lists) and any(new for new, _ in lists)
        if was_empty or any(new[: len(old)] != old for new, old in lists):
            text = "only additions are allowed (no mutations or deletions)"
            formatted, field_path = go_json(go_struct(term, "NodeSelectorTerm")), f"{path}.nodeSelectorTerms[{index}]"
            errors.append(invalid_shown(field_path, formatted, text, term, "core.NodeSelectorTerm"))


# --- status ------------------------------------------------------------------------------------------------------


def validate_pod_status_update(obj: JSONObject, old: JSONObject, options: PodValidationOptions) -> list[FieldError]:
    """Return the validation errors of an update of the status."""
    errors: ErrorList = []
    options = options.for_update(old)
    validate_annotation_update(obj, old, errors, options)
    status, before, spec = obj.get("status") or {}, old.get("status") or {}, old["spec"]
    for index, condition in enumerate(status.get("conditions") or ()):
        name = condition.get("type") or ""
        _generation(condition, f"status.conditions[{index}]", errors)
        if name not in _SYSTEM_CONDITIONS:
            # The field path of the reference.
            check(name, f"status.conditions[{index}].Type", validate_qualified_name, errors)
    nominated = status.get("nominatedNodeName")
    if nominated and nominated != before.get("nominatedNodeName"):
        check(nominated, "status.nominatedNodeName", dns_subdomain, errors)
        if spec.get("nodeName") and options.features.enabled("ClearingNominatedNodeNameAfterBinding"):
            text = "may not be set on pods that are already bound to a node"
            errors.append(forbidden("status.nominatedNodeName", text))
    _generation(status, "status", errors)
    if options.features.since(1, 32):
        immutable(status.get("qosClass"), before.get("qosClass"), "status.qosClass", errors)
    validate_transitions(status, before, spec, errors, options)
    _claim_statuses(status.get("resourceClaimStatuses") or [], spec, errors)
    if status.get("extendedResourceClaimStatus") is not None:
        _extended(status["extendedResourceClaimStatus"], spec, errors)
    _addresses(status, before, errors, strict=options.strict_addresses)
    windows = (spec.get("os") or {}).get("name") == "windows"
    for kind in _STATUS_LISTS:
        for index, container_status in enumerate(status.get(kind) or ()):
            _user(container_status.get("user") or {}, windows, f"status.{kind}[{index}].user.linux", errors)
    for kind in ("containers", "initContainers"):
        _health(status, spec, kind, errors)
    for index, container_status in enumerate(status.get("ephemeralContainerStatuses") or ()):
        if container_status.get("allocatedResourcesStatus"):
            field_path = f"status.ephemeralContainerStatuses[{index}].allocatedResourcesStatus"
            errors.append(forbidden(field_path, "must not be specified in container status"))
    if options.features.enabled("ImageVolumeWithDigest"):
        _volume_statuses(status, errors)
    return errors


def _volume_statuses(status: JSONObject, errors: ErrorList) -> None:
    """Validate the images of mounted volumes."""
    for kind in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        for index, container_status in enumerate(status.get(kind) or ()):
            for position, mount in enumerate(container_status.get("volumeMounts") or ()):
                image = (mount.get("volumeStatus") or {}).get("image")
                if image is None:
                    continue
                path = f"status.{kind}[{index}].volumeMounts[{position}].volumeStatus.imageVolumeStatus.imageRef"
                reference = image.get("imageRef") or ""
                if not reference:
                    errors.append(required(path, "imageRef must not be empty"))
                if len(reference.encode()) > _MAX_IMAGE_REFERENCE_LENGTH:
                    errors.append(too_long(path, _MAX_IMAGE_REFERENCE_LENGTH))


_STATUS_LISTS: Final = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
_HEALTH: Final = ("Healthy", "Unhealthy", "Unknown")


def _generation(observer: JSONObject, path: str, errors: ErrorList) -> None:
    generation = observer.get("observedGeneration") or 0
    if generation < 0:
        errors.append(invalid(f"{path}.observedGeneration", generation, "must be a non-negative integer"))


def _claim_statuses(statuses: list[JSONObject], spec: JSONObject, errors: ErrorList) -> None:
    """Validate the statuses of the resource claims."""
    existing = {claim.get("name") or "" for claim in spec.get("resourceClaims") or ()}
    seen: set[str] = set()
    for index, claim_status in enumerate(statuses):
        item_path, name = f"status.resourceClaimStatuses[{index}]", claim_status.get("name") or ""
        if name not in existing:
            text = "must match the name of an entry in `spec.resourceClaims`"
            errors.append(invalid(f"{item_path}.name", name, text))
        if name in seen:
            errors.append(duplicate(f"{item_path}.name", name))
        seen.add(name)
        if claim_status.get("resourceClaimName") is not None:
            check(claim_status["resourceClaimName"], f"{item_path}.resourceClaimName", dns_subdomain, errors)


def _extended(status: JSONObject, spec: JSONObject, errors: ErrorList) -> None:
    """Validate the status of the resource claim for extended resources, and its mappings."""
    path = "status.extendedResourceClaimStatus"
    existing = {one.get("name") or "": one for one in (*(spec.get("initContainers") or ()), *spec["containers"])}
    mappings = status.get("requestMappings") or []
    if not mappings:
        errors.append(required(f"{path}.requestMappings", "at least one request mapping is required"))
    seen: set[tuple[str, str, str]] = set()
    for index, mapping in enumerate(mappings):
        item_path = f"{path}.requestMappings[{index}]"
        container, resource, request = (
            mapping.get(name) or "" for name in ("containerName", "resourceName", "requestName")
        )
        if container not in existing:
            text = "must match the name of an entry in spec.initContainers.name or spec.containers.name"
            errors.append(invalid(f"{item_path}.containerName", container, text))
        elif resource not in ((existing[container].get("resources") or {}).get("requests") or {}):
            text = (
                "must match the extended resource name of an entry in spec.initContainers.resources.requests or "
                "spec.containers.resources.requests"
            )
            errors.append(invalid(f"{item_path}.resourceName", resource, text))
        # The field path of the reference has no index.
        check(request, f"{path}.requestName", dns_label, errors)
        if (container, resource, request) in seen:
            errors.append(duplicate(f"{item_path}.containerName", container))
            errors.append(duplicate(f"{item_path}.resourceName", resource))
            errors.append(duplicate(f"{item_path}.requestName", request))
        seen.add((container, resource, request))
    need(status.get("resourceClaimName"), f"{path}.resourceClaimName", dns_subdomain, errors)


def _user(user: JSONObject, windows: bool, path: str, errors: ErrorList) -> None:
    """Validate the user of a container status."""
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
    """Validate the health of devices of containers."""
    existing = {container.get("name"): container.get("resources") or {} for container in spec.get(kind) or ()}
    field = f"{kind.removesuffix('s')}Statuses"
    for index, container_status in enumerate(status.get(field) or ()):
        resources = existing.get(container_status.get("name"))
        for position, allocated in enumerate(container_status.get("allocatedResourcesStatus") or ()):
            item_path = f"status.{field}[{index}].allocatedResourcesStatus[{position}]"
            if resources is not None:
                _allocated(allocated.get("name") or "", resources, f"{item_path}.name", errors)
            seen: set[str] = set()
            for number, resource in enumerate(allocated.get("resources") or ()):
                field_path, name = f"{item_path}.resources[{number}]", resource.get("resourceID") or ""
                if resource.get("health") not in _HEALTH:
                    errors.append(unsupported(f"{field_path}.health", resource.get("health") or "", _HEALTH))
                if name in seen:
                    errors.append(duplicate(f"{field_path}.resourceID", name))
                seen.add(name)


def _allocated(name: str, resources: JSONObject, path: str, errors: ErrorList) -> None:
    if name.startswith("claim:"):
        claims = resources.get("claims") or ()
        allowed = {
            ":".join(("claim", "/".join(filter(None, (claim.get("name"), claim.get("request")))))) for claim in claims
        }
        text = (
            "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' or "
            "'claim:<claimName>' if request is empty"
        )
    else:
        allowed, text = set(resources.get("requests") or ()), "must match one of the container's resource requests"
    if name not in allowed:
        errors.append(invalid(path, name, text))


def _addresses(status: JSONObject, before: JSONObject, errors: ErrorList, *, strict: bool) -> None:
    _address_list(status, before, "podIPs", errors, strict=strict)
    hosts = status.get("hostIPs")
    if hosts:
        first = hosts[0].get("ip") or ""
        if (status.get("hostIP") or "") != first:
            errors.append(invalid("status.hostIPs[0].ip", first, "must be equal to `hostIP`"))
        _address_list(status, before, "hostIPs", errors, strict=strict)


def _address_list(status: JSONObject, before: JSONObject, field: str, errors: ErrorList, *, strict: bool) -> None:
    addresses = [entry.get("ip") or "" for entry in status.get(field) or ()]
    existing = {entry.get("ip") or "" for entry in before.get(field) or ()}
    for index, address in enumerate(addresses):
        if address not in existing:
            ip(address, f"status.{field}[{index}]", errors, strict=strict)
    if len(addresses) < 2:
        return
    bad = next(((index, address) for index, address in enumerate(addresses) if parse_ip(address) is None), None)
    if bad is not None:
        text = f"failed to check for dual stack with error:invalid IP[{bad[0]}]: {bad[1]}"
        errors.append(FieldError("InternalError", f"Internal error: {text}", f"status.{field}"))
    if bad is not None or len(addresses) > 2 or len({is_ipv6(address) for address in addresses}) < 2:
        formatted = [{"IP": address} for address in addresses]
        text, go_type = "may specify no more than one IP for each IP family", f"[]core.{field[0].upper()}{field[1:-1]}"
        value = [{"ip": address} for address in addresses]
        errors.append(invalid_shown(f"status.{field}", go_json(formatted), text, value, go_type))


# --- other subresources ------------------------------------------------------------------------------------------


def validate_ephemeral_update(obj: JSONObject, old: JSONObject, options: PodValidationOptions) -> list[FieldError]:
    """Return the validation errors of an update: existing ephemeral containers must be unchanged."""
    if MIRROR in (old["metadata"].get("annotations") or {}):
        return [forbidden(NO_FIELD, "static pods do not support ephemeral containers")]
    errors: ErrorList = []
    options = options.for_update(old)
    validate_pod(obj, errors, options)
    validate_annotation_update(obj, old, errors, options)
    now = {one.get("name"): one for one in obj["spec"].get("ephemeralContainers") or ()}
    for container in old["spec"].get("ephemeralContainers") or ():
        name = container.get("name")
        if name not in now:
            text = f"existing ephemeral containers {quoted(name or '')} may not be removed\n"
            errors.append(forbidden("spec.ephemeralContainers", text))
        elif now[name] != container:
            formatted = diff(*(go_struct(value, "EphemeralContainer") for value in (container, now[name])))
            text = f"existing ephemeral containers {quoted(name or '')} may not be changed\n{formatted}"
            errors.append(forbidden("spec.ephemeralContainers", text))
    return errors


def validate_resize(obj: JSONObject, old: JSONObject, options: PodValidationOptions) -> list[FieldError]:
    """Return the validation errors of a resize, which must not change the QoS class."""
    features = options.features
    spec, before = obj["spec"], old["spec"]
    if not features.since(1, 35) and (_has_pod_resources(spec) or _has_pod_resources(before)):
        return [forbidden(NO_FIELD, "pods with pod-level resources cannot be resized")]
    if MIRROR in (old["metadata"].get("annotations") or {}):
        return [forbidden(NO_FIELD, "static pods cannot be resized")]
    if (before.get("os") or {}).get("name") == "windows":
        return [forbidden(NO_FIELD, "windows pods cannot be resized")]
    errors: ErrorList = []
    validate_pod(obj, errors, options.for_update(old))
    pod_level = features.enabled("PodLevelResources")
    if ((old.get("status") or {}).get("qosClass") or qos_class(before, pod_level)) != qos_class(spec, pod_level):
        formatted = (obj.get("status") or {}).get("qosClass") or ""
        errors.append(invalid("spec", formatted, "Pod QOS Class may not change as a result of resizing"))
    if not _resizable(old):
        errors.append(forbidden("spec", "Pod running on node without support for resize"))
    if _has_pod_resources(spec) or _has_pod_resources(before):
        if not features.enabled("InPlacePodLevelResourcesVerticalScaling"):
            text = (
                "resize of pods with pod-level resources is forbidden when "
                "InPlacePodLevelResourcesVerticalScalingEnabled feature gate is disabled"
            )
            errors.append(forbidden(NO_FIELD, text))
            return errors
        _resized_whole(spec, before, errors)
    if (old.get("status") or {}).get("nodeAllocatableResourceClaimStatuses"):
        errors.append(forbidden("spec", "pods with node allocatable resource claims cannot be resized"))
    if not _same_order(spec, before, errors):
        return errors
    pairs = {kind: list(zip(spec.get(kind) or (), before.get(kind) or (), strict=True)) for kind in _RESIZED}
    resizes_all = features.enabled(_RESIZES_INIT_CONTAINERS)
    for kind, both in pairs.items():
        for index, (container, earlier) in enumerate(both):
            if kind == "initContainers" and not resizes_all and earlier.get("restartPolicy") != "Always":
                continue
            item_path = f"spec.{kind}[{index}].resources"
            _removed(container.get("resources"), earlier.get("resources"), item_path, "resource", errors)
            if features.since(1, 33) and not features.since(1, 34):
                _reduced_memory(container, earlier, f"{item_path}.limits[memory]", errors)
    for container, earlier in pairs["containers"]:
        if _differs(container, earlier):
            errors.append(forbidden("spec", "only cpu and memory resources are mutable"))
    _resized_init_containers(pairs["initContainers"], errors, features)
    return errors


def _reduced_memory(container: JSONObject, earlier: JSONObject, path: str, errors: ErrorList) -> None:
    """Validate that the memory limit of a container that is not restarted is not reduced; a rule of 1.33."""
    policies = [policy for policy in container.get("resizePolicy") or () if policy.get("resourceName") == "memory"]
    if policies and policies[0].get("restartPolicy") == "RestartContainer":
        return
    new, old = (((one.get("resources") or {}).get("limits") or {}).get("memory") for one in (container, earlier))
    if new is None:
        return
    if old is None:
        errors.append(forbidden(path, "memory limits cannot be added unless resizePolicy is RestartContainer"))
    elif quantity(new) < quantity(old):
        errors.append(forbidden(path, "memory limits cannot be decreased unless resizePolicy is RestartContainer"))


def _resized_init_containers(
    pairs: Sequence[tuple[JSONObject, JSONObject]], errors: ErrorList, features: FeatureGates
) -> None:
    """
    Validate the changes of init containers and sidecars.

    @param pairs: The new and the stored containers.
    @param errors: Receives the errors.
    @param features: The feature gates and the release of the server.
    """
    resizes_all = features.enabled(_RESIZES_INIT_CONTAINERS)
    for index, (container, earlier) in enumerate(pairs):
        item_path = f"spec.initContainers[{index}]"
        is_sidecar = container.get("restartPolicy") == "Always"
        if not is_sidecar and not resizes_all:
            if container != earlier:
                errors.append(forbidden("spec", "resources for non-sidecar init containers are immutable"))
        elif not features.since(1, 36):
            if _differs(container, earlier):
                errors.append(forbidden("spec", "only cpu and memory resources for sidecar containers are mutable"))
        elif _differs(container, earlier):
            text = "only cpu and memory resources for init or sidecar containers are mutable"
            errors.append(forbidden(item_path, text))
        if resizes_all and container != earlier and not is_sidecar:
            text = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
            policies = [policy.get("restartPolicy") for policy in container.get("resizePolicy") or ()]
            errors.extend([forbidden(item_path, text)] * policies.count("RestartContainer"))


_RESIZES_INIT_CONTAINERS: Final = "InPlacePodVerticalScalingInitContainers"
#: The lists of containers in the order of validation.
_RESIZED: Final = ("initContainers", "containers")
_MUTABLE: Final = ("cpu", "memory")


def _resizable(pod: JSONObject) -> bool:
    """Return whether the node supports resize: its status then has the resources of running containers."""
    for container_status in (pod.get("status") or {}).get("containerStatuses") or ():
        if (container_status.get("state") or {}).get("running") is not None:
            return container_status.get("resources") is not None
    return True


def _has_pod_resources(spec: JSONObject) -> bool:
    resources = spec.get("resources") or {}
    return bool(resources.get("requests") or resources.get("limits"))


def _resized_whole(spec: JSONObject, before: JSONObject, errors: ErrorList) -> None:
    """Validate the resize of pod-level resources."""
    new, old = spec.get("resources"), before.get("resources")
    if old is not None and new is None:
        errors.append(forbidden("spec.resources", "pod-level resources cannot be removed"))
        return
    if old is not None:
        _removed(new, old, "spec.resources", "pod-level resource", errors)
    if _immutable_resources(new) != _immutable_resources(old) or (new or {}).get("claims") != (old or {}).get("claims"):
        errors.append(forbidden("spec", "only cpu and memory resources are mutable at pod-level"))


def _same_order(spec: JSONObject, before: JSONObject, errors: ErrorList) -> bool:
    count = len(errors)
    for kind in ("containers", "initContainers"):
        new, was = (
            [container.get("name") or "" for container in pod_spec.get(kind) or ()] for pod_spec in (spec, before)
        )
        if len(new) != len(was):
            errors.append(forbidden(f"spec.{kind}", f"{kind} may not be added or removed on resize"))
            continue
        for index, (name, earlier) in enumerate(zip(new, was, strict=True)):
            if name != earlier:
                text = f"{kind} may not be renamed or reordered on resize"
                errors.append(forbidden(f"spec.{kind}[{index}].name", text))
    return len(errors) == count


def _removed(new: JSONObject | None, old: JSONObject | None, path: str, name: str, errors: ErrorList) -> None:
    """Validate that no requests or limits are removed."""
    for section in ("requests", "limits"):
        if ((old or {}).get(section) or {}).keys() - ((new or {}).get(section) or {}).keys():
            errors.append(forbidden(f"{path}.{section}", f"{name} {section} cannot be removed"))


def _immutable_resources(resources: JSONObject | None) -> list[JSONObject]:
    """Return the limits and requests that a resize must not change."""
    sections = ((resources or {}).get(section) or {} for section in ("limits", "requests"))
    return [{name: amount for name, amount in section.items() if name not in _MUTABLE} for section in sections]


def _differs(container: JSONObject, earlier: JSONObject) -> bool:
    """Return whether a container changed in other fields than those of a resize; claims of devices always count."""
    new, old = container.get("resources"), earlier.get("resources")
    remaining = (container.get("resizePolicy") or []) == (earlier.get("resizePolicy") or [])
    return not remaining or _immutable_resources(new) != _immutable_resources(old) or bool((old or {}).get("claims"))
