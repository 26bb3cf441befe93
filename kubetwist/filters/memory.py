"""Refuse requests while there is not enough memory for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ..http.request import Handler, KubeRequest

if TYPE_CHECKING:
    from ..http.connection.memorylimit import MemoryGuard

#: Maximum bytes of memory per byte of a body: decoded, defaulted, compared with the stored object, and encoded.
_FACTOR: Final = 40
#: Bytes that any request may need.
_LEAST: Final = 64 * 1024
#: Cost, in bytes, from which on admitted requests reserve memory.
_COUNTED: Final = 256 * 1024
#: Bytes that a list needs at a time if it is written in pieces, whatever its length.
_LIST: Final = 4 << 20
#: Maximum bytes that wait for a watch.
_WATCH: Final = 512 * 1024

_CHANGING: Final = frozenset(("create", "update", "patch", "deletecollection"))
#: Always admitted: the liveness of the process depends on health checks.
_EXEMPT: Final = (b"/readyz", b"/livez", b"/healthz", b"/metrics")
_TOO_LITTLE: Final = "The server is short of memory, please try again later.\n"

#: Returns number and size in bytes of the objects of a group and resource; L{None} if they are not stored here.
Sizes = Callable[[str, str], "tuple[int, int] | None"]


def with_memory_limit(handler: Handler, guard: MemoryGuard, sizes: Sizes, longest: int) -> Handler:
    """
    Return a handler that answers 429 to requests without enough memory.

    @param handler: The next handler.
    @param guard: Decides whether there is enough memory.
    @param sizes: Returns number and size of the objects of a resource.
    @param longest: Maximum bytes of a body.
    """

    def memory_limit(request: KubeRequest) -> None:
        info = request.info
        if request.path.startswith(_EXEMPT):
            handler(request)
            return
        cost = cost_of(request, sizes, longest)
        # Requests that free memory, or need almost none, succeed while others are refused.
        urgent = cost == _LEAST and info.verb not in _CHANGING
        if not guard.admit(cost, urgent=urgent):
            request.termination_code = 429
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
    """Return the bytes of memory that a request may need at a time."""
    info = request.info
    if info.verb == "watch":
        return _WATCH
    if info.verb == "list":
        found = sizes(info.group, info.resource) if not info.name else None
        if found is None:
            return _LEAST
        size = found[0] * found[1]
        accept = request.header(b"accept") or b""
        # Tables and other encodings are built as a whole.
        return max(_LEAST, size if b"as=" in accept or b"protobuf" in accept or b"yaml" in accept else min(size, _LIST))
    length = request.body_length or 0
    if request.body_pending:
        length = min(int(request.header(b"content-length") or longest), longest)
    return _LEAST + _FACTOR * length
