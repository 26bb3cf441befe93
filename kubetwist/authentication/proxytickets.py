"""
Tickets for pages of pods and services that a browser opens through the proxy of the API.

Such a page must not get the session of the user: any pod can write its scripts. A ticket stands for a session and
one target. It is part of the path, so that all relative addresses of the page have it too.
"""

from __future__ import annotations

import re
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Final

from attrs import frozen

from twisted.internet.defer import Deferred

if TYPE_CHECKING:
    from .sessions import Session, SessionStore

#: Seconds for which a ticket is valid, at most until its session ends.
TICKET_LIFETIME: Final = 3600.0
#: Maximum number of tickets of a session, so that no user evicts tickets of another; the session's oldest is evicted.
MAX_TICKETS: Final = 20
#: Maximum length of a ticket in bytes.
_MAX_LENGTH: Final = 128
_TARGET: Final = re.compile(
    r"/api/v1/namespaces/[a-z0-9][a-z0-9-]*/(?:pods|services)/(?:https?:)?[a-z0-9][a-z0-9.-]*:[a-z0-9][a-z0-9-]*/proxy/"
)


@frozen
class ProxyTicket:
    """
    A ticket.

    @ivar session: The digest of the session's id.
    @ivar target: The path of the proxy, with a slash at its end.
    @ivar expires_at: The time at which it expires, in seconds of the store's clock.
    """

    session: bytes
    target: str
    expires_at: float


def is_target(path: str) -> bool:
    """Return whether a path is the proxy of a port of a pod or service."""
    return _TARGET.fullmatch(path) is not None


class ProxyTickets:
    """The valid tickets, by their digests."""

    def __init__(self, sessions: SessionStore) -> None:
        """
        @param sessions: The sessions to which tickets belong.
        """
        self._sessions = sessions
        #: Oldest first.
        self._tickets: dict[bytes, ProxyTicket] = {}

    def __len__(self) -> int:
        return len(self._tickets)

    def issue(self, session_id: bytes, csrf_token: bytes, target: str) -> str | None:
        """
        Return a new ticket; L{None} if there is no such session.

        @param target: A path for which L{is_target} is true.
        """
        if self._sessions.remaining(session_id, csrf_token) is None:
            return None
        now = self._sessions.now()
        session = self._sessions.digest(session_id)
        for digest in [digest for digest, ticket in self._tickets.items() if ticket.expires_at <= now]:
            del self._tickets[digest]
        of_session = [digest for digest, ticket in self._tickets.items() if ticket.session == session]
        if len(of_session) >= MAX_TICKETS:
            del self._tickets[of_session[0]]
        secret = token_urlsafe(32)
        self._tickets[self._sessions.digest(secret.encode())] = ProxyTicket(session, target, now + TICKET_LIFETIME)
        return secret

    def find(self, secret: bytes) -> tuple[Session, str] | Deferred[tuple[Session, str] | None] | None:
        """
        Return the session and the target of a ticket; L{None} if the ticket or the session is unknown or expired.

        This does not count as a use of the session: a page may send requests forever.
        """
        if len(secret) > _MAX_LENGTH:
            return None
        ticket = self._tickets.get(self._sessions.digest(secret))
        if ticket is None or ticket.expires_at <= self._sessions.now():
            return None
        session = self._sessions.with_digest(ticket.session)
        if session is None:
            return None
        refreshed = self._sessions.refreshed(session)
        if isinstance(refreshed, Deferred):
            return refreshed.addCallback(lambda session: None if session is None else (session, ticket.target))
        return refreshed, ticket.target
