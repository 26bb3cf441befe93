"""Request info filter: verb, group, version, resource, namespace and name of requests."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from ..http.request import Handler, KubeRequest
from ..http.requestinfo import RequestInfo, UnknownRequest, request_info_of

#: Maximum length of cached URLs; longer ones are parsed each time, so that clients cannot fill the memory.
_MAX_CACHED_URL_LENGTH: Final = 256


def with_request_info(handler: Handler, selectors: bool = True) -> Handler:
    """
    Set C{request.info}; answer 500 to incomplete resource paths, before authentication.

    @param handler: The next handler.
    @param selectors: Whether authorizers may use selectors: the feature gate AuthorizeWithSelectors.
    """
    parse = request_info_of if selectors else _without_selectors
    cached = lru_cache(maxsize=4096)(parse)

    def request_info(request: KubeRequest) -> None:
        uri = request.uri
        try:
            if len(uri) <= _MAX_CACHED_URL_LENGTH:
                request.info = cached(request.method, uri)
            else:
                request.info = parse(request.method, uri)
        except UnknownRequest as error:
            quoted = uri.decode("utf-8", "replace")
            text = f'Internal Server Error: "{quoted}": failed to create RequestInfo: {error}'
            request.respond_text(500, f"{escape_html(text)}\n")
            return
        handler(request)

    return request_info


def _without_selectors(method: bytes, uri: bytes) -> RequestInfo:
    info = request_info_of(method, uri)
    info.field_selector = info.label_selector = ""
    return info


def escape_html(text: str) -> str:
    """Return C{text} with HTML special characters escaped, except quotes."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
