"""Requests are refused while there is too little memory for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ..server.memorylimit import MemoryGuard
    from ..server.site import Handler, KubeRequest

#: Bytes of memory per byte of a body, at most: decoded, defaulted, compared with what is stored, and encoded.
_FACTOR: Final = 40
#: Bytes that any request may need.
_LEAST: Final = 64 * 1024
#: Bytes from which it is counted what requests that were admitted may need yet.
_COUNTED: Final = 256 * 1024
#: Bytes of a list that are made at a time, where they are those of the objects, however long it is.
_LIST: Final = 4 << 20
#: Bytes that wait for a watch, at most.
_WATCH: Final = 512 * 1024

_CHANGING: Final = frozenset(("create", "update", "patch", "deletecollection"))
#: Answered in any case: health checks decide about the process.
_EXEMPT: Final = (b"/readyz", b"/livez", b"/healthz", b"/metrics")
_TOO_LITTLE: Final = "The server is short of memory, please try again later.\n"

#: How many objects of a group and resource there are, and how many bytes one has; L{None} for what is not stored here.
Sizes = Callable[[str, str], "tuple[int, int] | None"]


def with_memory_limit(handler: Handler, guard: MemoryGuard, sizes: Sizes, longest: int) -> Handler:
    """
    Answer 429 to requests for which there is too little memory.

    @param longest: Bytes of a body that the site takes at most.
    """

    def memory_limit(request: KubeRequest) -> None:
        info = request.info
        if request.path.startswith(_EXEMPT):
            handler(request)
            return
        cost = cost_of(request, sizes, longest)
        # What gives memory back, or needs next to none, still works when nothing else does.
        urgent = cost == _LEAST and info.verb not in _CHANGING
        if not guard.admit(cost, urgent=urgent):
            request.terminated = 429
            request.setHeader(b"Retry-After", b"1")
            request.respond_text(429, _TOO_LITTLE)
            return
        if cost >= _COUNTED and not info.long_running:
            guard.reserved += cost
            request.notifyFinish().addBoth(over, cost)
        handler(request)

    def over(_: object, cost: int) -> None:
        guard.reserved -= cost
        guard.recover()

    return memory_limit


def cost_of(request: KubeRequest, sizes: Sizes, longest: int) -> int:
    """The bytes of memory that a request may need at a time."""
    info = request.info
    if info.verb == "watch":
        return _WATCH
    if info.verb == "list":
        found = sizes(info.group, info.resource) if not info.name else None
        if found is None:
            return _LEAST
        size = found[0] * found[1]
        accept = request.header(b"accept") or b""
        # A table, or another encoding, is made as a whole.
        return max(_LEAST, size if b"as=" in accept or b"protobuf" in accept or b"yaml" in accept else min(size, _LIST))
    length = request.body_length or 0
    if request.body_pending:
        length = min(int(request.header(b"content-length") or longest), longest)
    return _LEAST + _FACTOR * length
