"""
What browsers are told: that they must come by TLS, and which other pages may ask this server.

@see: kubernetes/apiserver, C{pkg/server/filters/hsts.go}, C{pkg/server/filters/cors.go}.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..api.patterns import compiled
from ..http.request import Handler, KubeRequest

_METHODS: Final = b"POST, GET, OPTIONS, PUT, DELETE, PATCH"
_HEADERS: Final = (
    b"Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, If-Modified-Since"
)
#: Longer ones are no origins, and are not looked at.
_LONGEST: Final = 512


def with_transport_security(handler: Handler, directives: Sequence[str]) -> Handler:
    """
    Have answers say that this server is to be reached by TLS only.

    @param directives: C{"max-age=31536000"}, C{"includeSubDomains"}, C{"preload"}.
    """
    value = "; ".join(directives).encode("latin-1")

    def transport_security(request: KubeRequest) -> None:
        request.setHeader(b"Strict-Transport-Security", value)
        handler(request)

    return transport_security


def with_origins(handler: Handler, patterns: Sequence[str]) -> Handler:
    """
    Have browsers let the pages of other origins ask this server, and answer their question whether they may.

    @param patterns: An origin that one of these RE2 patterns is found in may.
    """
    allowed = [compiled(pattern) for pattern in patterns]

    def origins(request: KubeRequest) -> None:
        origin = request.getHeader(b"origin") or b""
        if origin and len(origin) <= _LONGEST and any(one.search(origin.decode("latin-1")) for one in allowed):
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
