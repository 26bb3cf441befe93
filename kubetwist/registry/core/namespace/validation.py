"""Validation of Namespaces; see kubernetes, C{pkg/apis/core/validation}."""

from __future__ import annotations

from typing import Final

from ....api.errors import Cause, invalid
from ....api.names import qualified_name_problems
from ....api.resource import JSONObject
from ...generic.validation.fields import Causes, check

_STANDARD_FINALIZERS: Final = ("kubernetes", "orphan", "foregroundDeletion")


def validate_namespace(obj: JSONObject) -> list[Cause]:
    """Finalizers with proper names; the reference does not tell here which one is wrong."""
    causes: Causes = []
    for name in (obj.get("spec") or {}).get("finalizers") or ():
        _finalizer(name, "spec.finalizers", causes)
    return causes


def validate_namespace_finalize(obj: JSONObject) -> list[Cause]:
    """Finalizers with proper names."""
    causes: Causes = []
    for index, name in enumerate((obj.get("spec") or {}).get("finalizers") or ()):
        _finalizer(name, f"spec.finalizers[{index}]", causes)
    return causes


def _finalizer(name: str, path: str, causes: Causes) -> None:
    check(name, path, qualified_name_problems, causes)
    if "/" not in name and name not in _STANDARD_FINALIZERS:
        causes.append(invalid(path, name, "name is neither a standard finalizer name nor is it fully qualified"))


def validate_namespace_status(obj: JSONObject) -> list[Cause]:
    """A namespace is terminating when it is being deleted, and only then."""
    causes: Causes = []
    phase = (obj.get("status") or {}).get("phase") or ""
    deleted = obj["metadata"].get("deletionTimestamp") is not None
    if not deleted and phase != "Active":
        text = "may only be 'Active' if `deletionTimestamp` is empty"
        causes.append(invalid("status.Phase", phase, text))
    elif deleted and phase != "Terminating":
        text = "may only be 'Terminating' if `deletionTimestamp` is not empty"
        causes.append(invalid("status.Phase", phase, text))
    return causes
