"""Validation of Secrets; see kubernetes, C{pkg/apis/core/validation/validation.go}."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Final

from ....api.decoding import BodyError, decode_json, json_type
from ....api.errors import FieldError, required, too_long
from ....api.objectmeta import UpdateErrors
from ....api.resource import JSONObject
from ...generic.validation.fields import ErrorList, immutable
from ..configmap.validation import MAX_DATA, check_frozen, check_keys, decoded_size

_ACCOUNT_NAME: Final = "kubernetes.io/service-account.name"


def encoded(strings: JSONObject) -> dict[str, str]:
    """Return texts encoded as in C{data}."""
    return {key: b64encode((text or "").encode()).decode() for key, text in strings.items()}


def validate_secret(obj: JSONObject) -> list[FieldError]:
    """Return the validation errors of a Secret: keys, total size, and the requirements of its type."""
    errors: ErrorList = []
    data = obj.get("data") or {}
    check_keys(data, "data", errors)
    if sum(map(decoded_size, data.values())) > MAX_DATA:
        errors.append(too_long("data", MAX_DATA))
    kind = obj.get("type") or ""
    if kind == "kubernetes.io/service-account-token":
        if not (obj["metadata"].get("annotations") or {}).get(_ACCOUNT_NAME):
            errors.append(required(f"metadata.annotations[{_ACCOUNT_NAME}]"))
    elif kind == "kubernetes.io/dockercfg":
        _json(data, ".dockercfg", errors)
    elif kind == "kubernetes.io/dockerconfigjson":
        _json(data, ".dockerconfigjson", errors)
    elif kind == "kubernetes.io/basic-auth":
        if "username" not in data and "password" not in data:
            errors.append(required("data[username]"))
            errors.append(required("data[password]"))
    elif kind == "kubernetes.io/ssh-auth":
        if not data.get("ssh-privatekey"):
            errors.append(required("data[ssh-privatekey]"))
    elif kind == "kubernetes.io/tls":
        for key in ("tls.crt", "tls.key"):
            if key not in data:
                errors.append(required(f"data[{key}]"))
    return errors


def _json(data: JSONObject, key: str, errors: ErrorList) -> None:
    path = f"data[{key}]"
    if key not in data:
        errors.append(required(path))
        return
    text = ""
    try:
        value = decode_json(b64decode(data[key] or "")).value
        if value is not None and not isinstance(value, dict):
            text = f"json: cannot unmarshal {json_type(value)} into Go value of type map[string]interface {{}}"
    except BodyError as error:
        text = str(error)
    if text:
        errors.append(FieldError("FieldValueInvalid", f'Invalid value: "<secret contents redacted>": {text}', path))


def validate_secret_update(obj: JSONObject, old: JSONObject) -> list[FieldError]:
    """Return the validation errors of an update: the type and immutable data must be unchanged."""
    errors: ErrorList = []
    immutable(obj.get("type"), old.get("type"), "type", errors)
    check_frozen(obj, old, ("data",), errors)
    return UpdateErrors(errors, validate_secret(obj))
