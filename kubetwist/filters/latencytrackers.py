"""Latency trackers: seconds per component of a request, for logs, metrics and audit annotations."""

from __future__ import annotations

from ..api.latency import (
    QUEUE,
    latencies,
)
from ..http.request import (
    Handler,
    KubeRequest,
)


def with_latency_trackers(handler: Handler) -> Handler:
    """
    Attach the latency trackers to requests (Go: C{WithLatencyTrackers}).

    The context is reset afterwards: a request may start when another one releases its seats.
    """

    def measuring(request: KubeRequest) -> None:
        if request.info.long_running:
            handler(request)
            return
        trail = request.audit
        request.times = seconds_by_component = {} if trail is None else trail.times
        if request.apf_queue_seconds:
            seconds_by_component[QUEUE] = request.apf_queue_seconds
        token = latencies.set(seconds_by_component)
        try:
            handler(request)
        finally:
            latencies.reset(token)

    return measuring
