"""
Events; see kubernetes, C{pkg/apis/core/validation/events.go}.

Of those that come by the core group little is asked, as it ever was; of those that come by C{events.k8s.io} more.
"""

from __future__ import annotations

from typing import Any, Final

from ....api.errors import Cause, invalid, required
from ....api.go.structs import go_struct
from ....api.names import qualified_name_problems
from ....api.resource import JSONObject
from ...generic.validation.fields import Causes, check, dns_subdomain, go_json, immutable, invalid_shown

#: Where events are about what has no namespace; the latter only of those that have an C{eventTime}.
_DEFAULT: Final = "default"
_SYSTEM: Final = "kube-system"
_ELSEWHERE: Final = "does not match event.namespace"

#: What no update by C{events.k8s.io} changes, in the order of the reference, with what is shown of a missing value;
#: of structs that is their type.
_IMMUTABLE: Final = (
    ("involvedObject", "ObjectReference"),
    ("reason", ""),
    ("message", ""),
    ("source", "EventSource"),
    ("firstTimestamp", None),
    ("lastTimestamp", None),
    ("count", 0),
    ("reason", ""),
    ("type", ""),
    ("eventTime", None),
    ("action", ""),
    ("related", "*ObjectReference"),
    ("reportingComponent", ""),
    ("reportingInstance", ""),
)


def validate_event(obj: JSONObject, controller: str = "reportingComponent") -> list[Cause]:
    """
    What every event has to be.

    @param controller: What errors call the field for who reports.
    """
    causes: Causes = []
    namespace = obj["metadata"].get("namespace") or ""
    about = (obj.get("involvedObject") or {}).get("namespace") or ""
    if obj.get("eventTime") is None:
        if namespace != about if about else namespace not in ("", _DEFAULT):
            causes.append(invalid("involvedObject.namespace", about, _ELSEWHERE))
    else:
        if not about and namespace not in (_DEFAULT, _SYSTEM):
            causes.append(invalid("involvedObject.namespace", about, _ELSEWHERE))
        _reported(obj, controller, causes)
    check(namespace, "namespace", dns_subdomain, causes)
    return causes


def _reported(obj: JSONObject, controller: str, causes: Causes) -> None:
    """Who reports what."""
    component = obj.get("reportingComponent") or ""
    if not component:
        causes.append(required(controller))
    check(component, controller, qualified_name_problems, causes)
    for name in ("reportingInstance", "action", "reason"):
        text = obj.get(name) or ""
        if not text:
            causes.append(required(name))
        _longest(text, 128, name, causes)
    _longest(obj.get("message") or "", 1024, "message", causes)


def _longest(text: str, limit: int, path: str, causes: Causes) -> None:
    if len(text.encode()) > limit:
        causes.append(_nothing_shown(path, f"can have at most {limit} characters"))


def _nothing_shown(path: str, text: str) -> Cause:
    return invalid_shown(path, '""', text)


def validate_new_event(obj: JSONObject) -> list[Cause]:
    """An event that comes by C{events.k8s.io}."""
    causes = validate_event(obj, "reportingController")
    _series(obj, causes)
    if obj.get("eventTime") is None:
        causes.append(required("eventTime"))
    kind = obj.get("type") or ""
    if kind not in ("Normal", "Warning"):
        causes.append(_nothing_shown("type", f"has invalid value: {kind}"))
    for name in ("firstTimestamp", "lastTimestamp", "count"):
        if obj.get(name):
            causes.append(_nothing_shown(name, "needs to be unset"))
    source = obj.get("source") or {}
    if source.get("component") or source.get("host"):
        causes.append(_nothing_shown("source", "needs to be unset"))
    return causes


def _series(obj: JSONObject, causes: Causes) -> None:
    series = obj.get("series")
    if series is None:
        return
    if (series.get("count") or 0) < 2:
        causes.append(_nothing_shown("series.count", "should be at least 2"))
    if series.get("lastObservedTime") is None:
        causes.append(required("series.lastObservedTime"))


def validate_new_event_update(obj: JSONObject, old: JSONObject) -> list[Cause]:
    """An update by C{events.k8s.io}, which is about the series."""
    causes = validate_event(obj, "reportingController")
    if obj.get("series") != old.get("series"):
        _series(obj, causes)
    for name, missing in _IMMUTABLE:
        path = "reportingController" if name == "reportingComponent" else name
        new, was = _found(obj, name, missing), _found(old, name, missing)
        if name in ("involvedObject", "source", "related"):
            immutable(new, was, path, causes, go_json(new))
        else:
            immutable(new, was, path, causes)
    return causes


def _found(obj: JSONObject, name: str, missing: Any) -> Any:
    """A field as Go has it."""
    value = obj.get(name)
    if name not in ("involvedObject", "source", "related"):
        return missing if value is None else value
    if value is None and missing.startswith("*"):
        return None
    return go_struct(value or {}, missing.removeprefix("*"))
