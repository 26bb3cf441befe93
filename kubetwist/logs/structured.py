"""
How lines are written: text, with C{key="value"} as the reference has it, or one JSON object a line.

@see: kubernetes/klog, C{internal/serialize/keyvalues.go}; kubernetes/component-base, C{logs/json/json.go}.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TextIO

import orjson

from twisted.logger import (
    FileLogObserver,
    FilteringLogObserver,
    ILogObserver,
    LogEvent,
    Logger,
    LogLevel,
    PredicateResult,
    formatEvent,
)
from twisted.logger import eventAsText as event_as_text
from twisted.logger import formatEventAsClassicLogText as classic_text

from ..api.go.quote import quoted
from .verbosity import Verbosity

#: The fields of an event that L{tell} makes: what it is about, and what is told of it.
HEAD: Final = "told"
VALUES: Final = "values"
_SEVERITIES: Final = {LogLevel.warn: "warning", LogLevel.error: "error", LogLevel.critical: "error"}


def with_values(head: str, values: Mapping[str, object]) -> str:
    """As the reference writes a structured line: C{"HTTP" verb="GET" resp=200}."""
    pieces = [quoted(head)]
    for key, value in values.items():
        pieces.append(f"{key}={quoted(value) if isinstance(value, str) else _plain(value)}")
    return " ".join(pieces)


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class Told:
    """A structured line, which is written only if somebody wants it as text."""

    __slots__ = ("_head", "_values")

    def __init__(self, head: str, values: Mapping[str, object]) -> None:
        self._head = head
        self._values = values

    def __str__(self) -> str:
        return with_values(self._head, self._values)


def tell(log: Logger, verbosity: int, head: str, values: Mapping[str, object]) -> None:
    """Log a structured line."""
    log.info("{line}", line=Told(head, values), told=head, values=values, verbosity=verbosity)


def as_json(event: LogEvent) -> str:
    """
    An event on one line, under the reference's names.

    Only what the line says is in it, not all that was at hand when it was logged.
    """
    level = event.get("log_level", LogLevel.info)
    document: dict[str, object] = {
        "ts": round(event.get("log_time", 0.0) * 1000, 3),
        "caller": event.get("log_namespace", ""),
        "msg": event[HEAD] if HEAD in event else formatEvent(event),
    }
    if level in _SEVERITIES:
        document["severity"] = _SEVERITIES[level]
    else:
        document["v"] = event.get("verbosity", 4 if level is LogLevel.debug else 0)
    values = event.get(VALUES)
    if isinstance(values, Mapping):
        document.update(values)
    failure = event.get("log_failure")
    if failure is not None:
        document["err"] = f"{failure.type.__name__}: {failure.getErrorMessage()}"
        document["stacktrace"] = event_as_text(event, includeTimestamp=False, includeSystem=False)
    try:
        return orjson.dumps(document, default=str).decode() + "\n"
    except (orjson.JSONEncodeError, UnicodeError):
        # Half characters and the like.
        fields = {key: str(value).encode("utf-8", "replace").decode() for key, value in document.items()}
        return orjson.dumps(fields).decode() + "\n"


def file_observer(file: TextIO, verbosity: Verbosity, *, json: bool, lowest: Any = LogLevel.info) -> ILogObserver:
    """
    What writes events to a file.

    @param lowest: Of which level events must at least be; those for debugging are C{verbosity}'s.
    """
    write = FileLogObserver(file, as_json if json else classic_text)

    def shown(event: LogEvent) -> object:
        return PredicateResult.maybe if verbosity.shows(event, lowest) else PredicateResult.no

    wanted: Any = shown
    return FilteringLogObserver(write, [wanted])
