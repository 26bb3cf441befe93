"""
Sample the utilization of priority levels a few times a second, weighted with the elapsed time.

Weights are nanoseconds, as in kube-apiserver. Sampling adds no work to requests.

@see: kubernetes/apiserver, C{pkg/util/flowcontrol/metrics/timing_ratio_histogram.go}.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from twisted.internet.interfaces import IReactorTime

from ..flowcontrol.controller import FlowControl
from ..metrics.registry import Histogram, MetricSnapshot

#: Seconds between two samples.
SAMPLE_INTERVAL: Final = 0.25
_PREFIX: Final = "apiserver_flowcontrol_"
#: Number of stored series in addition to the series of existing levels.
_MAX_STALE_SERIES: Final = 40
_NANOSECONDS: Final = 1_000_000_000
_SEATS: Final = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)
_REQUESTS: Final = (0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.25, 0.5, 0.75, 1.0)
_KINDS: Final = (0.0, 0.001, 0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)
_DEMAND: Final = (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.7, 2.0, 2.8, 4.0, 6.0)
#: By name: the help, the labels besides level or kind, and the bounds.
_SERIES: Final[dict[str, tuple[str, Sequence[str], Sequence[float]]]] = {
    "priority_level_seat_utilization": (
        "Observations per nanosecond of the utilization of a priority level's seats.",
        ("priority_level", "phase"),
        _SEATS,
    ),
    "priority_level_request_utilization": (
        "Observations per nanosecond of executing and waiting requests as a fraction of their limit.",
        ("priority_level", "phase"),
        _REQUESTS,
    ),
    "demand_seats": (
        "Observations per nanosecond of demanded seats as a fraction of the nominal limit.",
        ("priority_level",),
        _DEMAND,
    ),
    "read_vs_write_current_requests": (
        "Observations per nanosecond of executing and waiting requests, read-only or mutating, as a fraction of"
        " --max-requests-inflight or --max-mutating-requests-inflight.",
        ("request_kind", "phase"),
        _KINDS,
    ),
}


class FlowControlSampler:
    """Sampler of the utilization of priority levels."""

    def __init__(
        self,
        flow: FlowControl,
        reactor: IReactorTime,
        in_flight: Callable[[], tuple[int, int]],
        limits: tuple[int, int],
    ) -> None:
        """
        @param in_flight: Returns the numbers of open read-only and mutating requests.
        @param limits: Their limits; 0 for none.
        """
        self._flow = flow
        self._reactor = reactor
        self._in_flight = in_flight
        self._limits = limits
        self._last_sample = 0.0
        self._call: Any = None
        self._histograms: dict[tuple[str, tuple[str, ...]], Histogram] = {}

    def start(self) -> None:
        """Start sampling."""
        self._last_sample = self._reactor.seconds()
        self._call = self._reactor.callLater(SAMPLE_INTERVAL, self._sample)

    def stop(self) -> None:
        """Stop sampling. Idempotent."""
        call, self._call = self._call, None
        if call is not None:
            call.cancel()

    def _sample(self) -> None:
        self._call = self._reactor.callLater(SAMPLE_INTERVAL, self._sample)
        now = self._reactor.seconds()
        # A blocked reactor delays this sample, which then counts for all of that time.
        weight = int((now - self._last_sample) * _NANOSECONDS)
        self._last_sample = now
        levels = self._flow.levels
        if len(self._histograms) > _MAX_STALE_SERIES + 4 * len(levels):
            for key in [one for one in self._histograms if _is_deleted(one, levels)]:
                del self._histograms[key]
        for level in levels.values():
            name, queues = level.name, level.queues
            seats, limits = max(level.seats, 1), queues.limits
            room = max(limits.num_queues * limits.queue_length_limit, 1)
            self._observe("priority_level_seat_utilization", (name, "executing"), queues.executing / seats, weight)
            requests = "priority_level_request_utilization"
            self._observe(requests, (name, "executing"), len(queues.running) / seats, weight)
            self._observe(requests, (name, "waiting"), queues.waiting / room, weight)
            self._observe("demand_seats", (name,), level.demand.now / max(level.limits.nominal, 1), weight)
        kinds = zip(("readOnly", "mutating"), self._in_flight(), self._limits, strict=True)
        for kind, count, limit in kinds:
            max_requests = max(limit, 1)
            self._observe("read_vs_write_current_requests", (kind, "executing"), count / max_requests, weight)
            waiting = self._flow.queued[kind].count / max_requests
            self._observe("read_vs_write_current_requests", (kind, "waiting"), waiting, weight)

    def _observe(self, name: str, labels: tuple[str, ...], value: float, weight: int) -> None:
        histogram = self._histograms.get((name, labels))
        if histogram is None:
            histogram = self._histograms[name, labels] = Histogram(_SERIES[name][2])
        histogram.counts[bisect_left(histogram.bounds, value)] += weight
        histogram.sum += value * weight

    def find(self, level: str, phase: str) -> Histogram | None:
        """
        Return the utilization of a priority level by requests: fractions of its seats, or of the room of its queues.

        @param phase: C{executing} or C{waiting}.
        """
        return self._histograms.get(("priority_level_request_utilization", (level, phase)))

    def collect(self) -> Iterator[MetricSnapshot]:
        """Return the samples of existing levels."""
        for name, (text, labels, _) in _SERIES.items():
            values = [
                (key, one)
                for (series, key), one in self._histograms.items()
                if series == name and not _is_deleted((series, key), self._flow.levels)
            ]
            yield MetricSnapshot(f"{_PREFIX}{name}", "histogram", text, labels, values)


def _is_deleted(key: tuple[str, tuple[str, ...]], levels: Mapping[str, object]) -> bool:
    """Return whether a series belongs to a level that no longer exists."""
    name, labels = key
    return _SERIES[name][1][0] == "priority_level" and labels[0] not in levels
