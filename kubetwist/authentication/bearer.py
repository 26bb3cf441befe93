"""
Tokens in the C{Authorization} header; and where browsers, which cannot set it, open a WebSocket, in its protocols.

@see: kubernetes, C{apiserver/pkg/authentication/request}: C{bearertoken} and C{websocket}.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode
from typing import TYPE_CHECKING, Final

from zope.interface import implementer

from ..api.flagvalues import FlagValues
from ..interfaces import IAuthenticator
from .errors import AuthenticationFailed

if TYPE_CHECKING:
    from ..interfaces import IAuthenticationRequest
    from ._context import AuthenticationContext

_EXTRA_SPACE = "the provided Authorization header contains extra space before the bearer token, and is ignored"
#: Maximum length of a token in bytes. TokenReviews could contain longer tokens than request headers.
LONGEST: Final = 64 * 1024
_PROTOCOL: Final = b"base64url.bearer.authorization.k8s.io."
_ENCODED: Final = re.compile(rb"[A-Za-z0-9_-]+")


def bearer_token(request: IAuthenticationRequest) -> bytes | None:
    """
    Return the bearer token of a request; L{None} without one.

    @raise AuthenticationFailed: The token is too long.
    """
    token = _token(request)
    if token is not None and len(token) > LONGEST:
        raise AuthenticationFailed(f"the bearer token is longer than {LONGEST} bytes")
    return token


def _token(request: IAuthenticationRequest) -> bytes | None:
    values = request.fields.get(b"authorization")
    if values is None:
        return _protocol_token(request) if b"sec-websocket-protocol" in request.fields else None
    value = values[0]
    if value.startswith(b"Bearer ") and value.count(b" ") == 1:
        return value[7:] or None
    scheme, *rest = value.strip(b" \t").split(b" ", 2)
    if scheme.lower() != b"bearer" or not rest:
        return None
    if not rest[0]:
        request.warn(_EXTRA_SPACE)
        return None
    return rest[0]


def _protocol_token(request: IAuthenticationRequest) -> bytes | None:
    """
    Return the token in the C{Sec-WebSocket-Protocol} header.

    @raise AuthenticationFailed: There are several tokens, the token is invalid, or there is no other protocol.
    """
    fields = request.fields
    if fields.get(b"upgrade", (b"",))[0].lower() != b"websocket":
        return None
    token = None
    others = 0
    for value in fields[b"sec-websocket-protocol"]:
        for protocol in value.split(b","):
            protocol = protocol.strip(b" \t")
            if not protocol.startswith(_PROTOCOL):
                others += 1
                continue
            encoded = protocol[len(_PROTOCOL) :]
            if token is not None:
                raise AuthenticationFailed("multiple base64.bearer.authorization tokens specified")
            if not encoded or not _ENCODED.fullmatch(encoded) or len(encoded) % 4 == 1:
                raise AuthenticationFailed("invalid base64.bearer.authorization token encoding")
            token = urlsafe_b64decode(encoded + b"=" * (-len(encoded) % 4))
            if not _is_text(token):
                raise AuthenticationFailed("invalid base64.bearer.authorization token")
    if token is not None and not others:
        raise AuthenticationFailed("missing additional subprotocol")
    return token


def _is_text(token: bytes) -> bool:
    try:
        token.decode()
    except UnicodeDecodeError:
        return False
    return True


def without_token(protocols: list[bytes]) -> list[bytes]:
    """The protocols of a WebSocket but for the one that is a token."""
    if not any(_PROTOCOL in value for value in protocols):
        return protocols
    kept = [part.strip(b" \t") for value in protocols for part in value.split(b",")]
    return [b", ".join(part for part in kept if not part.startswith(_PROTOCOL))]


@implementer(IAuthenticator)
class InvalidTokenAuthenticator:
    """Asked after all who know tokens: one that nobody knows is no missing credential, but a bad one."""

    def authenticate(self, request: IAuthenticationRequest) -> None:
        """@see: L{IAuthenticator.authenticate}."""
        if bearer_token(request) is not None:
            raise AuthenticationFailed("invalid bearer token")


def invalid_token_authenticator(options: FlagValues, server: AuthenticationContext) -> InvalidTokenAuthenticator:
    """The same for everyone."""
    return InvalidTokenAuthenticator()
