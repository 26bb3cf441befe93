"""Answers depend on who asks: nobody may keep them for others."""

from __future__ import annotations

from ..http.request import Handler, KubeRequest


def with_cache_control(handler: Handler) -> Handler:
    """Have answers say so, but for those that set the header themselves."""

    def cache_control(request: KubeRequest) -> None:
        request.cache_control = b"no-cache, private"
        handler(request)

    return cache_control
