"""The authenticator: finds the user of a bearer token, and warns before the token expires."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil
from typing import Final

from zope.interface import implementer

from hashedtokens.tokens import TokenEntry, read_tokens, secret_matches, split_token
from kubetwist.api.flagvalues import FlagValues
from kubetwist.api.resource import UserInfo
from kubetwist.authentication.bearer import bearer_token
from kubetwist.authentication.errors import AuthenticationFailed
from kubetwist.interfaces import IAuthenticationRequest, IAuthenticator
from kubetwist.server.context import PluginContext

NAME: Final = "HashedTokens"
DAY: Final = 86400.0
#: Clients are warned in the last days of a token.
WARNING_DAYS: Final = 7


@implementer(IAuthenticator)
class HashedTokens:
    """
    Authenticates bearer tokens whose hashes are in a file.

    @ivar entries: The tokens by id; replaced when the file has changed.
    """

    def __init__(self, entries: Mapping[str, TokenEntry], seconds: Callable[[], float]) -> None:
        """
        @param seconds: Returns the time, in seconds since the epoch.
        """
        self.entries = entries
        self._seconds = seconds

    def authenticate(self, request: IAuthenticationRequest) -> UserInfo | None:
        """See L{IAuthenticator.authenticate}."""
        token = bearer_token(request)
        parts = None if token is None else split_token(token)
        if parts is None:
            return None  # Another authenticator may know the token.
        token_id, secret = parts
        entry = self.entries.get(token_id)
        # The text is for the log. It has the id, which is not secret.
        if entry is None or not secret_matches(entry, secret):
            raise AuthenticationFailed(f"token {token_id} is unknown")
        if entry.expires is not None:
            self._check_expiry(request, token_id, entry.expires - self._seconds())
        request.annotate("hashedtokens.example.org/id", token_id, "Metadata")
        return entry.user

    def _check_expiry(self, request: IAuthenticationRequest, token_id: str, remaining: float) -> None:
        if remaining <= 0:
            raise AuthenticationFailed(f"token {token_id} has expired")
        if remaining < WARNING_DAYS * DAY:
            days = ceil(remaining / DAY)
            request.warn(f"the token {token_id} expires in {days} {'day' if days == 1 else 'days'}")

    def use(self, entries: Mapping[str, TokenEntry]) -> None:
        """Replace the tokens."""
        self.entries = entries


def make(options: FlagValues, server: PluginContext) -> HashedTokens | None:
    """Return the authenticator for C{--plugin-config-file=HashedTokens=PATH}; L{None} without the flag."""
    authenticator = HashedTokens({}, server.reactor.seconds)
    entries = server.watch_config(NAME, read_tokens, authenticator.use)
    if entries is None:
        return None
    authenticator.use(entries)
    return authenticator
