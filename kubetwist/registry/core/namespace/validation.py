"""Validation of Namespaces; see kubernetes, C{pkg/apis/core/validation}."""

from __future__ import annotations

from typing import Final

from ....api.errors import FieldError, invalid
from ....api.names import validate_qualified_name
from ....api.resource import JSONObject
from ...generic.validation.fields import ErrorList, check

_STANDARD_FINALIZERS: Final = ("kubernetes", "orphan", "foregroundDeletion")


def validate_namespace(obj: JSONObject) -> list[FieldError]:
    """Return the validation errors of the finalizers; as in the reference, paths have no index."""
    errors: ErrorList = []
    for name in (obj.get("spec") or {}).get("finalizers") or ():
        _finalizer(name, "spec.finalizers", errors)
    return errors


def validate_namespace_finalize(obj: JSONObject) -> list[FieldError]:
    """Return the validation errors of the finalizers."""
    errors: ErrorList = []
    for index, name in enumerate((obj.get("spec") or {}).get("finalizers") or ()):
        _finalizer(name, f"spec.finalizers[{index}]", errors)
    return errors


def _finalizer(name: str, path: str, errors: ErrorList) -> None:
    check(name, path, validate_qualified_name, errors)
    if "/" not in name and name not in _STANDARD_FINALIZERS:
        errors.append(invalid(path, name, "name is neither a standard finalizer name nor is it fully qualified"))


def validate_namespace_status(obj: JSONObject) -> list[FieldError]:
    """Return the validation errors of the status: the phase is Terminating if the namespace is being deleted."""
    errors: ErrorList = []
    phase = (obj.get("status") or {}).get("phase") or ""
    deleted = obj["metadata"].get("deletionTimestamp") is not None
    if not deleted and phase != "Active":
        text = "may only be 'Active' if `deletionTimestamp` is empty"
        errors.append(invalid("status.Phase", phase, text))
    elif deleted and phase != "Terminating":
        text = "may only be 'Terminating' if `deletionTimestamp` is not empty"
        errors.append(invalid("status.Phase", phase, text))
    return errors
