"""
Bearer tokens in the C{Authorization} header or, for WebSockets of browsers, in C{Sec-WebSocket-Protocol}.

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
MAX_TOKEN_LENGTH: Final = 64 * 1024
_PROTOCOL: Final = b"base64url.bearer.authorization.k8s.io."
_ENCODED: Final = re.compile(rb"[A-Za-z0-9_-]+")


def bearer_token(request: IAuthenticationRequest) -> bytes | None:
    """
    Return the bearer token of a request; L{None} without one.

    @raise AuthenticationFailed: The token is too long.
    """
    values = request.fields.get(b"authorization")
    if values is not None and values[0].startswith(b"Bearer ") and values[0].count(b" ") == 1:
        token = values[0][7:] or None
    else:
        token = _token(request)
    if token is not None and len(token) > MAX_TOKEN_LENGTH:
        raise AuthenticationFailed(f"the bearer token is longer than {MAX_TOKEN_LENGTH} bytes")
    return token


def _token(request: IAuthenticationRequest) -> bytes | None:
    values = request.fields.get(b"authorization")
    if values is None:
        return _protocol_token(request) if b"sec-websocket-protocol" in request.fields else None
    scheme, *rest = values[0].strip(b" \t").split(b" ", 2)
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
    other_protocols = 0
    for value in fields[b"sec-websocket-protocol"]:
        for protocol in value.split(b","):
            protocol = protocol.strip(b" \t")
            if not protocol.startswith(_PROTOCOL):
                other_protocols += 1
                continue
            encoded = protocol[len(_PROTOCOL) :]
            if token is not None:
                raise AuthenticationFailed("multiple base64.bearer.authorization tokens specified")
            if not encoded or not _ENCODED.fullmatch(encoded) or len(encoded) % 4 == 1:
                raise AuthenticationFailed("invalid base64.bearer.authorization token encoding")
            token = urlsafe_b64decode(encoded + b"=" * (-len(encoded) % 4))
            if not _is_text(token):
                raise AuthenticationFailed("invalid base64.bearer.authorization token")
    if token is not None and not other_protocols:
        raise AuthenticationFailed("missing additional subprotocol")
    return token


def _is_text(token: bytes) -> bool:
    try:
        token.decode()
    except UnicodeDecodeError:
        return False
    return True


def without_token(protocols: list[bytes]) -> list[bytes]:
    """Return the values of C{Sec-WebSocket-Protocol} without the protocol that contains a token."""
    if not any(_PROTOCOL in value for value in protocols):
        return protocols
    names = [name.strip(b" \t") for value in protocols for name in value.split(b",")]
    return [b", ".join(name for name in names if not name.startswith(_PROTOCOL))]


@implementer(IAuthenticator)
class InvalidTokenAuthenticator:
    """Rejects requests with a bearer token. It follows the token authenticators, so none of them accepted the token."""

    def authenticate(self, request: IAuthenticationRequest) -> None:
        """@see: L{IAuthenticator.authenticate}."""
        if bearer_token(request) is not None:
            raise AuthenticationFailed("invalid bearer token")


def invalid_token_authenticator(options: FlagValues, server: AuthenticationContext) -> InvalidTokenAuthenticator:
    """Return the authenticator; it has no configuration."""
    return InvalidTokenAuthenticator()
