"""
Sending away those who come to a server that stops.

@see: kubernetes/apiserver, C{pkg/server/filters/with_retry_after.go}.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ..http.request import (
    Handler,
    KubeRequest,
)

#: What is answered to the end.
_EXEMPT: Final = (b"/readyz", b"/livez", b"/healthz", b"/metrics")


def with_retry_after(handler: Handler, stopping: Callable[[], bool]) -> Handler:
    """
    Have requests come again, to another server if there is one, once this one stops.

    @param stopping: Whether it does.
    """

    def retry_after(request: KubeRequest) -> None:
        if not stopping() or request.path.startswith(_EXEMPT):
            handler(request)
            return
        # Whoever comes again is to connect anew.
        request.connection.finish_with_this()
        request.setHeader(b"Retry-After", b"5")
        request.respond_text(429, "The apiserver is shutting down, please try again later.\n")

    return retry_after
