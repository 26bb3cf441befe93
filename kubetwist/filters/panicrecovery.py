"""Panic recovery: an uncaught exception fails one request, not the server."""

from __future__ import annotations

from twisted.python.failure import Failure

from ..http.request import Handler, KubeRequest


def with_panic_recovery(handler: Handler) -> Handler:
    """Answer an uncaught exception with a Status without details, and log it with the request's audit id."""

    def panic_recovery(request: KubeRequest) -> None:
        try:
            handler(request)
        except Exception:
            request.processingFailed(Failure())

    return panic_recovery
