"""Validation of Events from events.k8s.io; see kubernetes, C{pkg/apis/core/validation/events.go}."""

from __future__ import annotations

from typing import Final

from ...api.errors import FieldError, required
from ...api.gostructs import go_struct
from ...api.jsontypes import JSONValue
from ...api.resource import JSONObject
from ..core.event.validation import invalid_without_value, validate_event
from ..generic.validation.fields import ErrorList, go_json, immutable

#: Immutable fields in the order of the reference, with the text shown for a missing value; for structs their type.
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


def validate_new_event(obj: JSONObject) -> list[FieldError]:
    """Validate an event from C{events.k8s.io}."""
    errors = validate_event(obj, "reportingController")
    _validate_series(obj, errors)
    if obj.get("eventTime") is None:
        errors.append(required("eventTime"))
    kind = obj.get("type") or ""
    if kind not in ("Normal", "Warning"):
        errors.append(invalid_without_value("type", f"has invalid value: {kind}"))
    for name in ("firstTimestamp", "lastTimestamp", "count"):
        if obj.get(name):
            errors.append(invalid_without_value(name, "needs to be unset"))
    source = obj.get("source") or {}
    if source.get("component") or source.get("host"):
        errors.append(invalid_without_value("source", "needs to be unset"))
    return errors


def _validate_series(obj: JSONObject, errors: ErrorList) -> None:
    series = obj.get("series")
    if series is None:
        return
    if (series.get("count") or 0) < 2:
        errors.append(invalid_without_value("series.count", "should be at least 2"))
    if series.get("lastObservedTime") is None:
        errors.append(required("series.lastObservedTime"))


def validate_new_event_update(obj: JSONObject, old: JSONObject) -> list[FieldError]:
    """Validate an update from C{events.k8s.io}, which may change the series only."""
    errors = validate_event(obj, "reportingController")
    if obj.get("series") != old.get("series"):
        _validate_series(obj, errors)
    for name, missing in _IMMUTABLE:
        path = "reportingController" if name == "reportingComponent" else name
        new, was = _found(obj, name, missing), _found(old, name, missing)
        if name in ("involvedObject", "source", "related"):
            immutable(new, was, path, errors, go_json(new))
        else:
            immutable(new, was, path, errors)
    return errors


def _found(obj: JSONObject, name: str, missing: JSONValue) -> JSONValue:
    """Return the value of a field; its Go zero value if it is absent."""
    value = obj.get(name)
    if name not in ("involvedObject", "source", "related"):
        return missing if value is None else value
    if value is None and missing.startswith("*"):
        return None
    return go_struct(value or {}, missing.removeprefix("*"))
