"""
Sessions of the web UI at C{/ui}, and authentication of its requests.

Browsers send cookies with cross-site requests too, so a session id in a cookie does not authenticate a request. The
request must also carry the session's CSRF token in a header. Only scripts of this origin have the token, and a browser
sends the header to another origin only after a CORS preflight. Each of the two values is useless without the other.

Scripts cannot set headers of a WebSocket handshake, which has the CSRF token in a subprotocol instead. No preflight
precedes it, so the handshake must also have an C{Origin}, which is this server.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from hmac import compare_digest
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Final, Protocol
from weakref import WeakKeyDictionary

from attrs import define

from twisted.internet.defer import Deferred
from zope.interface import implementer

from ..api.flagvalues import FlagValues
from ..api.resource import UserInfo
from ..api.times import posix_now
from ..interfaces import IAuthenticator
from ._tokenparts import expiry_of
from .errors import RequestRefused
from .proxytickets import ProxyTickets
from .signinlinks import SignInLinks
from .union import TokenAuthentication

if TYPE_CHECKING:
    from ..http.request import KubeRequest
    from ..interfaces import IAuthenticationRequest
    from ._context import AuthenticationContext
    from .oidcsignin import OIDCSignIn

#: The header with the CSRF token of a session.
CSRF_HEADER: Final = b"x-kubetwist-ui"
#: Prefix of the subprotocol with the CSRF token of a session, in the handshake of a WebSocket. The server never selects
#: this subprotocol, so a handshake needs another one.
CSRF_PROTOCOL: Final = b"csrf.kubetwist.dev."
#: The header in which browsers report whether a request is cross-site; scripts cannot set it.
SEC_FETCH_SITE: Final = b"sec-fetch-site"
#: Maximum number of sessions, in total and per user; the least recently used session is evicted.
MAX_SESSIONS: Final = 1000
MAX_SESSIONS_PER_USER: Final = 20
#: Maximum duration of a session, and of a session without requests, in seconds.
SESSION_TIMEOUT: Final = 12 * 3600.0
IDLE_TIMEOUT: Final = 2 * 3600.0
#: Maximum length of session ids and CSRF tokens, in bytes.
_MAX_SECRET_LENGTH: Final = 128
#: Safe methods (RFC 9110, section 9.2.1).
_SAFE_METHODS: Final = frozenset((b"GET", b"HEAD", b"OPTIONS"))


@define(eq=False)
class Session:
    """
    A session of a signed-in user.

    @ivar csrf_token_digest: The SHA-256 digest of the CSRF token.
    @ivar token: The token that authenticates each request again; C{""} for a session that began with a sign-in link.
    @ivar user: The user at the beginning; without a token, the user of each request.
    @ivar expires_at: The latest time at which the session ends, in seconds of the store's clock.
    @ivar last_used_at: The time of the last request, in seconds of the store's clock.
    @ivar refresh_token: Obtains a new C{token} before it expires; C{""} for none.
    @ivar next_refresh_at: The time before which no further refresh begins, in seconds since the epoch.
    @ivar waiting: Fired when the current refresh ends; L{None} without one.
    """

    csrf_token_digest: bytes
    token: str
    user: UserInfo
    expires_at: float
    last_used_at: float
    refresh_token: str = ""
    next_refresh_at: float = 0.0
    waiting: list[Deferred[None]] | None = None


class Sessions(Protocol):
    """The sessions of a server; in a server of several processes one of them has the sessions of all."""

    def begin(self, token: str, user: UserInfo, refresh_token: str = "") -> tuple[str, str] | Deferred[tuple[str, str]]:
        """See L{SessionStore.begin}."""

    def find(self, session_id: bytes, csrf_token: bytes) -> Session | Deferred[Session | None] | None:
        """See L{SessionStore.find}."""

    def remaining(self, session_id: bytes, csrf_token: bytes) -> float | Deferred[float | None] | None:
        """See L{SessionStore.remaining}."""

    def end(self, session_id: bytes, csrf_token: bytes) -> Deferred[None] | None:
        """See L{SessionStore.end}."""


class Links(Protocol):
    """The sign-in links of a server, which one of its processes keeps."""

    def issue(self, user: UserInfo) -> str | Deferred[str]:
        """See L{SignInLinks.issue}."""

    def redeem(self, secret: str, request: KubeRequest) -> UserInfo | Deferred[UserInfo | None] | None:
        """See L{SignInLinks.redeem}."""


class Tickets(Protocol):
    """The tickets of a server for pages of pods and services."""

    def issue(self, session_id: bytes, csrf_token: bytes, target: str) -> str | Deferred[str | None] | None:
        """See L{ProxyTickets.issue}."""

    def find(self, secret: bytes) -> tuple[Session, str] | Deferred[tuple[Session, str] | None] | None:
        """See L{ProxyTickets.find}."""


class SessionStore:
    """
    Sessions by the digest of their id, limited in number and duration.

    @ivar refresh: Refreshes the token of a session, see L{kubetwist.authentication._tokenrefresh}.
    """

    refresh: Callable[[Session], Deferred[None] | None] | None = None

    def __init__(self, now: Callable[[], float], posix_now: Callable[[], float] = posix_now) -> None:
        """
        @param now: Returns the time in seconds, from any epoch.
        @param posix_now: Returns the time in seconds since the epoch.
        """
        self.now = now
        self.digest = _digest
        self._posix_now = posix_now
        #: Sessions by digest of the session id, least recently used first.
        self._sessions: dict[bytes, Session] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(self, token: str, user: UserInfo, refresh_token: str = "") -> tuple[str, str]:
        """
        Begin a session.

        @param token: The token of the user, or C{""} if a sign-in link was used.
        @param refresh_token: Obtains a new token; C{""} for none.
        @return: The session id, for the cookie, and the CSRF token.
        """
        self._evict_expired()
        of_user = [digest for digest, session in self._sessions.items() if session.user.name == user.name]
        for digest in of_user[: max(0, len(of_user) - MAX_SESSIONS_PER_USER + 1)]:
            del self._sessions[digest]
        while len(self._sessions) >= MAX_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        session_id, csrf_token = token_urlsafe(32), token_urlsafe(32)
        now = self.now()
        self._sessions[_digest(session_id.encode())] = Session(
            _digest(csrf_token.encode()), token, user, now + SESSION_TIMEOUT, now, refresh_token
        )
        return session_id, csrf_token

    def find(self, session_id: bytes, csrf_token: bytes) -> Session | Deferred[Session | None] | None:
        """
        Return the session with this id and CSRF token and record its use; L{None} if there is none or it expired.

        If its token has expired and can be refreshed, the result is a Deferred.
        """
        session = self._peek(session_id, csrf_token)
        if session is None:
            return None
        # Sessions are ordered by their last use.
        digest = _digest(session_id)
        del self._sessions[digest]
        session.last_used_at = self.now()
        self._sessions[digest] = session
        return self.refreshed(session)

    def refreshed(self, session: Session) -> Session | Deferred[Session | None]:
        """Return a session after its token was refreshed, if it has expired and can be refreshed."""
        refreshing = self.refresh(session) if self.refresh is not None and session.refresh_token else None
        return session if refreshing is None else refreshing.addCallback(lambda _: session)

    def remaining(self, session_id: bytes, csrf_token: bytes) -> float | None:
        """
        Return the seconds until a session ends if it is not used any more; L{None} if there is none.

        This does not count as a use of the session.
        """
        session = self._peek(session_id, csrf_token)
        if session is None:
            return None
        now = self.now()
        remaining = min(session.expires_at - now, session.last_used_at + IDLE_TIMEOUT - now)
        token_expires_at = None if session.refresh_token else expiry_of(session.token)
        if token_expires_at is not None:
            remaining = min(remaining, token_expires_at - self._posix_now())
        return max(remaining, 0.0)

    def with_digest(self, digest: bytes) -> Session | None:
        """Return the session whose id has this digest; this does not count as a use of it."""
        session = self._sessions.get(digest)
        return None if session is None or self._is_expired(session, self.now()) else session

    def _peek(self, session_id: bytes, csrf_token: bytes) -> Session | None:
        """Return a session; remove it instead if it has expired."""
        if len(session_id) > _MAX_SECRET_LENGTH or len(csrf_token) > _MAX_SECRET_LENGTH:
            return None
        digest = _digest(session_id)
        session = self._sessions.get(digest)
        if session is None or not compare_digest(session.csrf_token_digest, _digest(csrf_token)):
            return None
        if self._is_expired(session, self.now()):
            del self._sessions[digest]
            return None
        return session

    def end(self, session_id: bytes, csrf_token: bytes) -> None:
        """End the session with this id and CSRF token, if there is one."""
        if self._peek(session_id, csrf_token) is not None:
            del self._sessions[_digest(session_id)]

    def _evict_expired(self) -> None:
        now = self.now()
        for digest in [digest for digest, session in self._sessions.items() if self._is_expired(session, now)]:
            del self._sessions[digest]

    def _is_expired(self, session: Session, now: float) -> bool:
        return now >= session.expires_at or now - session.last_used_at >= IDLE_TIMEOUT


def _digest(secret: bytes) -> bytes:
    return sha256(secret).digest()


@implementer(IAuthenticator)
class SessionAuthenticator:
    """
    Authenticates requests of the web UI by their session, and rejects cross-site writes.

    It is the first authenticator: browsers add client certificates to requests of any page.
    """

    def __init__(
        self,
        sessions: SessionStore,
        cookie: Callable[[], bytes],
        authenticate_token: Callable[[str], TokenAuthentication | Deferred[TokenAuthentication]],
        links: Links,
    ) -> None:
        """
        @param sessions: The sessions.
        @param cookie: Returns the name of the cookie.
        @param authenticate_token: Authenticates a token that must be valid for this server.
        @param links: Sign-in links that begin sessions without a token.
        """
        self.sessions: Sessions = sessions
        self.tickets: Tickets = ProxyTickets(sessions)
        #: The sessions of requests that have a ticket; L{None} until the first one, as each request is checked.
        self._assigned: WeakKeyDictionary[IAuthenticationRequest, Session] | None = None
        self.links = links
        self.cookie = cookie
        self.authenticate_token = authenticate_token
        #: Signs users in with an OpenID Connect provider; L{None} if that is not configured.
        self.oidc: OIDCSignIn | None = None

    def assign(self, request: IAuthenticationRequest, session: Session) -> None:
        """Authenticate a request by this session, which its ticket belongs to."""
        if self._assigned is None:
            self._assigned = WeakKeyDictionary()
        self._assigned[request] = session

    def authenticate(self, request: IAuthenticationRequest) -> UserInfo | Deferred[UserInfo | None] | None:
        """@see: L{IAuthenticator.authenticate}."""
        if self._assigned is not None and (assigned := self._assigned.pop(request, None)) is not None:
            request.signed_in = True
            return self._authenticate_session(assigned)
        fields = request.fields
        if SEC_FETCH_SITE in fields or b"origin" in fields:
            self._reject_cross_site(request)
        # Both secrets are removed, because later handlers may forward the request to other servers.
        protocol_token = pop_csrf_protocol(fields) if b"sec-websocket-protocol" in fields else None
        if b"cookie" not in fields:
            return None
        session_id = pop_cookie(fields, self.cookie())
        if self.oidc is not None:
            pop_cookie(fields, self.oidc.cookie())
        csrf_tokens = fields.pop(CSRF_HEADER, None)
        if session_id is not None:
            request.signed_in = True
        if csrf_tokens is None and protocol_token is not None and b"origin" in fields:
            csrf_tokens = [protocol_token]
        if session_id is None or csrf_tokens is None or b"authorization" in fields:
            return None
        if not from_same_origin(request):
            raise RequestRefused("session used in a cross-site request")
        session = self.sessions.find(session_id, csrf_tokens[0])
        if isinstance(session, Deferred):
            return session.addCallback(self._authenticate_session)
        return self._authenticate_session(session)

    def _authenticate_session(self, session: Session | None) -> UserInfo | Deferred[UserInfo | None]:
        """
        Return the user of a session.

        @raise RequestRefused: There is no such session, or its token is not valid any more.
        """
        if session is None:
            raise RequestRefused("session is unknown or expired")
        if not session.token:
            return session.user
        authentication = self.authenticate_token(session.token)
        if isinstance(authentication, Deferred):
            return authentication.addCallback(_user)
        return _user(authentication)

    def _reject_cross_site(self, request: IAuthenticationRequest) -> None:
        """
        Reject cross-site writes: a browser sends its client certificate with requests of every page.

        @raise RequestRefused: A cross-site write has no credentials, or only a client certificate.
        """
        fields = request.fields
        if from_same_origin(request) or b"authorization" in fields:
            return
        if request.method in _SAFE_METHODS and b"upgrade" not in fields:
            return
        # Without Sec-Fetch-Site: a cross-site page that has a token sends it in a header, which is allowed.
        if SEC_FETCH_SITE in fields or _has_client_certificate(request):
            raise RequestRefused("cross-site request")


def from_same_origin(request: IAuthenticationRequest) -> bool:
    """Return whether a request is from a page of this server, or not from a page: address bar, command line."""
    fields: dict[bytes, list[bytes]] = request.fields
    sites = fields.get(SEC_FETCH_SITE)
    if sites is not None:
        return sites[0] in (b"same-origin", b"none")
    # Some browsers omit Sec-Fetch-Site in WebSocket handshakes, but all send Origin. Clients other than browsers can
    # send any Origin. The user agent of every browser begins with Mozilla/, and a page cannot change it.
    origins = fields.get(b"origin")
    if origins is None or not fields.get(b"user-agent", (b"",))[0].startswith(b"Mozilla/"):
        return True
    return origins[0].partition(b"://")[2].lower() == fields.get(b"host", (b"",))[0].lower()


def _has_client_certificate(request: IAuthenticationRequest) -> bool:
    """Return whether the client has sent a certificate, which the browser adds to cross-site requests too."""
    return bool(request.connection.peer_certificates())


def pop_cookie(fields: dict[bytes, list[bytes]], name: bytes) -> bytes | None:
    """
    Remove a cookie from the header fields.

    @return: The value; L{None} if the cookie is absent or present twice.
    """
    values = fields.get(b"cookie", [])
    if not any(name in value for value in values):
        return None
    matches, remaining = [], []
    for pair in b";".join(values).split(b";"):
        pair_name, _, value = pair.strip(b" \t").partition(b"=")
        if pair_name == name:
            matches.append(value)
        elif pair_name:
            remaining.append(pair.strip(b" \t"))
    if remaining:
        fields[b"cookie"] = [b"; ".join(remaining)]
    else:
        del fields[b"cookie"]
    return matches[0] if len(matches) == 1 else None


def pop_csrf_protocol(fields: dict[bytes, list[bytes]]) -> bytes | None:
    """
    Remove the subprotocol with the CSRF token from the header fields.

    @return: The token; L{None} if there is none, or several, or if the request is not a WebSocket handshake.
    """
    values = fields.get(b"sec-websocket-protocol", [])
    if not any(CSRF_PROTOCOL in value for value in values):
        return None
    protocols = [protocol.strip(b" \t") for value in values for protocol in value.split(b",")]
    tokens = [protocol[len(CSRF_PROTOCOL) :] for protocol in protocols if protocol.startswith(CSRF_PROTOCOL)]
    remaining = [protocol for protocol in protocols if protocol and not protocol.startswith(CSRF_PROTOCOL)]
    if remaining:
        fields[b"sec-websocket-protocol"] = [b", ".join(remaining)]
    else:
        del fields[b"sec-websocket-protocol"]
    is_websocket = fields.get(b"upgrade", [b""])[0].lower() == b"websocket"
    return tokens[0] if is_websocket and len(tokens) == 1 else None


def _user(authentication: TokenAuthentication) -> UserInfo:
    if authentication.user is None:
        raise RequestRefused(f"the token of the session is invalid: {authentication.error}")
    return authentication.user


def make(options: FlagValues, server: AuthenticationContext) -> SessionAuthenticator:
    """Return the authenticator of the web UI's sessions."""

    def cookie() -> bytes:
        # The name contains the port, because all ports of a host share their cookies.
        port: str = server.address.rpartition(":")[2]
        return b"__Host-kubetwist-" + port.encode()

    def authenticate_token(token: str) -> TokenAuthentication | Deferred[TokenAuthentication]:
        # As a token in a request, it must be valid for an audience of this server.
        issuer = server.token_issuer
        return server.authenticate_token(token, () if issuer is None else issuer.audiences)

    sessions = SessionStore(server.reactor.seconds)
    authenticator = SessionAuthenticator(sessions, cookie, authenticate_token, SignInLinks(server.reactor.seconds))
    if options["ui-oidc-client-id"]:
        # Imported late: most servers have no provider.
        from ._tokenrefresh import TokenRefresher
        from .oidcsignin import make_sign_in

        authenticator.oidc = sign_in = make_sign_in(options, server)
        sessions.refresh = TokenRefresher(sign_in.client, authenticate_token).refresh
    server.sessions = authenticator
    return authenticator
