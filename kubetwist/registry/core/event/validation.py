"""
Validation of Events; see kubernetes, C{pkg/apis/core/validation/events.go}.

Events of the core group have few rules, for compatibility; those of C{events.k8s.io} have more.
"""

from __future__ import annotations

from typing import Final

from ....api.errors import FieldError, invalid, required
from ....api.names import validate_qualified_name
from ....api.resource import JSONObject
from ...generic.validation.fields import ErrorList, check, dns_subdomain, invalid_shown

#: The namespaces of events about cluster-scoped objects; C{kube-system} only for events with C{eventTime}.
_DEFAULT: Final = "default"
_SYSTEM: Final = "kube-system"
_ELSEWHERE: Final = "does not match event.namespace"


def validate_event(obj: JSONObject, controller: str = "reportingComponent") -> list[FieldError]:
    """
    Return the validation errors of an event.

    @param controller: The name of the field for the reporting controller in errors.
    """
    errors: ErrorList = []
    namespace = obj["metadata"].get("namespace") or ""
    about = (obj.get("involvedObject") or {}).get("namespace") or ""
    if obj.get("eventTime") is None:
        if namespace != about if about else namespace not in ("", _DEFAULT):
            errors.append(invalid("involvedObject.namespace", about, _ELSEWHERE))
    else:
        if not about and namespace not in (_DEFAULT, _SYSTEM):
            errors.append(invalid("involvedObject.namespace", about, _ELSEWHERE))
        _reported(obj, controller, errors)
    check(namespace, "namespace", dns_subdomain, errors)
    return errors


def _reported(obj: JSONObject, controller: str, errors: ErrorList) -> None:
    """Validate the reporting controller, action and reason."""
    component = obj.get("reportingComponent") or ""
    if not component:
        errors.append(required(controller))
    check(component, controller, validate_qualified_name, errors)
    for name in ("reportingInstance", "action", "reason"):
        text = obj.get(name) or ""
        if not text:
            errors.append(required(name))
        _longest(text, 128, name, errors)
    _longest(obj.get("message") or "", 1024, "message", errors)


def _longest(text: str, limit: int, path: str, errors: ErrorList) -> None:
    if len(text.encode()) > limit:
        errors.append(invalid_without_value(path, f"can have at most {limit} characters"))


def invalid_without_value(path: str, text: str) -> FieldError:
    """Return the error for an invalid field, with an empty value in the message."""
    return invalid_shown(path, '""', text)
