"""
Metric collectors of priority and fairness.

@see: kubernetes/apiserver, C{pkg/util/flowcontrol/metrics/metrics.go}.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ..metrics.registry import (
    MetricSnapshot,
    Registry,
)
from .controller import FlowControl

_PREFIX: Final = "apiserver_flowcontrol_"
_BOTH: Final = ("priority_level", "flow_schema")
_LEVEL: Final = ("priority_level",)


def tell_of(flow: FlowControl, registry: Registry) -> None:
    """Register the collectors of priority and fairness."""
    registry.register_collector(lambda: _collect(flow))


def _collect(flow: FlowControl) -> Iterator[MetricSnapshot]:
    def gauge(
        name: str, text: str, labels: Sequence[str], values: list[tuple[tuple[str, ...], float]]
    ) -> MetricSnapshot:
        return MetricSnapshot(f"{_PREFIX}{name}", "gauge", text, labels, values)

    levels = list(flow.levels.values())
    for name, text, value in (
        ("nominal_limit_seats", "Seats of a level by its shares.", lambda one: one.limits.nominal),
        ("lower_limit_seats", "Seats of a level that others cannot borrow.", lambda one: one.limits.lower),
        ("upper_limit_seats", "Seats of a level with all that it may borrow.", lambda one: one.limits.upper),
        ("current_limit_seats", "Seats of a level now.", lambda one: one.seats),
        ("demand_seats_average", "Seats that were wanted, on average.", lambda one: one.demand.average),
        ("demand_seats_stdev", "How far that went up and down.", lambda one: one.demand.deviation),
        ("demand_seats_smoothed", "What is reckoned with.", lambda one: one.demand.smoothed),
        ("demand_seats_high_watermark", "The most that was wanted.", lambda one: float(one.demand.high)),
        ("target_seats", "What would be enough.", lambda one: max(one.limits.lower, one.demand.smoothed)),
        ("current_r", "The virtual time of a level.", lambda one: one.queues.virtual),
    ):
        yield gauge(name, text, _LEVEL, [((level.name,), float(value(level))) for level in levels])
    yield gauge("seat_fair_frac", "What part of their demand levels got.", (), [((), flow.seat_fair_frac)])
    flow_metrics = [((level, schema), metrics) for (schema, level), metrics in flow.flow_metrics.items()]
    for _, metrics in flow_metrics:
        metrics.settle()
    for name, text, value in (
        ("current_executing_requests", "Requests that have seats.", lambda one: one.executing),
        ("current_executing_seats", "Seats that are taken.", lambda one: one.seats),
        ("current_inqueue_requests", "Requests that wait.", lambda one: one.waiting),
    ):
        yield gauge(name, text, _BOTH, [(pair, float(value(metrics))) for pair, metrics in flow_metrics])
    yield MetricSnapshot(
        f"{_PREFIX}dispatched_requests_total",
        "counter",
        "Requests that got seats.",
        _BOTH,
        [(pair, float(metrics.dispatched)) for pair, metrics in flow_metrics],
    )
    rejected = [
        ((*pair, reason), float(count))
        for pair, metrics in flow_metrics
        for reason, count in (("queue-full", metrics.rejected_queue_full), ("time-out", metrics.rejected_timeout))
        if count
    ]
    yield MetricSnapshot(
        f"{_PREFIX}rejected_requests_total", "counter", "Requests that got none.", (*_BOTH, "reason"), rejected
    )
    waited = [
        ((level, schema, execute), seconds)
        for (level, schema), metrics in flow_metrics
        for execute, seconds in (("true", metrics.wait_executed), ("false", metrics.wait_not_executed))
        if seconds.count
    ]
    yield MetricSnapshot(
        f"{_PREFIX}request_wait_duration_seconds",
        "histogram",
        "How long requests waited for their turn.",
        (*_BOTH, "execute"),
        waited,
    )
    executed = [
        ((level, schema, kind), seconds)
        for (level, schema), metrics in flow_metrics
        for kind, seconds in (("regular", metrics.execution_regular), ("watch", metrics.execution_watch))
        if seconds.count
    ]
    text = "How long requests had their seats."
    yield MetricSnapshot(f"{_PREFIX}request_execution_seconds", "histogram", text, (*_BOTH, "type"), executed)
    widths = [(pair, metrics.widths) for pair, metrics in flow_metrics if metrics.widths.count]
    yield MetricSnapshot(f"{_PREFIX}work_estimated_seats", "histogram", "Seats that requests take.", _BOTH, widths)
    yield MetricSnapshot(
        "apiserver_current_inqueue_requests",
        "gauge",
        "The most requests that waited for a seat at a time within the last second, by whether they change something.",
        ("request_kind",),
        [((kind,), float(one.most())) for kind, one in flow.queued.items()],
    )
