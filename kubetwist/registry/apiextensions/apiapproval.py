"""
API groups of the Kubernetes community, in which CRDs need an approval annotation.

See kubernetes/apiextensions-apiserver, C{pkg/apihelpers/helpers.go}.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from ...api.errors import FieldError, invalid, required
from ...api.go.quote import quoted
from ...api.resource import JSONObject

ANNOTATION: Final = "api-approved.kubernetes.io"
_SEE: Final = "see https://github.com/kubernetes/enhancements/pull/1111"
_NEEDED: Final = f'protected groups must have approval annotation "{ANNOTATION}"'


def is_protected(group: str) -> bool:
    """Return whether a group is a protected group of the community."""
    return group in ("k8s.io", "kubernetes.io") or group.endswith((".k8s.io", ".kubernetes.io"))


def _state(crd: JSONObject) -> str:
    annotation = (crd["metadata"].get("annotations") or {}).get(ANNOTATION) or ""
    if not annotation:
        return "missing"
    if annotation.startswith("unapproved"):
        return "bypassed"
    try:
        url = urlsplit(annotation)
    except ValueError:
        return "invalid"
    return "approved" if url.scheme and url.netloc else "invalid"


def api_approval_condition(crd: JSONObject) -> tuple[str, str, str] | None:
    """Return status, reason and message of the condition; L{None} if no approval is needed."""
    if not is_protected(crd["spec"]["group"]):
        return None
    annotation = (crd["metadata"].get("annotations") or {}).get(ANNOTATION) or ""
    state = _state(crd)
    if state == "missing":
        return "False", "MissingAnnotation", f"{_NEEDED}, {_SEE}"
    if state == "invalid":
        return "False", "InvalidAnnotation", _invalid_text()
    if state == "bypassed":
        return "False", "UnapprovedAnnotation", f"not approved: {quoted(annotation)}"
    return "True", "ApprovedAnnotation", f"approved in {annotation}"


def _invalid_text() -> str:
    return f'{_NEEDED} with either a URL or a reason starting with "unapproved", {_SEE}'


def validate_api_approval(crd: JSONObject, old: JSONObject | None) -> list[FieldError]:
    """Return the errors of the API approval annotation; an update may keep those that the old object has."""
    if not is_protected((crd.get("spec") or {}).get("group") or ""):
        return []
    state = _state(crd)
    if old is not None and _state(old) == state:
        return []
    field = f"metadata.annotations[{ANNOTATION}]"
    if state == "missing":
        return [required(field, f"{_NEEDED}, {_SEE}")]
    if state == "invalid":
        annotation = crd["metadata"]["annotations"][ANNOTATION]
        return [invalid(field, annotation, _invalid_text())]
    return []
