"""
Estimate the number of seats of a request: one, except for lists and watches of many objects.

@see: kubernetes/apiserver, C{pkg/util/flowcontrol/request/list_work_estimator.go}.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from .controller import PriorityLevelState

if TYPE_CHECKING:
    from ..http.request import KubeRequest

#: Bytes of objects per seat; maximum bytes that a list holds in memory.
_BYTES_PER_SEAT: Final = 100_000
_MAX_HELD_BYTES: Final = 1_000_000
#: Maximum number of seats of a list.
_MAX_SEATS: Final = 100

#: Returns number and average size in bytes of the objects of a resource; L{None} if they are not stored here.
Sizes = Callable[[str, str], "tuple[int, int] | None"]


def seats(request: KubeRequest, level: PriorityLevelState, sizes: Sizes) -> int:
    """
    Return the number of seats of a list or watch request.

    The reference also charges mutating requests for sending events to watches. Here the events are sent as part of the
    mutating request, so that its seat covers them.
    """
    info = request.info
    if info.name:
        return 1
    query = request.query if b"?" in request.uri else {}
    if info.verb == "watch" and not _sends_initial_events(query):
        return 1
    stats = sizes(info.group, info.resource)
    if stats is None:
        return 1
    count, size = stats
    limit = (query.get("limit") or ("",))[0]
    if limit.isascii() and limit.isdigit() and 0 < int(limit[:9]) < count:
        count = int(limit[:9])
    seats_needed = -(-min(count * size, _MAX_HELD_BYTES) // _BYTES_PER_SEAT)
    return max(1, min(seats_needed, _MAX_SEATS if level.exempt else level.max_seats_per_request))


def _sends_initial_events(query: Any) -> bool:
    """Return whether a watch begins with the existing objects."""
    if (query.get("sendInitialEvents") or ("",))[0].lower() in ("true", "1"):
        return True
    return (query.get("resourceVersion") or ("",))[0] in ("", "0")
