"""Tokens in the C{Authorization} header."""

from __future__ import annotations

from typing import Any

from zope.interface import implementer

from ..interfaces import IAuthenticator
from .errors import AuthenticationFailed

_EXTRA_SPACE = "the provided Authorization header contains extra space before the bearer token, and is ignored"


def bearer_token(request: Any) -> bytes | None:
    """The token of a request; L{None} without one."""
    values = request.fields.get(b"authorization")
    if values is None:
        return None
    value = values[0]
    if value.startswith(b"Bearer ") and value.count(b" ") == 1:
        return value[7:] or None
    scheme, *rest = value.strip(b" \t").split(b" ", 2)
    if scheme.lower() != b"bearer" or not rest:
        return None
    if not rest[0]:
        request.warn(_EXTRA_SPACE)
        return None
    return rest[0]  # type: ignore[no-any-return]


@implementer(IAuthenticator)
class UnclaimedTokens:
    """Asked after all who know tokens: one that nobody knows is no missing credential, but a bad one."""

    def authenticate(self, request: Any) -> None:
        """@see: L{IAuthenticator.authenticate}."""
        if bearer_token(request) is not None:
            raise AuthenticationFailed("invalid bearer token")


def make_unclaimed(options: Any, server: Any) -> UnclaimedTokens:
    """The same for everyone."""
    return UnclaimedTokens()
