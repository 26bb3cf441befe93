"""
The sessions of the web UI, which the storage process has for all fronts.

A session that began at one front is valid at all, and ends at all. Fronts keep no copy: requests of the page are rare.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import Deferred

from ...api.resource import UserInfo
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
        return found.addCallback(
            lambda value: value and Session(b"", value[0], decode_user(value[1]), value[2], value[3])
        )

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

    def redeem(self, secret: str, request: KubeRequest) -> UserInfo | Deferred[UserInfo | None] | None:
        """Redeem a link."""
        if not is_local(request):
            return None
        user: Deferred[Any] = self._call("redeem link", secret)
        return user.addCallback(lambda value: value and decode_user(value))


def use_remote_sessions(authenticator: SessionAuthenticator, call: Call) -> None:
    """
    Let a front use the sessions of the storage process.

    @param call: Calls a function of the storage process.
    """
    authenticator.sessions, authenticator.links = RemoteSessions(call), RemoteLinks(call)


def session_handlers(authenticator: SessionAuthenticator) -> Handlers:
    """Return the functions of the storage process that fronts call."""
    sessions, links = authenticator.sessions, authenticator.links
    assert isinstance(sessions, SessionStore) and isinstance(links, SignInLinks), "the storage process has the sessions"

    def find(session_id: str, csrf_token: str) -> object:
        session = sessions.find(_bytes(session_id), _bytes(csrf_token))
        return session.addCallback(encode) if isinstance(session, Deferred) else encode(session)

    def encode(session: Session | None) -> object:
        if session is None:
            return None
        # The refresh token stays here.
        return [session.token, encode_user(session.user), session.expires_at, session.last_used_at]

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
        "redeem link": redeem,
    }


def _text(secret: bytes) -> str:
    return secret.decode("latin-1")


def _bytes(secret: str) -> bytes:
    return secret.encode("latin-1")
