"""
Validation shared by DeviceClasses, ResourceClaims and ResourceSlices.

See kubernetes, C{pkg/apis/resource/validation/validation.go}.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from ....api.errors import duplicate, forbidden, go_json, internal, invalid, required, too_long, too_many
from ....api.jsontypes import JSONValue
from ....api.names import byte_length, validate_qualified_name
from ....api.resource import JSONObject
from ....cel.devices import SelectorCostError, SelectorError, SelectorProgramError, check_selector
from ...generic.validation.fields import ErrorList, check, dns_subdomain

MAX_ITEMS: Final = 32
#: Maximum length of a domain, a slash and an identifier.
MAX_NAME_LENGTH: Final = 63 + 1 + 32
_IDENTIFIER: Final = re.compile("[A-Za-z_][A-Za-z0-9_]*").fullmatch
_NOT_AN_IDENTIFIER: Final = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters "
    "or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')"
)
_Check = Callable[[Any, str, ErrorList], None]


def validate_driver_name(name: str, path: str, errors: ErrorList) -> None:
    """Validate the name of a driver: a domain."""
    if not name:
        errors.append(required(path))
        return
    if byte_length(name) > 63:
        errors.append(too_long(path, 63))
    for text in dns_subdomain(name.lower()):
        errors.append(invalid(path, name, text))


def validate_property_name(name: str, path: str, errors: ErrorList) -> None:
    """Validate the name of an attribute or a capacity, with or without a domain."""
    domain, slash, rest = name.rpartition("/")
    if "/" in domain:
        # The reference accepts any name with more than one slash.
        return
    if slash and not domain:
        errors.append(invalid(path, "", "the domain must not be empty"))
    elif slash:
        validate_driver_name(domain, path, errors)
    if slash and not rest:
        errors.append(invalid(path, "", "the name must not be empty"))
        return
    if byte_length(rest) > 32:
        errors.append(too_long(path, 32))
    if not _IDENTIFIER(rest):
        errors.append(invalid(path, rest, _NOT_AN_IDENTIFIER))


def validate_fully_qualified_property_name(name: str, path: str, errors: ErrorList) -> None:
    """Validate the name of an attribute or a capacity with its domain."""
    validate_property_name(name, path, errors)
    if "/" not in name:
        text = "a fully qualified name must be a domain and a name separated by a slash"
        errors.append(invalid(path, name, text))


def validate_list(
    items: Sequence[JSONValue] | None, one: _Check, path: str, errors: ErrorList, max_items: int = MAX_ITEMS
) -> None:
    """
    Validate every item of a list, unless it is too long (Go: C{validateSlice}).

    @param items: The items.
    @param one: Validates an item.
    @param path: The path of the list.
    @param errors: Receives the errors.
    @param max_items: Maximum number of items.
    """
    if items and len(items) > max_items:
        errors.append(too_many(path, len(items), max_items))
        return
    for index, item in enumerate(items or ()):
        one(item, f"{path}[{index}]", errors)


def validate_set(
    items: Sequence[JSONValue],
    one: _Check,
    key: Callable[[JSONValue], JSONValue],
    path: str,
    errors: ErrorList,
    *,
    max_items: int = MAX_ITEMS,
) -> None:
    """
    Validate every item of a list with unique keys, unless it is too long (Go: C{validateSet}).

    @param items: The items.
    @param one: Validates an item.
    @param key: Returns the key of an item.
    @param path: The path of the list.
    @param errors: Receives the errors.
    @param max_items: Maximum number of items.
    """
    validate_list(items, one, path, errors, max_items)
    if len(items) > max_items:
        return
    seen: set[Any] = set()
    for index, item in enumerate(items):
        if key(item) in seen:
            errors.append(duplicate(f"{path}[{index}]", key(item)))
        seen.add(key(item))


def validate_pool_name(name: str, path: str, errors: ErrorList) -> None:
    """Validate the name of a pool: domains separated by slashes."""
    if not name:
        errors.append(required(path))
        return
    if byte_length(name) > 253:
        errors.append(too_long(path, 253))
    for part in name.split("/"):
        for text in dns_subdomain(part):
            errors.append(invalid(path, part, text))


def validate_binding_conditions(one: JSONObject, path: str, errors: ErrorList) -> None:
    """Validate the binding conditions and binding failure conditions of a device."""
    binding_conditions, failure_conditions = (
        one.get("bindingConditions") or [],
        one.get("bindingFailureConditions") or [],
    )

    def name(value: str, item_path: str, errors: ErrorList) -> None:
        check(value, item_path, validate_qualified_name, errors)

    validate_list(binding_conditions, name, f"{path}.bindingConditions", errors, max_items=4)
    validate_list(failure_conditions, name, f"{path}.bindingFailureConditions", errors, max_items=4)
    conditions: set[str] = set()
    for index, value in enumerate(binding_conditions):
        if value in conditions:
            errors.append(duplicate(f"{path}.bindingConditions[{index}]", value))
        conditions.add(value)
    seen: set[str] = set()
    for index, value in enumerate(failure_conditions):
        item_path = f"{path}.bindingFailureConditions[{index}]"
        if value in seen:
            errors.append(duplicate(item_path, value))
        seen.add(value)
        if value in conditions:
            errors.append(invalid(item_path, value, "bindingFailureConditions must not overlap with bindingConditions"))
    if failure_conditions and not binding_conditions:
        text = "bindingConditions are required to use bindingFailureConditions"
        errors.append(invalid(f"{path}.bindingConditions", one.get("bindingConditions"), text))
    if binding_conditions and not failure_conditions:
        text = "bindingFailureConditions are required to use bindingConditions"
        errors.append(invalid(f"{path}.bindingFailureConditions", one.get("bindingFailureConditions"), text))


_MAX_RAW_LENGTH: Final = 10 * 1024


def validate_selector(selector: JSONObject, path: str, errors: ErrorList) -> None:
    """Validate a device selector."""
    cel = selector.get("cel")
    if cel is None:
        errors.append(required(f"{path}.cel"))
    elif byte_length(cel.get("expression") or "") > 10 * 1024:
        errors.append(too_long(f"{path}.cel.expression", 10 * 1024))
    else:
        _validate_expression(cel.get("expression") or "", f"{path}.cel.expression", errors)


def _validate_expression(text: str, path: str, errors: ErrorList) -> None:
    try:
        check_selector(text)
    except SelectorCostError as error:
        errors.append(forbidden(path, str(error)))
    except SelectorProgramError as error:
        errors.append(internal(path, str(error)))
    except SelectorError as error:
        errors.append(invalid(path, text, str(error)))


def validate_configuration(config: JSONObject, path: str, errors: ErrorList, stored: bool = False) -> None:
    """
    Validate the configuration of devices for one driver.

    @param config: The configuration.
    @param path: Its path.
    @param errors: Receives the errors.
    @param stored: Whether it is in the stored object already; such values may exceed the size limit.
    """
    opaque = config.get("opaque")
    if opaque is None:
        errors.append(required(f"{path}.opaque"))
        return
    validate_driver_name(opaque.get("driver") or "", f"{path}.opaque.driver", errors)
    validate_raw_object(opaque.get("parameters"), f"{path}.opaque.parameters", errors, stored)


def validate_raw_object(raw: JSONValue, path: str, errors: ErrorList, stored: bool = False) -> None:
    """
    Validate an opaque object and its size.

    @param raw: The object.
    @param path: Its path.
    @param errors: Receives the errors.
    @param stored: Whether it is in the stored object already; such values may exceed the size limit.
    """
    if raw is None:
        errors.append(required(path))
    elif not stored and byte_length(go_json(raw, raw=True)) > _MAX_RAW_LENGTH:
        errors.append(too_long(path, _MAX_RAW_LENGTH))
    elif not isinstance(raw, dict):
        errors.append(invalid(path, "<value omitted>", "must be a valid JSON object"))
