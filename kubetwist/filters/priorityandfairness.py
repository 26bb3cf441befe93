"""
Priority and fairness, and the limit of requests in flight that replaces it.

@see: kubernetes/apiserver, C{pkg/server/filters/priority-and-fairness.go}, C{maxinflight.go}.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ..api.users import MASTERS
from ..flowcontrol.controller import (
    Classification,
    FlowControl,
)
from ..flowcontrol.workestimator import (
    Sizes,
    seats,
)
from ..http.request import (
    Handler,
    KubeRequest,
)

_READ_ONLY: Final = frozenset(("get", "list", "watch"))
_MUTATING: Final = frozenset(("create", "update", "patch", "delete"))
_COLLECTIONS: Final = frozenset(("list", "watch"))
_TOO_MANY: Final = "Too many requests, please try again later.\n"


#: Returns the number of watches that receive the events of an object, by group, resource, namespace and name.
WatchCounts = Callable[[str, str, str, str], int]


def with_priority_and_fairness(
    handler: Handler, flow: FlowControl, sizes: Sizes, watches: WatchCounts = lambda *names: 0
) -> Handler:
    """
    Run requests when seats are free, or answer 429.

    Long-running requests need no seats, except for watches, which have them until the initial events are written.

    @param handler: The next handler.
    @param flow: Classifies, queues and dispatches requests.
    @param sizes: Returns number and size of the objects of a resource.
    @param watches: Returns the number of watches that a write concerns, for a metric.
    """
    classify, start_request, note_cheap_request = flow.classify, flow.start_request, flow.scheduler.note_cheap_request

    def watching(request: KubeRequest) -> None:
        try:
            handler(request)
        finally:
            flow.ended(request)

    def fairness(request: KubeRequest) -> None:
        info = request.info
        if info.long_running and info.verb != "watch":
            handler(request)
            return
        user = request.user
        assert user is not None, "authentication comes before"
        # Most requests come from the same user as the last one of this kind.
        last = info.flow
        if last is not None and last[0] is user and last[1] is flow.config_version:
            classification: Classification = last[2]
        else:
            classification = classify(user, info)
            if flow.may_cache(user):
                info.flow = user, flow.config_version, classification
        request.apf_classification, request.apf_headers = classification, classification.fields
        verb = info.verb
        seats_needed = seats(request, classification.level, sizes) if verb in _COLLECTIONS else 1
        if seats_needed == 1:
            note_cheap_request()
        if verb in _MUTATING and info.is_resource_request:
            count = watches(info.group, info.resource, info.namespace, info.name)
            classification.metrics.watch_counts.observe(count)
        if not start_request(request, classification, seats_needed, watching if verb == "watch" else handler):
            flow.reject(request, classification.level)

    return fairness


class MaxInFlightLimit:
    """Limit of open requests, with --enable-priority-and-fairness=false (Go: C{WithMaxInFlightLimit})."""

    def __init__(self, read_only_limit: int, mutating_limit: int) -> None:
        """
        @param read_only_limit: Maximum number of open read-only requests; 0 for no limit.
        @param mutating_limit: Maximum number of open mutating requests; 0 for no limit.
        """
        self._limits = {True: read_only_limit, False: mutating_limit}
        self._open: dict[bool, set[KubeRequest]] = {True: set(), False: set()}

    def wrap(self, handler: Handler) -> Handler:
        """Return a handler that answers 429 while the limit is reached."""

        def limited(request: KubeRequest) -> None:
            info = request.info
            is_read_only = info.verb in _READ_ONLY
            limit = self._limits[is_read_only]
            if info.long_running or not limit:
                handler(request)
                return
            requests = self._open[is_read_only]
            if len(requests) >= limit and MASTERS not in (request.user.groups if request.user is not None else ()):
                request.termination_code = 429
                request.setHeader(b"retry-after", b"1")
                request.respond_text(429, _TOO_MANY)
                return
            requests.add(request)
            handler(request)

        return limited

    def ended(self, request: KubeRequest) -> None:
        """Release a request that was answered or whose client has disconnected."""
        for requests in self._open.values():
            requests.discard(request)
