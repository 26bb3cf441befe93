"""
Which requests go first, and how many at a time.

@see: kubernetes/apiserver, C{pkg/server/filters/priority-and-fairness.go}, C{maxinflight.go}.
"""

from __future__ import annotations

from typing import Final

from ..api.users import MASTERS
from ..flowcontrol.controller import (
    Assignment,
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

_READING: Final = frozenset(("get", "list", "watch"))
_COLLECTIONS: Final = frozenset(("list", "watch"))
_TOO_MANY: Final = "Too many requests, please try again later.\n"


def with_priority_and_fairness(handler: Handler, flow: FlowControl, sizes: Sizes) -> Handler:
    """
    Have requests wait for a seat, or answer 429.

    What is long-running waits for none, but for watches, which have a seat until they have told what is there.
    """
    classify, enter, light = flow.classify, flow.enter, flow.scheduler.note_cheap_request

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
        # Most requests come from whom the last one came that was like this.
        last = info.flow
        if last is not None and last[0] is user and last[1] is flow.plan:
            assigned: Assignment = last[2]
        else:
            assigned = classify(user, info)
            if flow.may_keep(user):
                info.flow = user, flow.plan, assigned
        request.assigned, request.flow_fields = assigned, assigned.fields
        verb = info.verb
        wide = seats(request, assigned.level, sizes) if verb in _COLLECTIONS else 1
        if wide == 1:
            light()
        if not enter(request, assigned, wide, watching if verb == "watch" else handler):
            flow.reject(request, assigned.level)

    return fairness


class InFlight:
    """The requests that are open, where they are only counted: --enable-priority-and-fairness=false."""

    def __init__(self, reading: int, changing: int) -> None:
        """
        @param reading: How many that read may be open; 0 for any number.
        @param changing: Likewise, of others.
        """
        self._limits = {True: reading, False: changing}
        self._open: dict[bool, set[KubeRequest]] = {True: set(), False: set()}

    def in_front(self, handler: Handler) -> Handler:
        """Answer 429 while there are too many."""

        def limited(request: KubeRequest) -> None:
            info = request.info
            reads = info.verb in _READING
            limit = self._limits[reads]
            if info.long_running or not limit:
                handler(request)
                return
            kind = self._open[reads]
            if len(kind) >= limit and MASTERS not in (request.user.groups if request.user is not None else ()):
                request.terminated = 429
                request.setHeader(b"retry-after", b"1")
                request.respond_text(429, _TOO_MANY)
                return
            kind.add(request)
            handler(request)

        return limited

    def ended(self, request: KubeRequest) -> None:
        """A request is over."""
        for kind in self._open.values():
            kind.discard(request)
