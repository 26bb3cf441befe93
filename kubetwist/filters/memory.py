"""Refuse requests while there is not enough memory for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ..http.request import Handler, KubeRequest

if TYPE_CHECKING:
    from ..http.connection.memorylimit import MemoryGuard

#: Maximum bytes of memory per byte of a body: decoded, defaulted, compared with the stored object, and encoded.
_BYTES_PER_BODY_BYTE: Final = 40
#: Bytes that any request may need.
_MIN_COST: Final = 64 * 1024
#: Minimum cost, in bytes, of admitted requests that reserve memory.
_MIN_RESERVED_COST: Final = 256 * 1024
#: Maximum bytes that a list needs at a time if it is written in pieces.
_MAX_LIST_BYTES: Final = 4 << 20
#: Maximum bytes that wait for a watch.
_WATCH_BYTES: Final = 512 * 1024

#: What C{Accept} contains if a list is built as a whole.
_BUILT_AS_A_WHOLE: Final = (b"as=", b"protobuf", b"cbor", b"yaml")

_MUTATING: Final = frozenset(("create", "update", "patch", "deletecollection"))
#: Always admitted: the liveness of the process depends on health checks.
_EXEMPT: Final = (b"/readyz", b"/livez", b"/healthz", b"/metrics")
_TOO_LITTLE: Final = "The server is short of memory, please try again later.\n"

#: Returns number and size in bytes of the objects of a group and resource; L{None} if they are not stored here.
Sizes = Callable[[str, str], "tuple[int, int] | None"]


def with_memory_limit(handler: Handler, guard: MemoryGuard, sizes: Sizes, max_body: int) -> Handler:
    """
    Return a handler that answers 429 to requests without enough memory.

    @param handler: The next handler.
    @param guard: Decides whether there is enough memory.
    @param sizes: Returns number and size of the objects of a resource.
    @param max_body: Maximum bytes of a body.
    """

    def memory_limit(request: KubeRequest) -> None:
        info = request.info
        if request.path.startswith(_EXEMPT):
            handler(request)
            return
        cost = cost_of(request, sizes, max_body)
        # Requests that free memory, or need almost none, are admitted during a shortage.
        urgent = cost == _MIN_COST and info.verb not in _MUTATING
        if not guard.admit(cost, urgent=urgent):
            guard.refused += 1
            request.termination_code = 429
            request.setHeader(b"Retry-After", b"1")
            request.respond_text(429, _TOO_LITTLE)
            return
        if cost >= _MIN_RESERVED_COST and not info.long_running:
            guard.reserved += cost
            request.notifyFinish().addBoth(release, cost)
        handler(request)

    def release(_: object, cost: int) -> None:
        guard.reserved -= cost
        guard.recover()

    return memory_limit


def cost_of(request: KubeRequest, sizes: Sizes, max_body: int) -> int:
    """Return the bytes of memory that a request may need at a time."""
    info = request.info
    if info.verb == "watch":
        return _WATCH_BYTES
    if info.verb == "list":
        stats = sizes(info.group, info.resource) if not info.name else None
        if stats is None:
            return _MIN_COST
        size = stats[0] * stats[1]
        accept = request.header(b"accept") or b""
        # Tables and other encodings are built as a whole.
        return max(
            _MIN_COST,
            min(size, _MAX_LIST_BYTES) if not any(form in accept for form in _BUILT_AS_A_WHOLE) else size,
        )
    length = request.body_length or 0
    if request.body_pending:
        length = min(int(request.header(b"content-length") or max_body), max_body)
    return _MIN_COST + _BYTES_PER_BODY_BYTE * length
