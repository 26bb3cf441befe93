"""
What objects count for in resource quotas, and which quotas count them.

@see: kubernetes, C{pkg/quota/v1/evaluator/core}.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from ....api.podspecs import declared
from ....api.quantity import Quantity
from ....api.resource import JSONObject
from ..pod.qos import qos_class
from ..pod.resources import ResourceList, amounts, pod_resources

_ONE: Final = Quantity.parse("1")
_ZERO: Final = Quantity.parse("0")
_POD_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage")
#: What containers have to say where a quota counts it.
_MUST_SAY: Final = frozenset(("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"))
#: Kinds that are counted under their own name, too.
_NAMED: Final = frozenset(("configmaps", "secrets", "replicationcontrollers", "resourcequotas"))
_CLASS: Final = ".storageclass.storage.k8s.io/"
_RESOURCE: Final = "resource.k8s.io"
_DEVICES: Final = ".deviceclass.resource.k8s.io/devices"
#: What a claim of all devices gets at the most.
_MOST_DEVICES: Final = 32
_OLD_CLASS: Final = "volume.beta.kubernetes.io/storage-class"


def counts(operation: str, group: str, resource: str, subresource: str) -> bool:
    """Whether such a write may use up anything."""
    if resource == "events" and not group:
        return False
    if operation == "CREATE":
        return not subresource
    return operation == "UPDATE" and not group and (resource, subresource) in _UPDATES


def stays(resource: str, subresource: str, obj: JSONObject, old: JSONObject) -> bool:
    """Whether an update that L{counts} leaves an object among those of the same quotas, and as large as it was."""
    return (resource, subresource) == ("pods", "") and _ends(obj["spec"]) == _ends(old["spec"])


#: Updates that may use up more: resources of the core group, with their subresources.
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
    """Whether objects of a kind count for more than their number, so that they may come to count for less."""
    return (group, resource) in _MEASURES


def usage(group: str, resource: str, obj: JSONObject) -> ResourceList:
    """What an object uses, by the names that quotas have for it."""
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
    """How much storage a claim wants, or has been given already, if that is more; in whole bytes."""
    storage = amounts((claim["spec"].get("resources") or {}).get("requests")).get("storage")
    if storage is None:
        return None
    given = amounts((claim.get("status") or {}).get("allocatedResources")).get("storage")
    most = storage if given is None else max(storage, given)
    whole = Quantity(most.scaled() * 10**9, most.family)
    return most if whole == most else whole


def _device_usage(claim: JSONObject) -> ResourceList:
    """The devices of each class that a claim may get at the most."""
    used: ResourceList = {}
    for request in (claim["spec"].get("devices") or {}).get("requests") or ():
        # Of several that will do, it gets one: the largest of each class counts.
        ways = request.get("firstAvailable") or [request.get("exactly") or request]
        most: ResourceList = {}
        for way in ways:
            devices = _MOST_DEVICES if way.get("allocationMode") == "All" else way.get("count") or 1
            name = f"{way.get('deviceClassName') or ''}{_DEVICES}"
            most[name] = max(most.get(name, _ZERO), Quantity.parse(devices))
        for name, amount in most.items():
            used[name] = used[name] + amount if name in used else amount
    return used


_MEASURES: Final[dict[tuple[str, str], Callable[[JSONObject], ResourceList]]] = {
    ("", "pods"): _pod_usage,
    ("", "services"): _service_usage,
    ("", "persistentvolumeclaims"): _claim_usage,
    (_RESOURCE, "resourceclaims"): _device_usage,
}


def matching_resources(group: str, resource: str, names: Iterable[str]) -> set[str]:
    """Which of the resources that a quota names are about this kind."""
    own = {f"count/{resource}.{group}" if group else f"count/{resource}"}
    if not group and (resource in _NAMED or (group, resource) in _MEASURES):
        own.add(resource)
    found = own.intersection(names)
    if group:
        if (group, resource) in _MEASURES:
            found.update(name for name in names if name.endswith(_DEVICES))
        return found
    if resource == "pods":
        found.update(name for name in names if _is_of_pods(name))
    elif resource == "services":
        found.update(name for name in names if name.startswith("services."))
    elif resource == "persistentvolumeclaims":
        found.update(name for name in names if name == "requests.storage" or _CLASS in name)
    return found


def _is_of_pods(name: str) -> bool:
    if name in _POD_RESOURCES or name.startswith("hugepages-"):
        return True
    kind, _, what = name.partition(".")
    if kind == "limits":
        return what in _POD_RESOURCES
    return kind == "requests" and what != "storage" and (what in _POD_RESOURCES or "hugepages-" in what or "/" in what)


def missing_constraints(pod: JSONObject, names: Iterable[str]) -> str:
    """Which containers do not say what these quota resources need, as a text; C{""} when all do."""
    needed = _MUST_SAY.intersection(names)
    spec = pod["spec"]
    whole = spec.get("resources") or {}
    if not needed or whole.get("requests") or whole.get("limits"):
        return ""
    missing: dict[str, set[str]] = {}
    for container, _, _ in declared(spec):
        resources = container.get("resources") or {}
        said = _compute(amounts(resources.get("requests")), amounts(resources.get("limits")))
        for name in needed.difference(said):
            missing.setdefault(name, set()).add(container.get("name", ""))
    if not missing:
        return ""
    listed = (f"{name} for: {','.join(sorted(containers))}" for name, containers in sorted(missing.items()))
    return f"must specify {'; '.join(listed)}"


def scopes_of(quota: JSONObject) -> list[JSONObject]:
    """What objects must have for a quota to count them, as requirements."""
    spec = quota.get("spec") or {}
    wanted: list[JSONObject] = [{"scopeName": scope, "operator": "Exists"} for scope in spec.get("scopes") or ()]
    return wanted + list((spec.get("scopeSelector") or {}).get("matchExpressions") or ())


def matching_scopes(scopes: Iterable[JSONObject], group: str, resource: str, obj: JSONObject) -> list[JSONObject]:
    """Those of the requirements that an object meets; pods and claims of storage can."""
    has = None if group else _SCOPED.get(resource)
    return [] if has is None else [one for one in scopes if has(obj, one)]


def in_scope(quota: JSONObject, group: str, resource: str, obj: JSONObject) -> bool:
    """Whether an object has all that a quota is limited to."""
    wanted = scopes_of(quota)
    return not wanted or len(matching_scopes(wanted, group, resource, obj)) == len(wanted)


def _claim_has_scope(claim: JSONObject, wanted: JSONObject) -> bool:
    if wanted.get("scopeName") != "VolumeAttributesClass":
        return False
    status = claim.get("status") or {}
    named = (
        claim["spec"].get("volumeAttributesClassName"),
        status.get("currentVolumeAttributesClassName"),
        (status.get("modifyVolumeStatus") or {}).get("targetVolumeAttributesClassName"),
    )
    return any(_selects(wanted, name) for name in {name for name in named if name} or {""})


def _selects(wanted: JSONObject, name: str) -> bool:
    """Whether a name, or none at all, is what a requirement is about."""
    operator = wanted.get("operator")
    if operator == "Exists":
        return bool(name)
    if operator == "DoesNotExist":
        return not name
    return bool(name in (wanted.get("values") or ())) == bool(operator == "In")


def _pod_has_scope(pod: JSONObject, wanted: JSONObject) -> bool:
    return _has_scope(pod["spec"], wanted)


_SCOPED: Final = {"pods": _pod_has_scope, "persistentvolumeclaims": _claim_has_scope}


def _has_scope(spec: JSONObject, wanted: JSONObject) -> bool:
    scope: str = wanted.get("scopeName") or ""
    if scope in ("Terminating", "NotTerminating"):
        return _ends(spec) == (scope == "Terminating")
    if scope in ("BestEffort", "NotBestEffort"):
        return (qos_class(spec) == "BestEffort") == (scope == "BestEffort")
    if scope == "CrossNamespacePodAffinity":
        return _crosses_namespaces(spec)
    if scope == "PriorityClass":
        return _selects(wanted, spec.get("priorityClassName") or "")
    return False


def _ends(spec: JSONObject) -> bool:
    """Whether a pod is one that comes to an end by itself."""
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
    """Amounts as messages list them."""
    return ",".join(f"{name}={used.get(name, _ZERO)}" for name in sorted(names))
