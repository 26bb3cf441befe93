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


def register_collectors(flow: FlowControl, registry: Registry) -> None:
    """Register the collectors of priority and fairness."""
    registry.register_collector(lambda: _collect(flow))


def _collect(flow: FlowControl) -> Iterator[MetricSnapshot]:
    def gauge(
        name: str, text: str, labels: Sequence[str], values: list[tuple[tuple[str, ...], float]]
    ) -> MetricSnapshot:
        return MetricSnapshot(f"{_PREFIX}{name}", "gauge", text, labels, values)

    levels = list(flow.levels.values())
    for name, text, value in (
        (
            "nominal_limit_seats",
            "Nominal number of execution seats of a priority level.",
            lambda one: one.limits.nominal,
        ),
        (
            "lower_limit_seats",
            "Lower bound on the number of execution seats of a priority level.",
            lambda one: one.limits.lower,
        ),
        (
            "upper_limit_seats",
            "Upper bound on the number of execution seats of a priority level.",
            lambda one: one.limits.upper,
        ),
        ("current_limit_seats", "Current number of execution seats of a priority level.", lambda one: one.seats),
        (
            "demand_seats_average",
            "Time-weighted average of the seats demanded in the last adjustment period.",
            lambda one: one.demand.average,
        ),
        (
            "demand_seats_stdev",
            "Standard deviation of the seats demanded in the last adjustment period.",
            lambda one: one.demand.deviation,
        ),
        ("demand_seats_smoothed", "Smoothed seat demand.", lambda one: one.demand.smoothed),
        (
            "demand_seats_high_watermark",
            "High watermark of the seats demanded in the last adjustment period.",
            lambda one: float(one.demand.high),
        ),
        ("target_seats", "Seat allocation target.", lambda one: max(one.limits.lower, one.demand.smoothed)),
        ("current_r", "R, the virtual time of a priority level.", lambda one: one.queues.virtual),
    ):
        yield gauge(name, text, _LEVEL, [((level.name,), float(value(level))) for level in levels])
    yield gauge(
        "seat_fair_frac",
        "Fair fraction of the server's concurrency to allocate to each priority level.",
        (),
        [((), flow.seat_fair_frac)],
    )
    flow_metrics = [((level, schema), metrics) for (schema, level), metrics in flow.flow_metrics.items()]
    for _, metrics in flow_metrics:
        metrics.settle()
    for name, text, value in (
        ("current_executing_requests", "Number of executing requests.", lambda one: one.executing),
        ("current_executing_seats", "Number of seats occupied by executing requests.", lambda one: one.seats),
        ("current_inqueue_requests", "Number of requests waiting in queues.", lambda one: one.waiting),
        ("current_inqueue_seats", "Number of seats of the requests waiting in queues.", lambda one: one.waiting_seats),
    ):
        yield gauge(name, text, _BOTH, [(pair, float(value(metrics))) for pair, metrics in flow_metrics])
    yield MetricSnapshot(
        f"{_PREFIX}dispatched_requests_total",
        "counter",
        "Number of requests executed.",
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
        f"{_PREFIX}rejected_requests_total", "counter", "Number of rejected requests.", (*_BOTH, "reason"), rejected
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
        "Duration in seconds that requests waited in a queue.",
        (*_BOTH, "execute"),
        waited,
    )
    executed = [
        ((level, schema, kind), seconds)
        for (level, schema), metrics in flow_metrics
        for kind, seconds in (("regular", metrics.execution_regular), ("watch", metrics.execution_watch))
        if seconds.count
    ]
    text = "Duration in seconds of request execution."
    yield MetricSnapshot(f"{_PREFIX}request_execution_seconds", "histogram", text, (*_BOTH, "type"), executed)
    for name, text, attribute in (
        ("work_estimated_seats", "Number of estimated seats of requests.", "widths"),
        (
            "request_queue_length_after_enqueue",
            "Length of the queue, as seen by each request after it is enqueued.",
            "queue_lengths",
        ),
        ("watch_count_samples", "Number of watches that receive the event of a mutating request.", "watch_counts"),
    ):
        histograms = [(pair, getattr(metrics, attribute)) for pair, metrics in flow_metrics]
        observed = [(pair, histogram) for pair, histogram in histograms if histogram.count]
        yield MetricSnapshot(f"{_PREFIX}{name}", "histogram", text, _BOTH, observed)
    yield MetricSnapshot(
        "apiserver_current_inqueue_requests",
        "gauge",
        "Maximum number of queued requests in the last second, by request kind.",
        ("request_kind",),
        [((kind,), float(one.maximum())) for kind, one in flow.queued.items()],
    )
