"""Validation of conditions in the status; see apimachinery, C{pkg/apis/meta/v1/validation/validation.go}."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from ....api.errors import duplicate, invalid, required, too_long
from ....api.names import byte_length, regex_error, validate_qualified_name
from ....api.resource import JSONObject
from .fields import ErrorList, check, unsupported

_REASON: Final = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_IS_REASON: Final = re.compile(_REASON).fullmatch
_NOT_A_REASON: Final = regex_error(
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
    "characters or '_,:', and must end with an alphanumeric character or '_'",
    _REASON,
    "my_name",
    "MY_NAME",
    "MyName",
    "ReasonA,ReasonB",
    "ReasonA:ReasonB",
)


def conditions(found: Sequence[JSONObject], path: str, errors: ErrorList) -> None:
    """Validate conditions of the type C{metav1.Condition}, whose types must be unique."""
    types: set[str] = set()
    for index, condition in enumerate(found):
        item_path, kind, status = f"{path}[{index}]", condition.get("type") or "", condition.get("status") or ""
        if kind in types:
            errors.append(duplicate(f"{item_path}.type", kind))
        types.add(kind)
        check(kind, f"{item_path}.type", validate_qualified_name, errors)
        if status not in ("False", "True", "Unknown"):
            errors.append(unsupported(f"{item_path}.status", status, ("False", "True", "Unknown")))
        if (condition.get("observedGeneration") or 0) < 0:
            text = "must be greater than or equal to zero"
            errors.append(invalid(f"{item_path}.observedGeneration", condition["observedGeneration"], text))
        if condition.get("lastTransitionTime") is None:
            errors.append(required(f"{item_path}.lastTransitionTime"))
        _reason(condition.get("reason") or "", f"{item_path}.reason", errors)
        if byte_length(condition.get("message") or "") > 32 * 1024:
            errors.append(too_long(f"{item_path}.message", 32 * 1024))


def _reason(reason: str, path: str, errors: ErrorList) -> None:
    if not reason:
        errors.append(required(path))
        return
    if not _IS_REASON(reason):
        errors.append(invalid(path, reason, _NOT_A_REASON))
    if byte_length(reason) > 1024:
        errors.append(too_long(path, 1024))
