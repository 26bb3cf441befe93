"""Text about objects for the messages of failed tests: YAML of bounded size, conditions, and events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from ..api.jsontypes import JSONObject, JSONValue

MAX_LINES: Final = 80
MAX_LINE_LENGTH: Final = 200
MAX_EVENTS: Final = 20
#: Strings in objects are cut to this number of characters before they become YAML.
_MAX_STRING: Final = 2_000
_MAX_ITEMS: Final = 200
_MASK: Final = "(masked)"
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


def simplify(obj: Mapping[str, JSONValue]) -> JSONObject:
    """Return a copy of an object without managed fields, with the data of Secrets masked."""
    found: JSONObject = dict(obj)
    meta = found.get("metadata")
    if isinstance(meta, Mapping):
        meta = {name: value for name, value in meta.items() if name != "managedFields"}
        annotations = meta.get("annotations")
        if isinstance(annotations, Mapping) and _LAST_APPLIED in annotations:
            # It repeats the object, including the data of a Secret.
            left = {name: value for name, value in annotations.items() if name != _LAST_APPLIED}
            meta["annotations"] = left
        found["metadata"] = meta
    if found.get("kind") == "Secret":
        for name in ("data", "stringData"):
            if isinstance(found.get(name), Mapping):
                found[name] = dict.fromkeys(found[name], _MASK)
    return found


def to_yaml(obj: Mapping[str, JSONValue], max_lines: int = MAX_LINES) -> str:
    """
    Return an object as YAML, simplified and cut to a number of lines.

    @param max_lines: The number of lines; one more has the number of missing lines.
    """
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text = yaml.dump(_cut(simplify(obj)), Dumper=dumper, sort_keys=False, allow_unicode=True, width=MAX_LINE_LENGTH)
    return "\n".join(cut_lines(text.splitlines(), max_lines))


def cut_lines(lines: Sequence[str], max_lines: int = MAX_LINES) -> list[str]:
    """Return the first lines, each cut to L{MAX_LINE_LENGTH}; a last line has the number of missing ones."""
    shown = [line if len(line) <= MAX_LINE_LENGTH else f"{line[:MAX_LINE_LENGTH]}..." for line in lines[:max_lines]]
    if len(lines) > max_lines:
        shown.append(f"... ({len(lines) - max_lines} more lines)")
    return shown


def _cut(value: JSONValue) -> JSONValue:
    """Return a value with long strings and collections cut, of plain types that YAML knows."""
    if isinstance(value, str):
        return str(value) if len(value) <= _MAX_STRING else f"{value[:_MAX_STRING]}... ({len(value)} characters)"
    if isinstance(value, Mapping):
        cut = {str(name): _cut(one) for name, one in list(value.items())[:_MAX_ITEMS]}
        if len(value) > _MAX_ITEMS:
            cut["..."] = f"{len(value) - _MAX_ITEMS} more fields"
        return cut
    if isinstance(value, list | tuple):
        items = [_cut(one) for one in value[:_MAX_ITEMS]]
        return items if len(value) <= _MAX_ITEMS else [*items, f"... ({len(value) - _MAX_ITEMS} more items)"]
    return value


def table(rows: Iterable[Sequence[str]]) -> list[str]:
    """Return rows as lines with aligned columns; the last column is not padded."""
    texts = [[" ".join(cell.split()) for cell in row] for row in rows]
    if not texts:
        return []
    widths = [max(len(row[column]) for row in texts) for column in range(len(texts[0]) - 1)]
    return ["  ".join([*map(str.ljust, row[:-1], widths), row[-1]]).rstrip() for row in texts]


def conditions_of(obj: Mapping[str, JSONValue]) -> list[str]:
    """Return the conditions of an object as lines: type, status, reason and message."""
    status = obj.get("status")
    conditions = (status.get("conditions") if isinstance(status, Mapping) else None) or ()
    return table(
        (str(one.get("type", "")), str(one.get("status", "")), str(one.get("reason", "")), str(one.get("message", "")))
        for one in conditions
        if isinstance(one, Mapping)
    )


def events_table(events: Iterable[JSONObject], max_events: int = MAX_EVENTS) -> list[str]:
    """
    Return the newest events as lines, oldest first: time, type, reason, object and message.

    @param events: Events of the core group.
    @param max_events: The number of events.
    """
    ordered = sorted(events, key=event_time)
    lines = table(
        (
            event_time(event) or "-",
            str(event.get("type", "")),
            str(event.get("reason", "")),
            _involved(event.get("involvedObject") or {}),
            str(event.get("message", "")) + (f" (x{event['count']})" if (event.get("count") or 1) > 1 else ""),
        )
        for event in ordered[-max_events:]
    )
    lines = cut_lines(lines)
    return lines if len(ordered) <= max_events else [f"... ({len(ordered) - max_events} older events)", *lines]


def event_time(event: Mapping[str, JSONValue]) -> str:
    """Return the time of an event, as it is in the object."""
    series = event.get("series") or {}
    for value in (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime")):
        if value:
            return str(value)
    return str((event.get("metadata") or {}).get("creationTimestamp") or "")


def _involved(involved: Mapping[str, JSONValue]) -> str:
    return f"{str(involved.get('kind', '')).lower()}/{involved.get('name', '')}"
