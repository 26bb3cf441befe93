"""
Answer with Retry-After while the server starts or shuts down.

@see: kubernetes/apiserver, C{pkg/server/filters/with_retry_after.go}.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ..http.request import (
    Handler,
    KubeRequest,
)

#: Path prefixes that are answered until the end.
_EXEMPT: Final = (b"/readyz", b"/livez", b"/healthz", b"/metrics")


def with_retry_after(handler: Handler, stopping: Callable[[], bool]) -> Handler:
    """
    Answer 429 to new requests once the server is shutting down, so that clients retry with another one.

    @param handler: The next handler.
    @param stopping: Returns whether the server is shutting down.
    """

    def retry_after(request: KubeRequest) -> None:
        if not stopping() or request.path.startswith(_EXEMPT):
            handler(request)
            return
        # The client should retry on a new connection.
        request.connection.disable_keep_alive()
        request.setHeader(b"Retry-After", b"5")
        request.respond_text(429, "The apiserver is shutting down, please try again later.\n")

    return retry_after


def with_not_ready(handler: Handler, ready: Callable[[], bool]) -> Handler:
    """
    Answer 503 to requests until the server has been ready once.

    Controllers then do not act on an incomplete state.

    @param handler: The next handler.
    @param ready: Returns whether the server has been ready.
    """

    def not_ready(request: KubeRequest) -> None:
        if ready() or request.path.startswith(_EXEMPT):
            handler(request)
            return
        request.setHeader(b"Retry-After", b"5")
        request.respond_text(503, "The apiserver hasn't been fully initialized yet, please try again later.\n")

    return not_ready
