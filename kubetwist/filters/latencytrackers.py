"""Where the time of requests goes, for those who are told when they are over."""

from __future__ import annotations

from ..api.latency import (
    QUEUE,
    times,
)
from ..http.request import (
    Handler,
    KubeRequest,
)


def with_measuring(handler: Handler) -> Handler:
    """
    Measure what requests spend their time on, from here on: in front of what answers them.

    A request may come here from where others left their seat: what is measured is not theirs.
    """

    def measuring(request: KubeRequest) -> None:
        if request.info.long_running:
            handler(request)
            return
        trail = request.audit
        request.times = known = {} if trail is None else trail.times
        if request.queued_for:
            known[QUEUE] = request.queued_for
        token = times.set(known)
        try:
            handler(request)
        finally:
            times.reset(token)

    return measuring
