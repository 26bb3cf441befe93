"""Events: those of the core group and those of events.k8s.io are the same objects under other names."""

from __future__ import annotations

from collections.abc import Callable

from ...api.resource import GroupVersionKind, JSONObject

CORE = GroupVersionKind("", "v1", "Event")
EVENTS = GroupVersionKind("events.k8s.io", "v1", "Event")

#: Core names and what events.k8s.io calls the same thing; all others are the same.
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

#: What the core version always shows, even when nothing is known.
_ALWAYS: JSONObject = {
    "involvedObject": {},
    "source": {},
    "firstTimestamp": None,
    "lastTimestamp": None,
    "eventTime": None,
    "reportingComponent": "",
    "reportingInstance": "",
}


def _to_core(obj: JSONObject) -> JSONObject:
    core = {_BACK.get(name, name): value for name, value in obj.items()}
    for name, value in _ALWAYS.items():
        if core.get(name) is None:
            core[name] = {} if value == {} else value
    return core


def _to_events(obj: JSONObject) -> JSONObject:
    event = {NAMES.get(name, name): value for name, value in obj.items()}
    event.setdefault("eventTime", None)
    for name in ("deprecatedFirstTimestamp", "deprecatedLastTimestamp", "deprecatedSource", "regarding"):
        if name in event and not event[name]:
            del event[name]
    for name in ("reportingController", "reportingInstance"):
        if event.get(name) == "":
            del event[name]
    return event


CONVERTERS: dict[tuple[GroupVersionKind, GroupVersionKind], Callable[[JSONObject], JSONObject]] = {
    (CORE, EVENTS): _to_events,
    (EVENTS, CORE): _to_core,
}
