"""Several authenticators as one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from attrs import evolve, frozen
from OpenSSL.crypto import X509

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure
from zope.interface import implementer

from ..api.resource import UserInfo
from ..api.users import ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED
from ..interfaces import IAuthenticationRequest, IAuthenticator, IAuthenticatorUnion, IClientConnection
from .errors import AuthenticationFailed, RequestRefused

_INVALID: Final = "invalid bearer token"
#: Authenticators read nothing of a request that L{TokenOnlyRequest} does not have.
_Ask = Callable[[Any], "UserInfo | Deferred[UserInfo | None] | None"]


@implementer(IAuthenticatorUnion)
class AuthenticatorUnion:
    """
    Asks one after the other; the first who knows the user decides.

    Bad credentials do not end the search, but when nobody finds better ones the request has failed: it is not taken
    for one without credentials. Each problem of several stands in the log.

    @ivar authenticators: Whom it asks, in that order.
    """

    def __init__(self, authenticators: Sequence[IAuthenticator], anonymous: IAuthenticator | None = None) -> None:
        """
        @param anonymous: Asked for requests without any credentials.
        """
        self.authenticators = authenticators
        self._asked: list[_Ask] = [authenticator.authenticate for authenticator in authenticators]
        self._anonymous: _Ask | None = None if anonymous is None else anonymous.authenticate

    def authenticate(
        self, request: IAuthenticationRequest | TokenOnlyRequest
    ) -> UserInfo | Deferred[UserInfo | None] | None:
        """@see: L{IAuthenticator.authenticate}."""
        failed: list[AuthenticationFailed] = []
        for number, ask in enumerate(self._asked):
            try:
                user = ask(request)
            except RequestRefused:
                raise
            except AuthenticationFailed as error:
                failed.append(error)
                continue
            if user is None:
                continue
            if isinstance(user, Deferred):
                return Deferred.fromCoroutine(self._authenticate_async(user, number, failed, request))
            return user if AUTHENTICATED in user.groups else add_authenticated_group(user)
        return self._fallback(failed, request)

    def authenticate_token(
        self, token: str, audiences: Sequence[str] = ()
    ) -> TokenAuthentication | Deferred[TokenAuthentication]:
        """
        Whose bearer token this is, as if a request had come with nothing else.

        @param audiences: For one of whom it must be meant.
        @return: A L{TokenAuthentication}, or a Deferred of one.
        """
        alone = AuthenticatorUnion(())
        alone._asked = self._asked
        request = TokenOnlyRequest(token, audiences)
        try:
            found = alone.authenticate(request)
        except AuthenticationFailed as error:
            return _failed_authentication(error)
        if isinstance(found, Deferred):
            return found.addCallbacks(request.to_authentication, _failed)
        return request.to_authentication(found)

    async def _authenticate_async(
        self,
        first: UserInfo | Deferred[UserInfo | None],
        number: int,
        failed: list[AuthenticationFailed],
        request: IAuthenticationRequest | TokenOnlyRequest,
    ) -> UserInfo | None:
        """Go on from where somebody had to wait."""
        for place, ask in enumerate(self._asked[number:]):
            try:
                user = first if place == 0 else ask(request)
                if isinstance(user, Deferred):
                    user = await user
            except RequestRefused:
                raise
            except AuthenticationFailed as error:
                failed.append(error)
                continue
            if user is not None:
                return add_authenticated_group(user)
        found = self._fallback(failed, request)
        if isinstance(found, Deferred):
            found = await found
        return found

    def _fallback(
        self, failed: list[AuthenticationFailed], request: IAuthenticationRequest | TokenOnlyRequest
    ) -> UserInfo | Deferred[UserInfo | None] | None:
        if failed:
            raise _aggregate(failed)
        return None if self._anonymous is None else self._anonymous(request)


def _aggregate(errors: Sequence[AuthenticationFailed]) -> AuthenticationFailed:
    """Several as one, as Go shows them: each once, in brackets."""
    texts = [text for error in errors for text in (error.texts or (str(error),))]
    texts = list(dict.fromkeys(texts))
    if len(texts) == 1:
        return errors[0]
    return AuthenticationFailed(f"[{', '.join(texts)}]", texts)


def add_authenticated_group(user: UserInfo) -> UserInfo:
    """C{user} as a member of C{system:authenticated}, unless it is told apart from those already."""
    if user.name == ANONYMOUS or AUTHENTICATED in user.groups or UNAUTHENTICATED in user.groups:
        return user
    return evolve(user, groups=(*user.groups, AUTHENTICATED))


@frozen
class TokenAuthentication:
    """
    What a token tells.

    @ivar user: L{None} when it is nobody's.
    @ivar audiences: Which of those that were asked for it is meant for; L{None} for a token that does not say.
    @ivar error: What is wrong with a token that is nobody's.
    """

    user: UserInfo | None
    audiences: tuple[str, ...] | None = None
    error: str = ""


@implementer(IAuthenticationRequest, IClientConnection)
class TokenOnlyRequest:
    """
    A request that has a bearer token and nothing else.

    @ivar audiences_wanted: The token must be meant for one of these audiences.
    @ivar granted_audiences: For which of them it is, as found by an authenticator whose tokens have audiences.
    """

    method = b"GET"
    path = b""
    audit_id = ""
    signed_in = False
    granted_audiences: tuple[str, ...] | None = None

    def __init__(self, token: str, audiences: Sequence[str]) -> None:
        self.audiences_wanted = tuple(audiences)
        # As in a header, what is blank at the end does not belong to it: many a token is read from a file.
        self.fields = {b"authorization": [b"Bearer " + token.rstrip().encode("utf-8", "replace")]}
        self.connection = self
        self.remembered: dict[object, Any] = {}
        self.client = None

    def peer_certificates(self) -> Sequence[X509]:
        """Return no certificate."""
        return ()

    def header(self, name: bytes) -> bytes | None:
        """Return the first value of a header field."""
        values = self.fields.get(name)
        return values[0] if values is not None else None

    def warn(self, text: str, agent: str = "-", code: int = 299) -> None:
        """There is no answer that a warning could go with."""

    def annotate(self, key: str, value: str, level: str) -> None:
        """Nor an audit event of its own."""

    def to_authentication(self, user: UserInfo | None) -> TokenAuthentication:
        """What was found, if anything was."""
        return (
            TokenAuthentication(user, self.granted_audiences)
            if user is not None
            else TokenAuthentication(None, error=_INVALID)
        )


def _failed(failure: Failure) -> TokenAuthentication:
    failure.trap(AuthenticationFailed)
    return _failed_authentication(failure.value)  # type: ignore[arg-type]


def _failed_authentication(error: BaseException) -> TokenAuthentication:
    # In the reference somebody is asked before ours who knows no token but the server's own.
    assert isinstance(error, AuthenticationFailed)
    return TokenAuthentication(None, error=str(_aggregate([AuthenticationFailed(_INVALID), error])))
