"""Conversion between Events of the core group and of events.k8s.io, the same objects with other field names."""

from __future__ import annotations

from collections.abc import Callable

from ....api.resource import GroupVersionKind, JSONObject

CORE = GroupVersionKind("", "v1", "Event")
EVENTS = GroupVersionKind("events.k8s.io", "v1", "Event")

#: The names of fields in the core group and in events.k8s.io; other fields have the same name.
NAMES = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_BACK = {name: core for core, name in NAMES.items()}

#: Fields that the core version never omits.
_ALWAYS: JSONObject = {
    "involvedObject": {},
    "source": {},
    "firstTimestamp": None,
    "lastTimestamp": None,
    "eventTime": None,
    "reportingComponent": "",
    "reportingInstance": "",
}


#: Fields that the version of events.k8s.io never omits.
_ALWAYS_IN_EVENTS: JSONObject = {
    "eventTime": None,
    "regarding": {},
    "deprecatedSource": {},
    "deprecatedFirstTimestamp": None,
    "deprecatedLastTimestamp": None,
}


def _fill(obj: JSONObject, always: JSONObject) -> None:
    for name, value in always.items():
        if obj.get(name) is None:
            obj[name] = {} if value == {} else value


def _to_core(obj: JSONObject) -> JSONObject:
    core = {_BACK.get(name, name): value for name, value in obj.items()}
    _fill(core, _ALWAYS)
    return core


def _to_events(obj: JSONObject) -> JSONObject:
    event = {NAMES.get(name, name): value for name, value in obj.items()}
    _fill(event, _ALWAYS_IN_EVENTS)
    for name in ("reportingController", "reportingInstance"):
        if event.get(name) == "":
            del event[name]
    return event


CONVERTERS: dict[tuple[GroupVersionKind, GroupVersionKind], Callable[[JSONObject], JSONObject]] = {
    (CORE, EVENTS): _to_events,
    (EVENTS, CORE): _to_core,
}
