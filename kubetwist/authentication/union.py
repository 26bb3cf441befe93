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
#: Authenticators use only those attributes of a request that L{TokenOnlyRequest} has.
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
        @param anonymous: The authenticator of requests without credentials; L{None} for none.
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
        Authenticate a bearer token, as for a request that has no other credentials (C{AuthenticateToken}).

        @param token: The token.
        @param audiences: The token must be valid for one of these audiences; empty for those of this server.
        @return: The result, or a Deferred of it.
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
        """Continue with an authenticator that has returned a Deferred."""
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
    """Join errors as Go's C{errors.NewAggregate}: distinct texts in brackets."""
    texts = [text for error in errors for text in (error.texts or (str(error),))]
    texts = list(dict.fromkeys(texts))
    if len(texts) == 1:
        return errors[0]
    return AuthenticationFailed(f"[{', '.join(texts)}]", texts)


def add_authenticated_group(user: UserInfo) -> UserInfo:
    """
    Return C{user} with the group C{system:authenticated}; anonymous and unauthenticated users are unchanged.
    (C{group.NewAuthenticatedGroupAdder}).
    """
    if user.name == ANONYMOUS or AUTHENTICATED in user.groups or UNAUTHENTICATED in user.groups:
        return user
    return evolve(user, groups=(*user.groups, AUTHENTICATED))


@frozen
class TokenAuthentication:
    """
    The result of the authentication of a token (C{authenticator.Response}).

    @ivar user: The user; L{None} if the token is invalid.
    @ivar audiences: The requested audiences for which the token is valid; L{None} for a token without audiences.
    @ivar error: The error text for an invalid token.
    """

    user: UserInfo | None
    audiences: tuple[str, ...] | None = None
    error: str = ""


@implementer(IAuthenticationRequest, IClientConnection)
class TokenOnlyRequest:
    """
    A stand-in for a request that carries only a bearer token, for TokenReviews and sessions.

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
        # Trailing white space is removed, as in a header: tokens are often read from files.
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
        """Ignore the warning: there is no response."""

    def annotate(self, key: str, value: str, level: str) -> None:
        """Ignore the annotation: there is no audit event."""

    def to_authentication(self, user: UserInfo | None) -> TokenAuthentication:
        """Return the result for the user that an authenticator returned."""
        return (
            TokenAuthentication(user, self.granted_audiences)
            if user is not None
            else TokenAuthentication(None, error=_INVALID)
        )


def _failed(failure: Failure) -> TokenAuthentication:
    failure.trap(AuthenticationFailed)
    return _failed_authentication(failure.value)  # type: ignore[arg-type] # trap() raises all other errors


def _failed_authentication(error: BaseException) -> TokenAuthentication:
    # In the reference, an authenticator for the loopback token comes first, whose error is part of the text.
    assert isinstance(error, AuthenticationFailed)
    return TokenAuthentication(None, error=str(_aggregate([AuthenticationFailed(_INVALID), error])))
