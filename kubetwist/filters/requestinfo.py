"""Find out what requests are about: verb, group, version, resource, namespace and name."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from ..http.request import Handler, KubeRequest
from ..http.requestinfo import UnknownRequest, request_info_of

#: Longer URLs are parsed each time; remembered, they would let a client fill the memory.
_REMEMBERED_URL: Final = 256


def with_request_info(handler: Handler) -> Handler:
    """Find out what requests are about; paths that break off are answered here, before anyone asks who is there."""
    remembered = lru_cache(maxsize=4096)(request_info_of)

    def request_info(request: KubeRequest) -> None:
        uri = request.uri
        try:
            if len(uri) <= _REMEMBERED_URL:
                request.info = remembered(request.method, uri)
            else:
                request.info = request_info_of(request.method, uri)
        except UnknownRequest as error:
            quoted = uri.decode("utf-8", "replace")
            text = f'Internal Server Error: "{quoted}": failed to create RequestInfo: {error}'
            request.respond_text(500, f"{sanitized(text)}\n")
            return
        handler(request)

    return request_info


def sanitized(text: str) -> str:
    """C{text} such that it can not be taken for HTML; quotes stay."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
