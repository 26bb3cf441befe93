"""Read large bodies after their requests were authorized."""

from __future__ import annotations

from ..http.request import Handler, KubeRequest


def with_body(handler: Handler) -> Handler:
    """Return a handler that calls C{handler} when the body has arrived."""

    def collecting(request: KubeRequest) -> None:
        request.collect_body(handler)

    return collecting


def by_head(handler: Handler, early: Handler) -> Handler:
    """
    Return a handler that chooses by whether the body of a request has arrived.

    @param handler: Answers requests whose body is complete.
    @param early: Answers requests with a pending body; authorizes them by their heads.
    """

    def choosing(request: KubeRequest) -> None:
        (early if request.body_pending else handler)(request)

    return choosing
