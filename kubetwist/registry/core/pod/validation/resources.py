"""Validation of the requests and limits of containers and pods."""

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
    """Return whether a resource is a huge pages resource, which cannot be overcommitted."""
    return name.startswith("hugepages-")


def is_native(name: str) -> bool:
    """Return whether a resource is in the domain of Kubernetes."""
    return "/" not in name or "kubernetes.io/" in name


def is_extended(name: str) -> bool:
    """Return whether a resource is an extended resource, which is counted in integers."""
    if is_native(name) or name.startswith("requests."):
        return False
    return not validate_qualified_name(f"requests.{name}")


def is_integer(name: str) -> bool:
    """Return whether quantities of a resource must be integers."""
    return name in _INTEGERS or is_extended(name)


def resource_name(name: str, path: str, errors: ErrorList) -> None:
    """Validate the name of a resource: a standard one, or a qualified name."""
    texts = validate_qualified_name(name)
    for text in texts:
        errors.append(invalid_name(path, name, text, "core.ResourceName"))
    if texts or "/" in name:
        return
    if name not in _CONTAINER_RESOURCES and name not in _QUOTA_RESOURCES and not is_huge_pages(name):
        errors.append(
            invalid_name(path, name, "must be a standard resource type or fully qualified", "core.ResourceName")
        )


def container_resource_name(name: str, path: str, errors: ErrorList) -> None:
    """Validate the name of a resource in the requests or limits of a container."""
    resource_name(name, path, errors)
    if "/" not in name:
        if name not in _CONTAINER_RESOURCES and not is_huge_pages(name):
            errors.append(invalid_name(path, name, "must be a standard resource for containers", "core.ResourceName"))
    elif not is_native(name) and not is_extended(name):
        errors.append(invalid_name(path, name, "doesn't follow extended resource name standard", "core.ResourceName"))


def pod_resource_name(name: str, path: str, errors: ErrorList) -> None:
    """Validate the name of a resource in the requests or limits of a pod."""
    before = len(errors)
    resource_name(name, path, errors)
    if len(errors) == before and name not in ("cpu", "memory") and not is_huge_pages(name):
        errors.append(unsupported(path, name, _POD_RESOURCES))


def resource_value(name: str, value: object, path: str, errors: ErrorList) -> None:
    """
    Validate the quantity of a resource.

    @param name: The name of the resource.
    @param value: The quantity.
    @param path: The field path for errors.
    @param errors: Receives the errors.
    """
    quantity_not_negative(value, path, errors)
    if is_integer(name) and quantity(value).scaled_value(-3) % 1000:
        errors.append(invalid(path, str(value), "must be an integer", "resource.Quantity"))


def validate_requirements(
    resources: JSONObject,
    path: str,
    errors: ErrorList,
    *,
    claims: Collection[str] = (),
    known: Callable[[str, str, ErrorList], None] = container_resource_name,
) -> None:
    """
    Validate the requests and limits of a container or a pod.

    @param resources: The requests and limits.
    @param path: The field path for errors.
    @param errors: Receives the errors.
    @param claims: The names of the resource claims of the pod.
    @param known: Validates the name of a resource.
    """
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    has_huge = has_other = False
    for name in sorted(limits):
        item_path = f"{path}.limits[{name}]"
        known(name, item_path, errors)
        resource_value(name, limits[name], item_path, errors)
        has_huge = has_huge or is_huge_pages(name)
        has_other = has_other or name in ("cpu", "memory")
        if is_huge_pages(name):
            _whole_pages(name, limits[name], item_path, errors)
    for name in sorted(requests):
        item_path = f"{path}.requests[{name}]"
        known(name, item_path, errors)
        resource_value(name, requests[name], item_path, errors)
        firm = not is_native(name) or is_huge_pages(name)
        if name in limits:
            requested, allowed = quantity(requests[name]), quantity(limits[name])
            if firm and requested != allowed:
                text = f"must be equal to {name} limit of {limits[name]}"
                errors.append(invalid(f"{path}.requests", str(requests[name]), text))
            elif not firm and requested > allowed:
                text = f"must be less than or equal to {name} limit of {limits[name]}"
                errors.append(invalid(f"{path}.requests", str(requests[name]), text))
        elif firm:
            errors.append(required(f"{path}.limits", "Limit must be set for non overcommitable resources"))
        has_huge = has_huge or is_huge_pages(name)
        has_other = has_other or name in ("cpu", "memory")
        if is_huge_pages(name):
            _whole_pages(name, requests[name], item_path, errors)
    if has_huge and not has_other:
        errors.append(forbidden(path, "HugePages require cpu or memory"))
    if resources.get("claims"):
        _claims(resources["claims"], claims, f"{path}.claims", errors)


def _whole_pages(name: str, value: object, path: str, errors: ErrorList) -> None:
    if not _divisible(name.removeprefix("hugepages-"), value):
        errors.append(invalid(path, str(value), f"{value} is not positive integer multiple of {name}"))


def _divisible(size: str, value: object) -> bool:
    """Return whether a quantity is a multiple of a page size, which may be malformed."""
    try:
        page = quantity(size).scaled_value(-3)
    except ValueError:
        return False
    return page > 0 and page % 1000 == 0 and quantity(value).scaled_value() % (page // 1000) == 0


def _claims(claims: list[JSONObject], known: Collection[str], path: str, errors: ErrorList) -> None:
    """Validate the resource claims of a container: a whole claim of the pod, or single requests of it."""
    seen: set[str] = set()
    parts: dict[str, int] = {}
    for index, claim in enumerate(claims):
        item_path, name, request = f"{path}[{index}]", claim.get("name") or "", claim.get("request") or ""
        if not name:
            errors.append(required(item_path))
            continue
        if name in seen:
            errors.append(duplicate(item_path, name))
        else:
            key = f"{name}/{request}" if request else name
            if request:
                check(request, f"{item_path}.request", dns_label, errors)
            if key in seen:
                errors.append(duplicate(item_path, key))
            elif not request:
                errors.extend([duplicate(item_path, name)] * parts.get(name, 0))
            else:
                parts[name] = parts.get(name, 0) + 1
            seen.add(key)
        if name not in known:
            text = "must be one of the names in pod.spec.resourceClaims"
            text += f": {', '.join(sorted(known))}" if known else " which is empty"
            errors.append(FieldError("FieldValueNotFound", f"Not found: {quote(name)}: {text}", item_path))
