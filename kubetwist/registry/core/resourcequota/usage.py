"""
Quota evaluation: the usage of objects, and the quotas that match them.

@see: kubernetes, C{pkg/quota/v1/evaluator/core}.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from ....api.podspecs import declared_containers
from ....api.quantity import Quantity
from ....api.resource import JSONObject
from ..pod.qos import qos_class
from ..pod.resources import ResourceList, amounts, pod_resources

_ONE: Final = Quantity.parse("1")
_ZERO: Final = Quantity.parse("0")
_POD_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage")
#: Resources that containers must specify if a quota constrains them.
_REQUIRED_RESOURCES: Final = frozenset(
    ("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory")
)
#: Resources that are also counted by their name without C{count/}.
_NAMED: Final = frozenset(("configmaps", "secrets", "replicationcontrollers", "resourcequotas"))
_CLASS: Final = ".storageclass.storage.k8s.io/"
_RESOURCE: Final = "resource.k8s.io"
_DEVICES: Final = ".deviceclass.resource.k8s.io/devices"
#: Maximum number of devices of a claim of all devices.
_MAX_DEVICES: Final = 32
_OLD_CLASS: Final = "volume.beta.kubernetes.io/storage-class"


def handles(operation: str, group: str, resource: str, subresource: str) -> bool:
    """
    Return whether a request can increase the usage of a quota.

    @param operation: The operation of the request: C{"CREATE"}.
    @param group: The group of the resource.
    @param resource: The resource.
    @param subresource: The subresource; C{""} for the main resource.
    """
    if resource == "events" and not group:
        return False
    if operation == "CREATE":
        return not subresource
    return operation == "UPDATE" and not group and (resource, subresource) in _UPDATES


def usage_unchanged(resource: str, subresource: str, obj: JSONObject, old: JSONObject) -> bool:
    """
    Return whether an update leaves the matching quotas and the usage of an object unchanged.

    @param resource: The resource of the object.
    @param subresource: The subresource; C{""} for the main resource.
    @param obj: The new object.
    @param old: The stored object.
    """
    return (resource, subresource) == ("pods", "") and _ends(obj["spec"]) == _ends(old["spec"])


#: Updates that can increase the usage: resources and subresources of the core group.
_UPDATES: Final = frozenset(
    (
        ("services", ""),
        ("persistentvolumeclaims", ""),
        ("persistentvolumeclaims", "status"),
        ("pods", ""),
        ("pods", "resize"),
    )
)


def measured(group: str, resource: str) -> bool:
    """Return whether the usage of objects includes more than their number, so that updates can decrease it."""
    return (group, resource) in _MEASURES


def usage(group: str, resource: str, obj: JSONObject) -> ResourceList:
    """Return the usage of an object, by the names of resources in quotas."""
    used = {f"count/{resource}.{group}" if group else f"count/{resource}": _ONE}
    if not group and resource in _NAMED:
        used[resource] = _ONE
    measure = _MEASURES.get((group, resource))
    if measure is not None:
        used.update(measure(obj))
    return used


def _pod_usage(pod: JSONObject) -> ResourceList:
    if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return {}
    spec = pod["spec"]
    return {"pods": _ONE, **_compute(pod_resources(spec, "requests"), pod_resources(spec, "limits"))}


def _compute(requests: ResourceList, limits: ResourceList) -> ResourceList:
    used: ResourceList = {}
    for name, amount in requests.items():
        if name in _POD_RESOURCES or name.startswith("hugepages-"):
            used[name] = used[f"requests.{name}"] = amount
        elif "/" in name:
            used[f"requests.{name}"] = amount
    for name in _POD_RESOURCES:
        if name in limits:
            used[f"limits.{name}"] = limits[name]
    return used


def _service_usage(service: JSONObject) -> ResourceList:
    spec = service["spec"]
    ports, kind = spec.get("ports") or (), spec.get("type")
    balanced = kind == "LoadBalancer"
    if balanced and spec.get("allocateLoadBalancerNodePorts") is False:
        ports = [port for port in ports if port.get("nodePort")]
    elif not balanced and kind != "NodePort":
        ports = ()
    return {
        "services": _ONE,
        "services.loadbalancers": _ONE if balanced else _ZERO,
        "services.nodeports": Quantity.parse(len(ports)),
    }


def _claim_usage(claim: JSONObject) -> ResourceList:
    used = {"persistentvolumeclaims": _ONE}
    annotated = (claim["metadata"].get("annotations") or {}).get(_OLD_CLASS)
    storage_class = annotated or claim["spec"].get("storageClassName")
    if storage_class:
        used[f"{storage_class}{_CLASS}persistentvolumeclaims"] = _ONE
    storage = _claimed(claim)
    if storage is not None:
        used["requests.storage"] = storage
        if storage_class:
            used[f"{storage_class}{_CLASS}requests.storage"] = used["requests.storage"]
    return used


def _claimed(claim: JSONObject) -> Quantity | None:
    """Return the storage that a claim requests or has allocated, whichever is more, in whole bytes."""
    storage = amounts((claim["spec"].get("resources") or {}).get("requests")).get("storage")
    if storage is None:
        return None
    allocated = amounts((claim.get("status") or {}).get("allocatedResources")).get("storage")
    amount = storage if allocated is None else max(storage, allocated)
    whole = Quantity(amount.scaled_value() * 10**9, amount.family)
    return amount if whole == amount else whole


def _device_usage(claim: JSONObject) -> ResourceList:
    """Return the maximum number of devices that a claim may get, by device class."""
    used: ResourceList = {}
    for request in (claim["spec"].get("devices") or {}).get("requests") or ():
        # Only one of several alternatives is allocated: the maximum of each class counts.
        alternatives = request.get("firstAvailable") or [request.get("exactly") or request]
        maxima: ResourceList = {}
        for alternative in alternatives:
            devices = _MAX_DEVICES if alternative.get("allocationMode") == "All" else alternative.get("count") or 1
            name = f"{alternative.get('deviceClassName') or ''}{_DEVICES}"
            maxima[name] = max(maxima.get(name, _ZERO), Quantity.parse(devices))
        for name, amount in maxima.items():
            used[name] = used[name] + amount if name in used else amount
    return used


_MEASURES: Final[dict[tuple[str, str], Callable[[JSONObject], ResourceList]]] = {
    ("", "pods"): _pod_usage,
    ("", "services"): _service_usage,
    ("", "persistentvolumeclaims"): _claim_usage,
    (_RESOURCE, "resourceclaims"): _device_usage,
}


def matching_resources(group: str, resource: str, names: Iterable[str]) -> set[str]:
    """Return the names of a quota that constrain a resource."""
    names_of_kind = {f"count/{resource}.{group}" if group else f"count/{resource}"}
    if not group and (resource in _NAMED or (group, resource) in _MEASURES):
        names_of_kind.add(resource)
    matching = names_of_kind.intersection(names)
    if group:
        if (group, resource) in _MEASURES:
            matching.update(name for name in names if name.endswith(_DEVICES))
        return matching
    if resource == "pods":
        matching.update(name for name in names if _is_of_pods(name))
    elif resource == "services":
        matching.update(name for name in names if name.startswith("services."))
    elif resource == "persistentvolumeclaims":
        matching.update(name for name in names if name == "requests.storage" or _CLASS in name)
    return matching


def _is_of_pods(name: str) -> bool:
    if name in _POD_RESOURCES or name.startswith("hugepages-"):
        return True
    kind, _, resource = name.partition(".")
    if kind == "limits":
        return resource in _POD_RESOURCES
    return (
        kind == "requests"
        and resource != "storage"
        and (resource in _POD_RESOURCES or "hugepages-" in resource or "/" in resource)
    )


def missing_constraints(pod: JSONObject, names: Iterable[str]) -> str:
    """Return the containers that do not specify required resources, as a text; C{""} if there are none."""
    needed = _REQUIRED_RESOURCES.intersection(names)
    spec = pod["spec"]
    pod_resources = spec.get("resources") or {}
    if not needed or pod_resources.get("requests") or pod_resources.get("limits"):
        return ""
    missing: dict[str, set[str]] = {}
    for container, _, _ in declared_containers(spec):
        resources = container.get("resources") or {}
        specified = _compute(amounts(resources.get("requests")), amounts(resources.get("limits")))
        for name in needed.difference(specified):
            missing.setdefault(name, set()).add(container.get("name", ""))
    if not missing:
        return ""
    listed = (f"{name} for: {','.join(sorted(containers))}" for name, containers in sorted(missing.items()))
    return f"must specify {'; '.join(listed)}"


def scopes_of(quota: JSONObject) -> list[JSONObject]:
    """Return the scopes of a quota as requirements."""
    spec = quota.get("spec") or {}
    requirements: list[JSONObject] = [{"scopeName": scope, "operator": "Exists"} for scope in spec.get("scopes") or ()]
    return requirements + list((spec.get("scopeSelector") or {}).get("matchExpressions") or ())


def matching_scopes(scopes: Iterable[JSONObject], group: str, resource: str, obj: JSONObject) -> list[JSONObject]:
    """
    Return the requirements that an object meets, which is a pod or a PersistentVolumeClaim.

    @param scopes: The requirements.
    @param group: The group of the object.
    @param resource: The resource of the object.
    @param obj: The object.
    """
    has = None if group else _SCOPED.get(resource)
    return [] if has is None else [requirement for requirement in scopes if has(obj, requirement)]


def matches_quota(quota: JSONObject, group: str, resource: str, obj: JSONObject) -> bool:
    """
    Return whether an object meets all scopes of a quota.

    @param quota: The quota.
    @param group: The group of the object.
    @param resource: The resource of the object.
    @param obj: The object.
    """
    requirements = scopes_of(quota)
    return not requirements or len(matching_scopes(requirements, group, resource, obj)) == len(requirements)


def _claim_has_scope(claim: JSONObject, requirement: JSONObject) -> bool:
    if requirement.get("scopeName") != "VolumeAttributesClass":
        return False
    status = claim.get("status") or {}
    named = (
        claim["spec"].get("volumeAttributesClassName"),
        status.get("currentVolumeAttributesClassName"),
        (status.get("modifyVolumeStatus") or {}).get("targetVolumeAttributesClassName"),
    )
    return any(_selects(requirement, name) for name in {name for name in named if name} or {""})


def _selects(requirement: JSONObject, name: str) -> bool:
    """Return whether a requirement matches a name; C{""} for no name."""
    operator = requirement.get("operator")
    if operator == "Exists":
        return bool(name)
    if operator == "DoesNotExist":
        return not name
    return bool(name in (requirement.get("values") or ())) == bool(operator == "In")


def _pod_has_scope(pod: JSONObject, requirement: JSONObject) -> bool:
    return _has_scope(pod["spec"], requirement)


_SCOPED: Final = {"pods": _pod_has_scope, "persistentvolumeclaims": _claim_has_scope}


def _has_scope(spec: JSONObject, requirement: JSONObject) -> bool:
    scope: str = requirement.get("scopeName") or ""
    if scope in ("Terminating", "NotTerminating"):
        return _ends(spec) == (scope == "Terminating")
    if scope in ("BestEffort", "NotBestEffort"):
        return (qos_class(spec) == "BestEffort") == (scope == "BestEffort")
    if scope == "CrossNamespacePodAffinity":
        return _crosses_namespaces(spec)
    if scope == "PriorityClass":
        return _selects(requirement, spec.get("priorityClassName") or "")
    return False


def _ends(spec: JSONObject) -> bool:
    """Return whether a pod is terminating: it has C{activeDeadlineSeconds}."""
    return spec.get("activeDeadlineSeconds") is not None


def _crosses_namespaces(spec: JSONObject) -> bool:
    affinity = spec.get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(kind) or {}
        every = list(terms.get("requiredDuringSchedulingIgnoredDuringExecution") or ())
        for weighted in terms.get("preferredDuringSchedulingIgnoredDuringExecution") or ():
            every.append(weighted.get("podAffinityTerm") or {})
        if any(term.get("namespaces") or term.get("namespaceSelector") is not None for term in every):
            return True
    return False


def in_text(used: ResourceList, names: Iterable[str]) -> str:
    """Return the text of amounts for messages."""
    return ",".join(f"{name}={used.get(name, _ZERO)}" for name in sorted(names))
