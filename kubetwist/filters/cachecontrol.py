"""Cache-Control filter: responses depend on the user, so shared caches must not store them."""

from __future__ import annotations

from ..http.request import Handler, KubeRequest


def with_cache_control(handler: Handler) -> Handler:
    """Set C{Cache-Control: no-cache, private} unless the handler sets the header."""

    def cache_control(request: KubeRequest) -> None:
        request.cache_control = b"no-cache, private"
        handler(request)

    return cache_control
