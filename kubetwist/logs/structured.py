"""
Log formats: text with C{key="value"} as in klog, or one JSON object per line.

@see: kubernetes/klog, C{internal/serialize/keyvalues.go}; kubernetes/component-base, C{logs/json/json.go}.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
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

#: The fields of an event of L{log_structured}: the message and its values.
MESSAGE: Final = "structured_message"
VALUES: Final = "values"
_SEVERITIES: Final = {LogLevel.warn: "warning", LogLevel.error: "error", LogLevel.critical: "error"}


def format_key_values(message: str, values: Mapping[str, object]) -> str:
    """Format a structured message as klog does: C{"HTTP" verb="GET" resp=200}."""
    pieces = [quoted(message)]
    for key, value in values.items():
        pieces.append(f"{key}={quoted(value) if isinstance(value, str) else _plain(value)}")
    return " ".join(pieces)


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class StructuredMessage:
    """A structured message that is formatted only if it is logged as text."""

    __slots__ = ("_message", "_values")

    def __init__(self, message: str, values: Mapping[str, object]) -> None:
        self._message = message
        self._values = values

    def __str__(self) -> str:
        return format_key_values(self._message, self._values)


def log_structured(log: Logger, verbosity: int, message: str, values: Mapping[str, object]) -> None:
    """
    Log a structured message at a verbosity (Go: C{klog.V(verbosity).InfoS}).

    @param log: The logger.
    @param verbosity: The log level from which on the message is logged.
    @param message: The message.
    @param values: The values, by key.
    """
    log.info(
        "{line}",
        line=StructuredMessage(message, values),
        structured_message=message,
        values=values,
        verbosity=verbosity,
    )


def as_json(event: LogEvent, worker: int = 0) -> str:
    """
    Format an event as a JSON object, with the keys of kube-apiserver.

    It contains the message and its values, not all fields of the event.

    @param worker: The number of the front that has the event; 0 in another process.
    """
    level = event.get("log_level", LogLevel.info)
    document: dict[str, object] = {
        "ts": round(event.get("log_time", 0.0) * 1000, 3),
        "caller": event.get("log_namespace", ""),
        "msg": event[MESSAGE] if MESSAGE in event else formatEvent(event),
    }
    if level in _SEVERITIES:
        document["severity"] = _SEVERITIES[level]
    else:
        document["v"] = event.get("verbosity", 4 if level is LogLevel.debug else 0)
    if worker:
        document["worker"] = worker
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
        # The text may contain unpaired surrogates.
        fields = {key: str(value).encode("utf-8", "replace").decode() for key, value in document.items()}
        return orjson.dumps(fields).decode() + "\n"


def as_text(event: LogEvent, worker: int = 0) -> str | None:
    """
    Format an event as text.

    @param worker: The number of the front that has the event; 0 in another process.
    """
    text = classic_text(event)
    if not worker or text is None:
        return text
    head, bracket, message = text.partition("] ")
    return f"{head} worker={worker}{bracket}{message}"


def file_observer(
    file: TextIO, verbosity: Verbosity, *, json: bool, lowest: Any = LogLevel.info, worker: int = 0
) -> ILogObserver:
    """
    Return an observer that writes events to a file.

    @param file: The file.
    @param verbosity: Decides about debug events.
    @param json: Whether to write JSON.
    @param lowest: Minimum level of other events.
    @param worker: The number of this front, which each line contains; 0 in another process.
    """
    write = FileLogObserver(file, partial(as_json if json else as_text, worker=worker))

    def filter_event(event: LogEvent) -> object:
        return PredicateResult.maybe if verbosity.enabled(event, lowest) else PredicateResult.no

    predicate: Any = filter_event
    return FilteringLogObserver(write, [predicate])
