"""
Dumps of priority and fairness as tables in the reference's format.

@see: kubernetes/apiserver, C{pkg/util/flowcontrol/apf_controller_debug.go}.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ..api import times
from .controller import (
    FlowControl,
    PriorityLevelState,
)
from .queueset import (
    QueueSetRequest,
    QueueState,
)

_LEVELS: Final = (
    *("PriorityLevelName", "ActiveQueues", "IsIdle", "IsQuiescing", "WaitingRequests", "ExecutingRequests"),
    *("DispatchedRequests", "RejectedRequests", "TimedoutRequests", "CancelledRequests"),
)
_QUEUES: Final = (
    *("PriorityLevelName", "Index", "PendingRequests", "ExecutingRequests", "SeatsInUse", "NextDispatchR"),
    *("InitialSeatsSum", "MaxSeatsSum", "TotalWorkSum"),
)
_REQUESTS: Final = (
    *("PriorityLevelName", "FlowSchemaName", "QueueIndex", "RequestIndexInQueue", "FlowDistingsher", "ArriveTime"),
    *("InitialSeats", "FinalSeats", "AdditionalLatency", "StartTime"),
)
_DETAILS: Final = ("UserName", "Verb", "APIPath", "Namespace", "Name", "APIVersion", "Resource", "SubResource")
#: The zero value of Go's C{time.Time}.
_ZERO_TIME: Final = "0001-01-01T00:00:00Z"
_MIN_COLUMN_WIDTH: Final = 8


def dump_levels(flow: FlowControl) -> str:
    """Return a table with a row for each priority level."""
    rows: list[Sequence[str]] = [_LEVELS]
    for level in _sorted(flow):
        queues = level.queues
        busy = sum(bool(one.waiting) for one in queues.snapshot())
        idle = not queues.waiting and not queues.running
        counts = (queues.dispatched, queues.rejected, queues.timed_out, queues.cancelled)
        rows.append(_row(level.name, busy, idle, level.quiescing, queues.waiting, len(queues.running), *counts))
    return _table(rows)


def dump_queues(flow: FlowControl) -> str:
    """Return a table with a row for each queue."""
    rows: list[Sequence[str]] = [_QUEUES]
    for level in _sorted(flow):
        for queue in level.queues.snapshot():
            taken = sum(ticket.seats for ticket in queue.running)
            start, work = f"{queue.start:.8f}ss", f"{queue.work:.8f}ss"
            counts = (len(queue.waiting), len(queue.running), taken, start, queue.seats, queue.seats, work)
            rows.append(_row(level.name, queue.number, *counts))
    return _table(rows)


def dump_requests(flow: FlowControl, details: bool, now: float) -> str:
    """
    Return a table with a row for each queued or executing request.

    @param details: Whether to add the user and the attributes of requests.
    @param now: Current time in seconds, by the clock of flow control.
    """
    rows: list[Sequence[str]] = [(*_REQUESTS, *_DETAILS) if details else _REQUESTS]
    for level in _sorted(flow):
        for queue_index, number, ticket in _tickets(level):
            request = ticket.request
            classification, info = request.apf_classification, request.info
            row = _row(
                *(
                    level.name,
                    classification.schema.name,
                    queue_index,
                    number,
                    classification.flow,
                    _time(ticket.arrival_time, now),
                ),
                *(ticket.seats, 0, "0s", _ZERO_TIME if ticket.start_time is None else _time(ticket.start_time, now)),
            )
            if details:
                version = f"{info.group}/{info.version}" if info.group else info.version
                about = (info.verb, info.path, info.namespace, info.name, version, info.resource, info.subresource)
                row = (*row, *_row(request.user.name, *about))
            rows.append(row)
    return _table(rows)


def _sorted(flow: FlowControl) -> list[PriorityLevelState]:
    return [flow.levels[name] for name in sorted(flow.levels)]


def _tickets(level: PriorityLevelState) -> Iterator[tuple[int, int, QueueSetRequest]]:
    states: list[QueueState] = level.queues.snapshot()
    for queue in states:
        for number, ticket in enumerate(queue.waiting):
            yield queue.number, number, ticket
        for ticket in queue.running:
            yield queue.number, -1, ticket
    for ticket in level.queues.running:
        if ticket.queue is None:
            yield -1, -1, ticket


def _time(moment: float, now: float) -> str:
    return times.format_micro_time(times.posix_now() - (now - moment))


def _row(*cells: object) -> tuple[str, ...]:
    return tuple(str(cell).lower() if isinstance(cell, bool) else _printable(str(cell)) for cell in cells)


def _printable(text: str) -> str:
    """Return a text without characters that would start another line or column."""
    return text if text.isprintable() else "".join(one if one.isprintable() else "?" for one in text)


def _table(rows: Sequence[Sequence[str]]) -> str:
    """Format rows as aligned columns that are followed by commas."""
    last = len(rows[0]) - 1
    cells = [[f"{cell}," if queue_index < last else cell for queue_index, cell in enumerate(row)] for row in rows]
    widths = [max(_MIN_COLUMN_WIDTH, *(len(row[queue_index]) + 1 for row in cells)) for queue_index in range(last)]
    return "".join(
        "".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)) + row[last] + "\n" for row in cells
    )
