"""Validation of LimitRanges; see kubernetes, C{pkg/apis/core/validation/validation.go}."""

from __future__ import annotations

from typing import Final

from ....api.errors import FieldError, duplicate, forbidden, invalid, required
from ....api.names import validate_qualified_name
from ....api.resource import JSONObject
from ...generic.validation.fields import ErrorList, invalid_name, quantity
from ..pod.validation.resources import container_resource_name, is_extended, is_huge_pages, resource_name

#: The Go type of quantities.
_GO: Final = "resource.Quantity"


def validate_limit_range(obj: JSONObject) -> list[FieldError]:
    """Return the validation errors of the limits of each type, which must be consistent."""
    errors: ErrorList = []
    kinds: set[str] = set()
    for index, item in enumerate(obj["spec"].get("limits") or ()):
        path, kind = f"spec.limits[{index}]", item.get("type") or ""
        before = len(errors)
        errors += [invalid_name(f"{path}.type", kind, text) for text in validate_qualified_name(kind)]
        if len(errors) == before and "/" not in kind and kind not in ("Pod", "Container", "PersistentVolumeClaim"):
            text = "must be a standard limit type or fully qualified"
            errors.append(invalid_name(f"{path}.type", kind, text))
        if kind in kinds:
            errors.append(duplicate(f"{path}.type", kind))
        kinds.add(kind)
        _limits(item, kind, path, errors)
    return errors


def _limits(item: JSONObject, kind: str, path: str, errors: ErrorList) -> None:
    parts = {name: item.get(name) or {} for name in ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")}
    check_name = container_resource_name if kind in ("Container", "Pod") else resource_name
    for name, amounts in parts.items():
        if name in ("default", "defaultRequest") and kind == "Pod":
            if amounts:
                errors.append(forbidden(f"{path}.{name}", "may not be specified when `type` is 'Pod'"))
                parts[name] = {}
            continue
        stored = "storage" in parts["min"] or "storage" in parts["max"]
        if name == "maxLimitRequestRatio" and kind == "PersistentVolumeClaim" and not stored:
            text = "either minimum or maximum storage value is required, but neither was provided"
            errors.append(required(f"{path}.limits", text))
        for resource in sorted(amounts):
            check_name(resource, f"{path}.{name}[{resource}]", errors)
    resources = sorted(set().union(*parts.values()))
    for resource in resources:
        _compare(parts, resource, path, errors)


#: Pairs of lower and upper limits, the field of the error, the field of the value in the error, and the message.
_ORDER: Final = (
    ("min", "max", "min", "min", "min value {} is greater than max value {}"),
    *(
        (lower, upper, "defaultRequest", "defaultRequest", text)
        for lower, upper, text in (
            ("min", "defaultRequest", "min value {} is greater than default request value {}"),
            ("defaultRequest", "max", "default request value {} is greater than max value {}"),
            ("defaultRequest", "default", "default request value {} is greater than default limit value {}"),
        )
    ),
    ("min", "default", "default", "min", "min value {} is greater than default value {}"),
    ("default", "max", "default", "max", "default value {} is greater than max value {}"),
)


#: The greatest quantity whose thousandths fit in an int64.
_MAX_MILLI: Final = ((1 << 63) - 1) // 1000


def _compare(parts: JSONObject, resource: str, path: str, errors: ErrorList) -> None:
    for lower, upper, below, value_field, text in _ORDER:
        low, high = parts[lower].get(resource), parts[upper].get(resource)
        if low is not None and high is not None and quantity(low) > quantity(high):
            errors.append(
                invalid(f"{path}.{below}[{resource}]", str(parts[value_field][resource]), text.format(low, high), _GO)
            )
    _ratio(parts, resource, path, errors)
    firm = is_extended(resource) or is_huge_pages(resource)
    limit, request = parts["default"].get(resource), parts["defaultRequest"].get(resource)
    if firm and limit is not None and request is not None and quantity(limit) != quantity(request):
        text = f"default value {limit} must equal to defaultRequest value {request} in {resource}"
        errors.append(invalid(f"{path}.defaultRequest[{resource}]", str(request), text, _GO))


def _ratio(parts: JSONObject, resource: str, path: str, errors: ErrorList) -> None:
    ratio = parts["maxLimitRequestRatio"].get(resource)
    if ratio is None:
        return
    ratio_path = f"{path}.maxLimitRequestRatio[{resource}]"
    if quantity(ratio) < quantity("1"):
        errors.append(invalid(ratio_path, str(ratio), f"ratio {ratio} is less than 1", _GO))
    low, high = parts["min"].get(resource), parts["max"].get(resource)
    if low is None or high is None:
        return
    amounts = [quantity(value) for value in (ratio, high, low)]
    # In thousandths, unless one of them overflows.
    exponent = -3 if all(amount.scaled_value() < _MAX_MILLI for amount in amounts) else 0
    most, highest, lowest = (amount.scaled_value(exponent) for amount in amounts)
    max_ratio = most / 1000 if exponent else float(most)
    if lowest and max_ratio > highest / lowest:
        errors.append(
            invalid(ratio_path, str(ratio), f"ratio {ratio} is greater than max/min = {highest / lowest:f}", _GO)
        )
