"""Large bodies are read when their request is allowed, and not before."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..server.site import Handler, KubeRequest


def with_body(handler: Handler) -> Handler:
    """Have requests go on to C{handler} when their body has arrived."""

    def collecting(request: KubeRequest) -> None:
        request.collect_body(handler)

    return collecting


def by_head(handler: Handler, early: Handler) -> Handler:
    """
    Choose between requests that are there whole and those whose body is still to come.

    @param early: Answers the latter: it judges them by their heads.
    """

    def choosing(request: KubeRequest) -> None:
        (early if request.body_pending else handler)(request)

    return choosing
