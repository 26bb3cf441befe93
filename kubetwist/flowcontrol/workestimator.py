"""
How many seats a request takes: one, but for what reads many objects at once.

@see: kubernetes/apiserver, C{pkg/util/flowcontrol/request/list_work_estimator.go}.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from .controller import Level

if TYPE_CHECKING:
    from ..http.request import KubeRequest

#: Bytes that are read for one seat, and that are held in memory at a time for a list, however long it is.
_BYTES_PER_SEAT: Final = 100_000
_HELD: Final = 1_000_000
#: Seats that a list may take at most.
_MOST: Final = 100

#: How many objects of a group and resource there are, and how many bytes one has; L{None} for what is not stored here.
Sizes = Callable[[str, str], "tuple[int, int] | None"]


def seats(request: KubeRequest, level: Level, sizes: Sizes) -> int:
    """
    The seats of a request that lists or watches.

    What a change costs those who watch is not reckoned afterwards, as in the reference: here it is part of the request,
    which ends when they have been told.
    """
    info = request.info
    if info.name:
        return 1
    query = request.query if b"?" in request.uri else {}
    if info.verb == "watch" and not _tells_what_is_there(query):
        return 1
    found = sizes(info.group, info.resource)
    if found is None:
        return 1
    count, size = found
    limit = (query.get("limit") or ("",))[0]
    if limit.isascii() and limit.isdigit() and 0 < int(limit[:9]) < count:
        count = int(limit[:9])
    wide = -(-min(count * size, _HELD) // _BYTES_PER_SEAT)
    return max(1, min(wide, _MOST if level.exempt else level.widest))


def _tells_what_is_there(query: Any) -> bool:
    """Whether a watch begins with the objects that there are."""
    if (query.get("sendInitialEvents") or ("",))[0].lower() in ("true", "1"):
        return True
    return (query.get("resourceVersion") or ("",))[0] in ("", "0")
