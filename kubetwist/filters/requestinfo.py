"""Request info filter: verb, group, version, resource, namespace and name of requests."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from ..http.request import Handler, KubeRequest
from ..http.requestinfo import UnknownRequest, request_info_of

#: Maximum length of cached URLs; longer ones are parsed each time, so that clients cannot fill the memory.
_MAX_CACHED_URL_LENGTH: Final = 256


def with_request_info(handler: Handler) -> Handler:
    """Set C{request.info}; answer 500 to incomplete resource paths, before authentication."""
    cached = lru_cache(maxsize=4096)(request_info_of)

    def request_info(request: KubeRequest) -> None:
        uri = request.uri
        try:
            if len(uri) <= _MAX_CACHED_URL_LENGTH:
                request.info = cached(request.method, uri)
            else:
                request.info = request_info_of(request.method, uri)
        except UnknownRequest as error:
            quoted = uri.decode("utf-8", "replace")
            text = f'Internal Server Error: "{quoted}": failed to create RequestInfo: {error}'
            request.respond_text(500, f"{escape_html(text)}\n")
            return
        handler(request)

    return request_info


def escape_html(text: str) -> str:
    """Return C{text} with HTML special characters escaped, except quotes."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
