"""
Refreshes the ID tokens of sessions before they expire.

One request at a time is sent for a session: providers that rotate refresh tokens end the grant if one is used twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from ..api.times import posix_now
from ._tokenparts import expiry_of
from .oidcclient import OIDCClient, SignInFailed, Tokens

if TYPE_CHECKING:
    from .sessions import Session
    from .union import TokenAuthentication

#: Seconds before the expiry of a token from which on it is refreshed.
MARGIN: Final = 60.0
#: Minimum number of seconds between two requests for a session.
INTERVAL: Final = 10.0


class TokenRefresher:
    """Refreshes the tokens of sessions that have a refresh token."""

    _log = Logger()

    def __init__(
        self,
        client: OIDCClient,
        authenticate_token: Callable[[str], TokenAuthentication | Deferred[TokenAuthentication]],
        now: Callable[[], float] = posix_now,
    ) -> None:
        """
        @param authenticate_token: Authenticates a new ID token.
        @param now: Returns the time in seconds since the epoch.
        """
        self._client = client
        self._authenticate_token = authenticate_token
        self._now = now

    def refresh(self, session: Session) -> Deferred[None] | None:
        """
        Refresh the token of a session if it expires soon.

        @return: A Deferred if the token has expired, which fires when the refresh has ended; L{None} if the session can
            be used now.
        """
        expires_at = expiry_of(session.token)
        now = self._now()
        if not session.refresh_token or expires_at is None or expires_at - now > MARGIN:
            return None
        if session.waiting is None:
            if now < session.next_refresh_at:
                return None
            session.next_refresh_at = now + INTERVAL
            session.waiting = []
            Deferred.fromCoroutine(self._refresh(session)).addErrback(self._failed).addBoth(_finish, session)
        if now < expires_at or session.waiting is None:
            return None
        done: Deferred[None] = Deferred()
        session.waiting.append(done)
        return done

    async def _refresh(self, session: Session) -> None:
        user = session.user.name
        try:
            tokens = await self._client.refresh(Tokens(session.token, session.refresh_token))
            if tokens is None:
                raise SignInFailed("the provider has sent no new ID token", invalid_grant=True)
            found = self._authenticate_token(tokens.id_token)
            authentication = await found if isinstance(found, Deferred) else found
            if authentication.user is None or authentication.user.name != user:
                raise SignInFailed("the new ID token is not valid for the user", invalid_grant=True)
        except SignInFailed as error:
            self._log.info(
                "no new token for a session of /ui: user={user} reason={reason}", user=user, reason=str(error)
            )
            if error.invalid_grant:
                # The session ends with its token.
                session.refresh_token = ""
            return
        session.token, session.refresh_token = tokens.id_token, tokens.refresh_token

    def _failed(self, failure: Failure) -> None:
        self._log.failure("refreshing the token of a session failed", failure)


def _finish(result: object, session: Session) -> None:
    waiting, session.waiting = session.waiting or [], None
    for done in waiting:
        done.callback(None)
