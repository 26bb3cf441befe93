"""
Validation of the request policy of a device's capacity.

See kubernetes, C{pkg/apis/resource/validation/validation.go}.
"""

from __future__ import annotations

from typing import Final

from ....api.errors import forbidden, invalid, required
from ....api.jsontypes import JSONValue
from ....api.quantity import Quantity
from ....api.resource import JSONObject
from ...generic.validation.fields import ErrorList, quantity
from .common import validate_set

_MAX_VALUES: Final = 10


def validate_request_policy(policy: JSONObject, capacity: Quantity, path: str, errors: ErrorList) -> None:
    """
    Validate valid values or a valid range, and the default for claims that request no amount.

    @param policy: The C{requestPolicy}.
    @param capacity: The capacity of the device.
    @param path: The path of the policy.
    @param errors: Receives the errors.
    """
    values, span = policy.get("validValues") or [], policy.get("validRange")
    if values and span is not None:
        text = 'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time'
        errors.append(forbidden(path, text))
        return
    if not values and span is None:
        return
    name, default = "validValues" if values else "validRange", policy.get("default")
    if default is None:
        errors.append(required(f"{path}.default", f"required when {name} is defined"))
    elif values:
        _validate_values(values, quantity(default), capacity, f"{path}.{name}", errors)
    else:
        _validate_range(span or {}, quantity(default), capacity, f"{path}.{name}", errors)


def _validate_values(
    values: list[JSONValue], default: Quantity, capacity: Quantity, path: str, errors: ErrorList
) -> None:
    amounts = [quantity(value) for value in values]
    for index in range(1, len(amounts)):
        if amounts[index] < amounts[index - 1]:
            text = "values must be sorted in ascending order"
            errors.append(invalid(f"{path}[{index}]", str(amounts[index]), text))

    def option(one: Quantity, item_path: str, errors: ErrorList) -> None:
        if one > capacity:
            errors.append(invalid(item_path, str(one), f"option is larger than capacity value: {capacity}"))

    validate_set(amounts, option, lambda one: str(one.scaled_value()), path, errors, max_items=_MAX_VALUES)
    # The default is searched while the values are validated, so not in a list that is too long.
    if len(amounts) > _MAX_VALUES or default not in amounts:
        errors.append(invalid(path, str(default), "default value is not valid according to the requestPolicy"))


def _validate_range(span: JSONObject, default: Quantity, capacity: Quantity, path: str, errors: ErrorList) -> None:
    if span.get("min") is None:
        errors.append(required(f"{path}.min", "required when validRange is defined"))
        return
    low = quantity(span["min"])
    high = None if span.get("max") is None else quantity(span["max"])
    if low > capacity:
        errors.append(invalid(f"{path}.min", str(low), f"min is larger than capacity value: {capacity}"))
    if default < low:
        errors.append(invalid(f"{path}.min", str(default), f"default is less than min: {low}"))
    if high is not None:
        item_path = f"{path}.max"
        if low > high:
            errors.append(invalid(item_path, str(low), f"min is larger than max: {high}"))
        if high > capacity:
            errors.append(invalid(item_path, str(high), f"max is larger than capacity value: {capacity}"))
        if default > high:
            errors.append(invalid(item_path, str(default), f"default is more than max: {high}"))
    if span.get("step") is not None:
        step = quantity(span["step"])
        if low + step > capacity:
            text = f"one step {low + step} is larger than capacity value: {capacity}"
            errors.append(invalid(f"{path}.step", str(step), text))
        for amount in (default, high):
            # The reference panics for a step of zero.
            if (
                amount is not None
                and step.scaled_value()
                and (amount.scaled_value() - low.scaled_value()) % step.scaled_value()
            ):
                text = f"value is not a multiple of a given step ({step}) from ({low})"
                errors.append(invalid(f"{path}.step", str(amount), text))
