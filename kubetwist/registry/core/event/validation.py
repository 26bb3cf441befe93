"""
Events; see kubernetes, C{pkg/apis/core/validation/events.go}.

Of those that come by the core group little is asked, as it ever was; of those that come by C{events.k8s.io} more.
"""

from __future__ import annotations

from typing import Final

from ....api.errors import FieldError, invalid, required
from ....api.names import validate_qualified_name
from ....api.resource import JSONObject
from ...generic.validation.fields import ErrorList, check, dns_subdomain, invalid_shown

#: Where events are about what has no namespace; the latter only of those that have an C{eventTime}.
_DEFAULT: Final = "default"
_SYSTEM: Final = "kube-system"
_ELSEWHERE: Final = "does not match event.namespace"


def validate_event(obj: JSONObject, controller: str = "reportingComponent") -> list[FieldError]:
    """
    What every event has to be.

    @param controller: What errors call the field for who reports.
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
    """Who reports what."""
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
        errors.append(nothing_shown(path, f"can have at most {limit} characters"))


def nothing_shown(path: str, text: str) -> FieldError:
    """Return the error of a field whose value is not part of the message."""
    return invalid_shown(path, '""', text)
