"""
Who is signed in to the page at C{/ui}, and requests that come from it.

A browser sends its cookies along with whatever any page makes it send, so the cookie of a session alone is worth
nothing: a request must also carry the session's key in a header, which only scripts of this origin have, and which no
browser sends to another origin without asking first. Whoever steals one of the two has nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from hmac import compare_digest
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Final

from attrs import define

from twisted.internet.defer import Deferred
from zope.interface import implementer

from ..api.flagvalues import FlagValues
from ..api.resource import UserInfo
from ..interfaces import IAuthenticator
from .errors import RequestRefused
from .signinlinks import SignInLinks
from .union import TokenAuthentication

if TYPE_CHECKING:
    from ..interfaces import IAuthenticationRequest
    from ._context import AuthenticationContext

#: The header with the CSRF token of a session.
KEY: Final = b"x-kubetwist-ui"
#: The header in which browsers report the origin of a request; scripts cannot set it.
SITE: Final = b"sec-fetch-site"
#: Maximum number of sessions, in total and per user; the least recently used session is evicted.
MAX_SESSIONS: Final = 1000
MAX_SESSIONS_PER_USER: Final = 20
#: Maximum duration of a session, and of a session without requests, in seconds.
LONGEST: Final = 12 * 3600.0
IDLE: Final = 2 * 3600.0
#: Maximum length of session ids and CSRF tokens, in bytes.
_MAX_SECRET_LENGTH: Final = 128
_SAFE: Final = frozenset((b"GET", b"HEAD", b"OPTIONS"))


@define(eq=False)
class Session:
    """
    A session of a signed-in user.

    @ivar key: The digest of the key in the header.
    @ivar token: The token that authenticates each request again; C{""} for a session that began with a sign-in link.
    @ivar user: The user at the beginning; without a token, the user of each request.
    @ivar ends: The latest time at which the session ends.
    @ivar used: The time of the last use.
    """

    key: bytes
    token: str
    user: UserInfo
    ends: float
    used: float


class SessionStore:
    """Those that there are, by digests of what their cookies say; bounded in number and time."""

    def __init__(self, now: Callable[[], float]) -> None:
        """
        @param now: Returns the time in seconds, from any epoch.
        """
        self._now = now
        #: In the order of their last use.
        self._sessions: dict[bytes, Session] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(self, token: str, user: UserInfo) -> tuple[str, str]:
        """
        Begin a session.

        @param token: The token of the user, or C{""} if a sign-in link was used.
        @return: The value of the cookie, and the key.
        """
        self._evict_expired()
        own = [name for name, session in self._sessions.items() if session.user.name == user.name]
        for name in own[: max(0, len(own) - MAX_SESSIONS_PER_USER + 1)]:
            del self._sessions[name]
        while len(self._sessions) >= MAX_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        secret, key = token_urlsafe(32), token_urlsafe(32)
        now = self._now()
        self._sessions[_digest(secret.encode())] = Session(_digest(key.encode()), token, user, now + LONGEST, now)
        return secret, key

    def find(self, secret: bytes, key: bytes) -> Session | None:
        """The session that both belong to, unless it is over."""
        if len(secret) > _MAX_SECRET_LENGTH or len(key) > _MAX_SECRET_LENGTH:
            return None
        name = _digest(secret)
        session = self._sessions.get(name)
        if session is None or not compare_digest(session.key, _digest(key)):
            return None
        now = self._now()
        del self._sessions[name]
        if self._over(session, now):
            return None
        session.used = now
        self._sessions[name] = session
        return session

    def end(self, secret: bytes, key: bytes) -> None:
        """End it, if both belong to one."""
        if self.find(secret, key) is not None:
            del self._sessions[_digest(secret)]

    def _evict_expired(self) -> None:
        now = self._now()
        for name in [name for name, session in self._sessions.items() if self._over(session, now)]:
            del self._sessions[name]

    def _over(self, session: Session, now: float) -> bool:
        return now >= session.ends or now - session.used >= IDLE


def _digest(secret: bytes) -> bytes:
    return sha256(secret).digest()


@implementer(IAuthenticator)
class SessionAuthenticator:
    """Knows who sends what the page sends; asked before all others, whose credentials a page cannot choose."""

    def __init__(
        self,
        sessions: SessionStore,
        cookie: Callable[[], bytes],
        authenticate_token: Callable[[str], TokenAuthentication | Deferred[TokenAuthentication]],
        links: SignInLinks,
    ) -> None:
        """
        @param links: Sign-in links that begin sessions without a token.
        @param cookie: The name of the cookie.
        @param authenticate_token: Returns the user of a token that is valid for this server.
        """
        self.sessions = sessions
        self.links = links
        self.cookie = cookie
        self.authenticate_token = authenticate_token

    def authenticate(self, request: IAuthenticationRequest) -> UserInfo | Deferred[UserInfo | None] | None:
        """@see: L{IAuthenticator.authenticate}."""
        fields = request.fields
        if SITE in fields or b"origin" in fields:
            self._reject_cross_site(request)
        if b"cookie" not in fields:
            return None
        # The cookie is removed, because later handlers may forward the request to other servers.
        secret = pop_cookie(fields, self.cookie())
        keys = fields.pop(KEY, None)
        if secret is not None:
            request.signed_in = True
        if secret is None or keys is None or b"authorization" in fields:
            return None
        if not from_same_origin(request):
            raise RequestRefused("a session is used from another site")
        session = self.sessions.find(secret, keys[0])
        if session is None:
            raise RequestRefused("there is no such session, or it is over")
        if not session.token:
            return session.user
        found = self.authenticate_token(session.token)
        if isinstance(found, Deferred):
            return found.addCallback(_user)
        return _user(found)

    def _reject_cross_site(self, request: IAuthenticationRequest) -> None:
        """
        Reject cross-site writes: a browser sends its client certificate with requests of every page.

        @raise RequestRefused: Another site made a browser send a write without credentials other than a certificate.
        """
        fields = request.fields
        if from_same_origin(request) or b"authorization" in fields:
            return
        if request.method in _SAFE and b"upgrade" not in fields:
            return
        # Without Sec-Fetch-Site: a cross-site page that knows a token sends it in a header, which is allowed.
        if SITE in fields or _has_client_certificate(request):
            raise RequestRefused("a page of another site has sent it")


def from_same_origin(request: IAuthenticationRequest) -> bool:
    """Whether it may come from a page of this server, or from no page at all."""
    fields: dict[bytes, list[bytes]] = request.fields
    sites = fields.get(SITE)
    if sites is not None:
        return sites[0] in (b"same-origin", b"none")
    # Some browsers do not tell the site when they ask for a WebSocket, but all tell the origin then. Others than
    # browsers tell what they want to; every browser says that it is one, and no page can have it say something else.
    origins = fields.get(b"origin")
    if origins is None or not fields.get(b"user-agent", (b"",))[0].startswith(b"Mozilla/"):
        return True
    return origins[0].partition(b"://")[2].lower() == fields.get(b"host", (b"",))[0].lower()


def _has_client_certificate(request: IAuthenticationRequest) -> bool:
    """Whether there is a certificate that somebody else could make use of."""
    return bool(request.connection.peer_certificates())


def pop_cookie(fields: dict[bytes, list[bytes]], name: bytes) -> bytes | None:
    """
    Remove a cookie from the header fields.

    @return: The value; L{None} if the cookie is absent or present twice.
    """
    values = fields.get(b"cookie", [])
    if not any(name in value for value in values):
        return None
    found, kept = [], []
    for pair in b";".join(values).split(b";"):
        given, _, value = pair.strip(b" \t").partition(b"=")
        if given == name:
            found.append(value)
        elif given:
            kept.append(pair.strip(b" \t"))
    if kept:
        fields[b"cookie"] = [b"; ".join(kept)]
    else:
        del fields[b"cookie"]
    return found[0] if len(found) == 1 else None


def _user(to_authentication: TokenAuthentication) -> UserInfo:
    if to_authentication.user is None:
        raise RequestRefused(f"the token of a session is good no more: {to_authentication.error}")
    return to_authentication.user


def make(options: FlagValues, server: AuthenticationContext) -> SessionAuthenticator:
    """Made where there is the page; the server's port is in the name, as cookies are shared by all ports of a host."""

    def cookie() -> bytes:
        port: str = server.address.rpartition(":")[2]
        return b"__Host-kubetwist-" + port.encode()

    def authenticate_token(token: str) -> TokenAuthentication | Deferred[TokenAuthentication]:
        # As for a token in a request: it must be valid for an audience of this server.
        issuer = server.token_issuer
        return server.authenticate_token(token, () if issuer is None else issuer.audiences)

    authenticator = SessionAuthenticator(
        SessionStore(server.reactor.seconds), cookie, authenticate_token, SignInLinks(server.reactor.seconds)
    )
    server.sessions = authenticator
    return authenticator
