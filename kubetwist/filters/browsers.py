"""
Headers for browsers: HTTP Strict Transport Security, and Cross-Origin Resource Sharing.

@see: kubernetes/apiserver, C{pkg/server/filters/hsts.go}, C{pkg/server/filters/cors.go}.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..api.patterns import compile_pattern
from ..http.request import Handler, KubeRequest

_METHODS: Final = b"POST, GET, OPTIONS, PUT, DELETE, PATCH"
_HEADERS: Final = (
    b"Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, If-Modified-Since"
)
#: Maximum length of an origin; longer values are ignored.
_MAX_ORIGIN_LENGTH: Final = 512


def with_hsts(handler: Handler, directives: Sequence[str]) -> Handler:
    """
    Set C{Strict-Transport-Security} in all responses.

    @param directives: C{"max-age=31536000"}, C{"includeSubDomains"}, C{"preload"}.
    """
    value = "; ".join(directives).encode("latin-1")

    def transport_security(request: KubeRequest) -> None:
        request.setHeader(b"Strict-Transport-Security", value)
        handler(request)

    return transport_security


def with_cors(handler: Handler, patterns: Sequence[str]) -> Handler:
    """
    Set the CORS headers for allowed origins, and answer their preflight requests.

    @param patterns: RE2 patterns; an origin is allowed if one of them matches a part of it.
    """
    allowed = [compile_pattern(pattern) for pattern in patterns]

    def origins(request: KubeRequest) -> None:
        origin = request.getHeader(b"origin") or b""
        if (
            origin
            and len(origin) <= _MAX_ORIGIN_LENGTH
            and any(one.search(origin.decode("latin-1")) for one in allowed)
        ):
            request.setHeader(b"Access-Control-Allow-Origin", origin)
            request.setHeader(b"Access-Control-Allow-Methods", _METHODS)
            request.setHeader(b"Access-Control-Allow-Headers", _HEADERS)
            request.setHeader(b"Access-Control-Expose-Headers", b"Date")
            request.setHeader(b"Access-Control-Allow-Credentials", b"true")
            if request.method == b"OPTIONS":
                request.respond(204, b"", b"")
                return
        handler(request)

    return origins
