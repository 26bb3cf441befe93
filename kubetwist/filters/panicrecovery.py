"""What goes wrong in one request stays there."""

from __future__ import annotations

from twisted.python.failure import Failure

from ..http.request import Handler, KubeRequest


def with_panic_recovery(handler: Handler) -> Handler:
    """Answer a bug with a Status that tells nothing of it, and log it with the request's audit id."""

    def panic_recovery(request: KubeRequest) -> None:
        try:
            handler(request)
        except Exception:
            request.processingFailed(Failure())

    return panic_recovery
