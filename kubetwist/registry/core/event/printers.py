"""Rows of Tables for Events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ....api.resource import JSONObject
from ...generic.printers.ages import Cell, since
from ...generic.printers.columns import META, Column, Field, Row, core_field, wide
from ...generic.printers.texts import name_of
from .conversion import NAMES


def event(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of an event: time, type, reason, object and message; the name is last."""
    if obj.get("apiVersion", "v1") != "v1":
        obj = {core: obj[name] for core, name in NAMES.items() if name in obj} | obj
    first_time = obj.get("firstTimestamp") or obj.get("eventTime")
    last_time = obj.get("lastTimestamp") or first_time
    count = obj.get("count") or 1
    series = obj.get("series")
    if series is not None:
        last_time, count = series.get("lastObservedTime"), series.get("count", 0)
    target = obj.get("involvedObject") or {}
    kind = target.get("kind", "").lower()
    yield since(last_time)
    yield obj.get("type", "")
    yield obj.get("reason", "")
    yield f"{kind}/{target['name']}" if target.get("name") else kind
    yield target.get("fieldPath", "")
    yield _source(obj)
    yield obj.get("message", "").strip()
    yield since(first_time)
    yield count
    yield name_of(obj)


def _source(obj: JSONObject) -> str:
    source = obj.get("source") or {}
    component: str = source.get("component") or obj.get("reportingComponent") or ""
    instance = source.get("host") or obj.get("reportingInstance") or ""
    return f"{component}, {instance}" if instance else component


_EVENT: Final = (
    Column("Last Seen", core_field("Event", "lastTimestamp")),
    Column("Type", core_field("Event", "type")),
    Column("Reason", core_field("Event", "reason")),
    Column("Object", core_field("Event", "involvedObject")),
    wide("Subobject", core_field("ObjectReference", "fieldPath")),
    wide("Source", core_field("Event", "source")),
    Column("Message", core_field("Event", "message")),
    wide("First Seen", core_field("Event", "firstTimestamp")),
    wide("Count", core_field("Event", "count")),
    Column("Name", Field(META, "name"), format="name", priority=1),
)


#: The columns of a kind's Tables.
COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = {
    "Event": _EVENT,
}

#: Makes the cells of a kind's row.
ROWS: Final[Mapping[str, Row]] = {
    "Event": event,
}
