"""Requests and limits of containers and pods."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from .....api.errors import FieldError, duplicate, forbidden, invalid, required
from .....api.names import validate_qualified_name
from .....api.resource import JSONObject
from ....generic.validation.fields import (
    ErrorList,
    check,
    dns_label,
    invalid_name,
    quantity,
    quantity_not_negative,
    quote,
    unsupported,
)

_CONTAINER_RESOURCES: Final = frozenset(("cpu", "memory", "ephemeral-storage"))
_POD_RESOURCES: Final = ("cpu", "hugepages-", "memory")
_QUOTA_RESOURCES: Final = frozenset(
    (
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "storage",
        "requests.cpu",
        "requests.memory",
        "requests.storage",
        "requests.ephemeral-storage",
        "limits.cpu",
        "limits.memory",
        "limits.ephemeral-storage",
        "services.loadbalancers",
        "services.nodeports",
    )
)
_INTEGERS: Final = frozenset(
    (
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    )
)


def is_huge_pages(name: str) -> bool:
    """Return whether it is a huge pages resource, which cannot be overcommitted."""
    return name.startswith("hugepages-")


def is_native(name: str) -> bool:
    """A resource of Kubernetes' own."""
    return "/" not in name or "kubernetes.io/" in name


def is_extended(name: str) -> bool:
    """Return whether it is an extended resource, counted in integers."""
    if is_native(name) or name.startswith("requests."):
        return False
    return not validate_qualified_name(f"requests.{name}")


def is_integer(name: str) -> bool:
    """Whether there are only whole pieces of it."""
    return name in _INTEGERS or is_extended(name)


def resource_name(name: str, path: str, errors: ErrorList) -> None:
    """A resource that Kubernetes knows, or one with a prefix."""
    texts = validate_qualified_name(name)
    for text in texts:
        errors.append(invalid_name(path, name, text))
    if texts or "/" in name:
        return
    if name not in _CONTAINER_RESOURCES and name not in _QUOTA_RESOURCES and not is_huge_pages(name):
        errors.append(invalid_name(path, name, "must be a standard resource type or fully qualified"))


def container_resource_name(name: str, path: str, errors: ErrorList) -> None:
    """A resource that a container can ask for."""
    resource_name(name, path, errors)
    if "/" not in name:
        if name not in _CONTAINER_RESOURCES and not is_huge_pages(name):
            errors.append(invalid_name(path, name, "must be a standard resource for containers"))
    elif not is_native(name) and not is_extended(name):
        errors.append(invalid_name(path, name, "doesn't follow extended resource name standard"))


def pod_resource_name(name: str, path: str, errors: ErrorList) -> None:
    """A resource that a whole pod can ask for."""
    before = len(errors)
    resource_name(name, path, errors)
    if len(errors) == before and name not in ("cpu", "memory") and not is_huge_pages(name):
        errors.append(unsupported(path, name, _POD_RESOURCES))


def resource_value(name: str, value: object, path: str, errors: ErrorList) -> None:
    """An amount of a resource."""
    quantity_not_negative(value, path, errors)
    if is_integer(name) and quantity(value).scaled(-3) % 1000:
        errors.append(invalid(path, str(value), "must be an integer"))


def validate_requirements(
    resources: JSONObject,
    path: str,
    errors: ErrorList,
    *,
    claims: Collection[str] = (),
    known: Callable[[str, str, ErrorList], None] = container_resource_name,
) -> None:
    """
    The requests and limits of one container, or of a pod.

    @param claims: The names of the claims of devices that the pod has.
    @param known: Says what is wrong with the name of a resource.
    """
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    has_huge = has_other = False
    for name in sorted(limits):
        here = f"{path}.limits[{name}]"
        known(name, here, errors)
        resource_value(name, limits[name], here, errors)
        has_huge = has_huge or is_huge_pages(name)
        has_other = has_other or name in ("cpu", "memory")
        if is_huge_pages(name):
            _whole_pages(name, limits[name], here, errors)
    for name in sorted(requests):
        here = f"{path}.requests[{name}]"
        known(name, here, errors)
        resource_value(name, requests[name], here, errors)
        firm = not is_native(name) or is_huge_pages(name)
        if name in limits:
            asked, allowed = quantity(requests[name]), quantity(limits[name])
            if firm and asked != allowed:
                text = f"must be equal to {name} limit of {limits[name]}"
                errors.append(invalid(f"{path}.requests", str(requests[name]), text))
            elif not firm and asked > allowed:
                text = f"must be less than or equal to {name} limit of {limits[name]}"
                errors.append(invalid(f"{path}.requests", str(requests[name]), text))
        elif firm:
            errors.append(required(f"{path}.limits", "Limit must be set for non overcommitable resources"))
        has_huge = has_huge or is_huge_pages(name)
        has_other = has_other or name in ("cpu", "memory")
        if is_huge_pages(name):
            _whole_pages(name, requests[name], here, errors)
    if has_huge and not has_other:
        errors.append(forbidden(path, "HugePages require cpu or memory"))
    if resources.get("claims"):
        _claims(resources["claims"], claims, f"{path}.claims", errors)


def _whole_pages(name: str, value: object, path: str, errors: ErrorList) -> None:
    if not _divisible(name.removeprefix("hugepages-"), value):
        errors.append(invalid(path, str(value), f"{value} is not positive integer multiple of {name}"))


def _divisible(size: str, value: object) -> bool:
    """Whether an amount is made of whole pages of a size, which may not be one."""
    try:
        page = quantity(size).scaled(-3)
    except ValueError:
        return False
    return page > 0 and page % 1000 == 0 and quantity(value).scaled() % (page // 1000) == 0


def _claims(claims: list[JSONObject], known: Collection[str], path: str, errors: ErrorList) -> None:
    """Which claims of devices of its pod a container uses: all that one has, or single requests of it."""
    seen: set[str] = set()
    parts: dict[str, int] = {}
    for index, claim in enumerate(claims):
        here, name, request = f"{path}[{index}]", claim.get("name") or "", claim.get("request") or ""
        if not name:
            errors.append(required(here))
            continue
        if name in seen:
            errors.append(duplicate(here, name))
        else:
            key = f"{name}/{request}" if request else name
            if request:
                check(request, f"{here}.request", dns_label, errors)
            if key in seen:
                errors.append(duplicate(here, key))
            elif not request:
                errors.extend([duplicate(here, name)] * parts.get(name, 0))
            else:
                parts[name] = parts.get(name, 0) + 1
            seen.add(key)
        if name not in known:
            text = "must be one of the names in pod.spec.resourceClaims"
            text += f": {', '.join(sorted(known))}" if known else " which is empty"
            errors.append(FieldError("FieldValueNotFound", f"Not found: {quote(name)}: {text}", here))
