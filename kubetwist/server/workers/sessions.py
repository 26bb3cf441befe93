"""
The sessions of the web UI, which the storage process has for all fronts.

A session that began at one front is valid at all, and ends at all. Fronts keep no copy: requests of the page are rare.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import Deferred

from ...api.resource import UserInfo
from ...authentication.proxytickets import ProxyTickets
from ...authentication.sessions import Session, SessionAuthenticator, SessionStore
from ...authentication.signinlinks import SignInLinks, is_local

if TYPE_CHECKING:
    from ...http.request import KubeRequest
    from .control import Handlers

#: Calls a function of the storage process.
Call = Callable[..., "Deferred[Any]"]


def encode_user(user: UserInfo) -> list[object]:
    """Return a user as a JSON value."""
    return [user.name, user.uid, list(user.groups), {key: list(values) for key, values in user.extra.items()}]


def decode_user(value: Any) -> UserInfo:
    """Return the user of a JSON value."""
    name, uid, groups, extra = value
    return UserInfo(name, uid, tuple(groups), {key: tuple(values) for key, values in extra.items()})


def encode_session(session: Session) -> list[object]:
    """Return a session as a JSON value, without its CSRF token, and without its refresh token, which stays here."""
    return [session.token, encode_user(session.user), session.expires_at, session.last_used_at]


def decode_session(value: Any) -> Session:
    """Return the session of a JSON value."""
    token, user, expires_at, last_used_at = value
    return Session(b"", token, decode_user(user), expires_at, last_used_at)


class RemoteSessions:
    """The sessions of a front; see L{kubetwist.authentication.sessions.Sessions}."""

    def __init__(self, call: Call) -> None:
        """@param call: Calls a function of the storage process."""
        self._call = call

    def begin(self, token: str, user: UserInfo, refresh_token: str = "") -> Deferred[tuple[str, str]]:
        """Begin a session."""
        return self._call("begin session", token, encode_user(user), refresh_token).addCallback(tuple)

    def find(self, session_id: bytes, csrf_token: bytes) -> Deferred[Session | None]:
        """Find a session."""
        found: Deferred[Any] = self._call("find session", _text(session_id), _text(csrf_token))
        return found.addCallback(lambda value: value and decode_session(value))

    def remaining(self, session_id: bytes, csrf_token: bytes) -> Deferred[float | None]:
        """Return the seconds until a session ends."""
        return self._call("remaining seconds of session", _text(session_id), _text(csrf_token))

    def end(self, session_id: bytes, csrf_token: bytes) -> Deferred[None]:
        """End a session."""
        return self._call("end session", _text(session_id), _text(csrf_token))


class RemoteLinks:
    """The sign-in links of a front; see L{kubetwist.authentication.sessions.Links}."""

    def __init__(self, call: Call) -> None:
        """@param call: Calls a function of the storage process."""
        self._call = call

    def issue(self, user: UserInfo) -> Deferred[str]:
        """Issue a link."""
        return self._call("issue link", encode_user(user))

    def redeem(self, secret: str, request: KubeRequest) -> UserInfo | Deferred[UserInfo | None] | None:
        """Redeem a link."""
        if not is_local(request):
            return None
        user: Deferred[Any] = self._call("redeem link", secret)
        return user.addCallback(lambda value: value and decode_user(value))


class RemoteTickets:
    """The tickets of a front; see L{kubetwist.authentication.sessions.Tickets}."""

    def __init__(self, call: Call) -> None:
        """@param call: Calls a function of the storage process."""
        self._call = call

    def issue(self, session_id: bytes, csrf_token: bytes, target: str) -> Deferred[str | None]:
        """Issue a ticket."""
        return self._call("issue ticket", _text(session_id), _text(csrf_token), target)

    def find(self, secret: bytes) -> Deferred[tuple[Session, str] | None]:
        """Find a ticket."""
        found: Deferred[Any] = self._call("find ticket", _text(secret))
        return found.addCallback(lambda value: value and (decode_session(value[0]), value[1]))


def use_remote_sessions(authenticator: SessionAuthenticator, call: Call) -> None:
    """
    Let a front use the sessions of the storage process.

    @param call: Calls a function of the storage process.
    """
    authenticator.sessions, authenticator.links = RemoteSessions(call), RemoteLinks(call)
    authenticator.tickets = RemoteTickets(call)


def session_handlers(authenticator: SessionAuthenticator) -> Handlers:
    """Return the functions of the storage process that fronts call."""
    sessions, links, tickets = authenticator.sessions, authenticator.links, authenticator.tickets
    assert isinstance(sessions, SessionStore) and isinstance(links, SignInLinks), "the storage process has the sessions"
    assert isinstance(tickets, ProxyTickets), "the storage process has the tickets"

    def find(session_id: str, csrf_token: str) -> object:
        session = sessions.find(_bytes(session_id), _bytes(csrf_token))
        return session.addCallback(encode) if isinstance(session, Deferred) else encode(session)

    def encode(session: Session | None) -> object:
        return None if session is None else encode_session(session)

    def find_ticket(secret: str) -> object:
        found = tickets.find(_bytes(secret))
        return found.addCallback(encode_found) if isinstance(found, Deferred) else encode_found(found)

    def encode_found(found: tuple[Session, str] | None) -> object:
        return None if found is None else [encode_session(found[0]), found[1]]

    def redeem(secret: str) -> object:
        user = links.take(secret)
        return None if user is None else encode_user(user)

    return {
        "begin session": lambda token, user, refresh_token: sessions.begin(token, decode_user(user), refresh_token),
        "find session": find,
        "remaining seconds of session": lambda session_id, csrf_token: sessions.remaining(
            _bytes(session_id), _bytes(csrf_token)
        ),
        "end session": lambda session_id, csrf_token: sessions.end(_bytes(session_id), _bytes(csrf_token)),
        "issue link": lambda user: links.issue(decode_user(user)),
        "redeem link": redeem,
        "issue ticket": lambda session_id, csrf_token, target: tickets.issue(
            _bytes(session_id), _bytes(csrf_token), target
        ),
        "find ticket": find_ticket,
    }


def _text(secret: bytes) -> str:
    return secret.decode("latin-1")


def _bytes(secret: str) -> bytes:
    return secret.encode("latin-1")
