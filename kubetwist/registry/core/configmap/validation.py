"""Validation of ConfigMaps; see kubernetes, C{pkg/apis/core/validation/validation.go}."""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from ....api.errors import FieldError, forbidden, invalid, too_long
from ....api.names import are_config_map_keys, byte_length, validate_config_map_key
from ....api.objectmeta import UpdateErrors
from ....api.resource import JSONObject
from ...generic.validation.fields import ErrorList, check

MAX_DATA: Final = 1048576


_FROZEN: Final = "field is immutable when `immutable` is set"


def decoded_size(text: str | None) -> int:
    """Return the size in bytes of a value in base64."""
    return 0 if not text else len(text) // 4 * 3 - (2 if text.endswith("==") else text.endswith("="))


def validate_config_map(obj: JSONObject) -> list[FieldError]:
    """Return the validation errors of a ConfigMap: invalid or duplicate keys, and the total size."""
    errors: ErrorList = []
    data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
    check_keys(data, "data", errors, binary)
    check_keys(binary, "binaryData", errors)
    size = sum(map(decoded_size, binary.values()))
    # Most objects are small: a character has at most four bytes.
    if size + 4 * sum(map(len, data.values())) > MAX_DATA:
        size += sum(map(byte_length, data.values()))
    if size > MAX_DATA:
        # The empty field path, as the reference formats it.
        errors.append(too_long("[]", MAX_DATA))
    return errors


def check_keys(data: JSONObject, name: str, errors: ErrorList, reserved: Container[str] = ()) -> None:
    """
    Check the keys of data.

    @param data: The data.
    @param name: The name of the field for errors.
    @param errors: Receives the errors.
    @param reserved: The keys of binary data, which must be different.
    """
    if not reserved and are_config_map_keys(data):
        return
    for key in sorted(data):
        check(key, f"{name}[{key}]", validate_config_map_key, errors)
        if key in reserved:
            errors.append(invalid(f"{name}[{key}]", key, "duplicate of key present in binaryData"))


def check_frozen(
    obj: JSONObject, old: JSONObject, names: tuple[str, ...], errors: ErrorList, semantic: str = ""
) -> None:
    """
    Check that the data of an immutable object are unchanged.

    @param obj: The new object.
    @param old: The stored object.
    @param names: The names of the fields with data.
    @param errors: Receives the errors.
    @param semantic: The name of the field in which an empty map equals a missing one; C{""} for none.
    """
    if not old.get("immutable"):
        return
    if not obj.get("immutable"):
        errors.append(forbidden("immutable", _FROZEN))
    for name in names:
        new, stored = obj.get(name), old.get(name)
        # The reference does not distinguish an empty from an absent map in a ConfigMap's data.
        if name == semantic:
            new, stored = new or None, stored or None
        if new != stored:
            errors.append(forbidden(name, _FROZEN))


def validate_config_map_update(obj: JSONObject, old: JSONObject) -> list[FieldError]:
    """Return the validation errors of an update: immutable data must be unchanged."""
    errors: ErrorList = []
    check_frozen(obj, old, ("data", "binaryData"), errors, semantic="data")
    return UpdateErrors(errors, validate_config_map(obj))
