"""LimitRanger: sets default resources of pods, and enforces the LimitRanges of a namespace on pods and claims."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import ClassVar, Final, Literal

from attrs import frozen

from zope.interface import implementer

from ..api.admission import AdmissionAttributes
from ..api.podspecs import declared_containers
from ..api.quantity import Quantity
from ..api.resource import JSONObject
from ..interfaces import IMutatingAdmission, IValidatingAdmission
from ..registry.core.pod.resources import ResourceList, aggregate_container_resources, amounts

ANNOTATION: Final = "kubernetes.io/limit-ranger"
#: Pod-level resources that limits of type C{Pod} apply to.
_POD_LEVEL_RESOURCES: Final = ("cpu", "memory")

_Rule = Callable[[str, str, Quantity, ResourceList, ResourceList], str | None]


@implementer(IMutatingAdmission, IValidatingAdmission)
@frozen
class LimitRanger:
    """See kubernetes, C{plugin/pkg/admission/limitranger/admission.go}."""

    name: ClassVar[str] = "LimitRanger"
    resources: ClassVar[tuple[str, ...]] = (
        "pods",
        "pods/resize",
        "persistentvolumeclaims",
    )

    def handles(self, operation: str) -> bool:
        """Return true for CREATE and UPDATE."""
        return operation in ("CREATE", "UPDATE")

    def admit(self, attributes: AdmissionAttributes) -> Awaitable[None] | None:
        """See L{IMutatingAdmission.admit}."""
        if attributes.resource != "pods" or attributes.operation != "CREATE":
            return None
        limit_ranges = list(attributes.context.list_decoded("", "limitranges", attributes.namespace))
        if attributes.computing is not None and limit_ranges:
            return attributes.computing(_merge_all_defaults, attributes.object, limit_ranges)
        assert attributes.object is not None
        _merge_all_defaults(attributes.object, limit_ranges)
        return None

    def validate(self, attributes: AdmissionAttributes) -> Awaitable[None] | None:
        """See L{IValidatingAdmission.validate}."""
        if not _is_limited(attributes):
            return None
        limit_ranges = list(attributes.context.list_decoded("", "limitranges", attributes.namespace))
        if attributes.computing is not None and limit_ranges:
            return attributes.computing(_validate_all, attributes, limit_ranges)
        _validate_all(attributes, limit_ranges)
        return None


def _merge_all_defaults(pod: JSONObject, limit_ranges: Sequence[JSONObject]) -> None:
    """Call L{_merge_pod_resource_defaults} for each limit range."""
    for limit_range in limit_ranges:
        _merge_pod_resource_defaults(pod, limit_range)


def _validate_all(attributes: AdmissionAttributes, limit_ranges: Sequence[JSONObject]) -> None:
    """
    Check an object against each limit range.

    @raise APIStatusError: A limit range forbids the object (403).
    """
    obj = attributes.object
    assert obj is not None
    problems_of = validate_pod_limits if attributes.resource == "pods" else validate_claim_limits
    for limit_range in limit_ranges:
        problems = list(dict.fromkeys(problems_of(obj["spec"], limit_range)))
        if problems:
            message = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
            raise attributes.forbidden(message)


def _is_limited(attributes: AdmissionAttributes) -> bool:
    """Return whether limits apply to a request: new objects, resized pods, and claims that are not being deleted."""
    if attributes.operation == "CREATE":
        return not attributes.subresource
    if attributes.resource == "pods" and not attributes.subresource:
        return False
    old = attributes.old_object
    return not (old and old["metadata"].get("deletionTimestamp"))


def _limits(limit_range: JSONObject, kind: str) -> Iterator[JSONObject]:
    for limit in (limit_range.get("spec") or {}).get("limits") or ():
        if limit.get("type") == kind:
            yield limit


def _merge_pod_resource_defaults(pod: JSONObject, limit_range: JSONObject) -> None:
    """Set the default requests and limits of containers, and record that in an annotation."""
    limits: JSONObject = {}
    requests: JSONObject = {}
    for limit in _limits(limit_range, "Container"):
        requests.update(limit.get("defaultRequest") or {})
        limits.update(limit.get("default") or {})
    if not limits and not requests:
        return
    changes: list[str] = []
    for container, kind in _containers(pod["spec"]):
        for field, defaults, word in (("requests", requests, "request"), ("limits", limits, "limit")):
            resources = container.setdefault("resources", {})
            existing = resources.get(field) or {}
            added = {name: value for name, value in defaults.items() if name not in existing}
            if added:
                resources[field] = {**existing, **added}
                changes.append(f"{', '.join(sorted(added))} {word} for {kind} {container.get('name', '')}")
    if changes:
        annotations = pod["metadata"].get("annotations") or {}
        pod["metadata"]["annotations"] = {**annotations, ANNOTATION: f"LimitRanger plugin set: {'; '.join(changes)}"}


def _containers(spec: JSONObject) -> list[tuple[JSONObject, str]]:
    """Return the containers that may request resources with their kinds; regular ones first, as in the reference."""
    pairs = [(container, kind) for container, _, kind in declared_containers(spec)]
    return sorted(pairs, key=lambda one: one[1] != "container")


def validate_pod_limits(spec: JSONObject, limit_range: JSONObject) -> Iterator[str]:
    """Return the violations of a limit range by a pod."""
    for limit in (limit_range.get("spec") or {}).get("limits") or ():
        if limit.get("type") == "Container":
            for container, _ in _containers(spec):
                resources = container.get("resources") or {}
                used = amounts(resources.get("requests")), amounts(resources.get("limits"))
                yield from _constraint_violations(limit, "Container", *used)
        elif limit.get("type") == "Pod":
            yield from _constraint_violations(limit, "Pod", _pod_totals(spec, "requests"), _pod_totals(spec, "limits"))


def _pod_totals(spec: JSONObject, which: Literal["requests", "limits"]) -> ResourceList:
    """Return a pod's totals for limits of type Pod, with the pod-level amounts of supported resources."""
    total = aggregate_container_resources(spec, which)
    pod_level = amounts((spec.get("resources") or {}).get(which))
    total.update({name: pod_level[name] for name in _POD_LEVEL_RESOURCES if name in pod_level})
    return total


def validate_claim_limits(spec: JSONObject, limit_range: JSONObject) -> Iterator[str]:
    """Return the violations of a limit range by a persistent volume claim."""
    requests = amounts((spec.get("resources") or {}).get("requests"))
    for limit in _limits(limit_range, "PersistentVolumeClaim"):
        for rules, check in ((limit.get("min"), _minimum), (limit.get("max"), _maximum_request)):
            for name, bound in sorted(amounts(rules).items()):
                problem = check("PersistentVolumeClaim", name, bound, requests, {})
                if problem:
                    yield problem


def _constraint_violations(limit: JSONObject, kind: str, requests: ResourceList, limits: ResourceList) -> Iterator[str]:
    checks: tuple[tuple[str, _Rule], ...] = (("min", _minimum), ("max", _maximum), ("maxLimitRequestRatio", _ratio))
    for field, check in checks:
        for name, bound in sorted(amounts(limit.get(field)).items()):
            problem = check(kind, name, bound, requests, limits)
            if problem:
                yield problem


def _minimum(kind: str, name: str, bound: Quantity, requests: ResourceList, limits: ResourceList) -> str | None:
    constraint = f"minimum {name} usage per {kind} is {bound}"
    if name not in requests:
        return f"{constraint}.  No request is specified"
    if requests[name] < bound:
        return f"{constraint}, but request is {requests[name]}"
    if name in limits and limits[name] < bound:
        return f"{constraint}, but limit is {limits[name]}"
    return None


def _maximum(kind: str, name: str, bound: Quantity, requests: ResourceList, limits: ResourceList) -> str | None:
    constraint = f"maximum {name} usage per {kind} is {bound}"
    if name not in limits:
        return f"{constraint}.  No limit is specified"
    if limits[name] > bound:
        return f"{constraint}, but limit is {limits[name]}"
    if name in requests and requests[name] > bound:
        return f"{constraint}, but request is {requests[name]}"
    return None


def _maximum_request(kind: str, name: str, bound: Quantity, requests: ResourceList, limits: ResourceList) -> str | None:
    constraint = f"maximum {name} usage per {kind} is {bound}"
    if name not in requests:
        return f"{constraint}.  No request is specified"
    if requests[name] > bound:
        return f"{constraint}, but request is {requests[name]}"
    return None


def _ratio(kind: str, name: str, bound: Quantity, requests: ResourceList, limits: ResourceList) -> str | None:
    constraint = f"{name} max limit to request ratio per {kind} is {bound}"
    if not requests.get(name):
        return f"{constraint}, but no request is specified or request is 0"
    if not limits.get(name):
        return f"{constraint}, but no limit is specified or limit is 0"
    ratio = limits[name].value / requests[name].value
    if ratio > bound.value:
        return f"{constraint}, but provided ratio is {float(ratio):f}"
    return None
