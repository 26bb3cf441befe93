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
#: Authenticators use only the attributes of a request that L{TokenOnlyRequest} has.
_Authenticate = Callable[[Any], "UserInfo | Deferred[UserInfo | None] | None"]


@implementer(IAuthenticatorUnion)
class AuthenticatorUnion:
    """
    Calls authenticators in order; the first one that returns a user decides (C{union.authRequestHandler}).

    After invalid credentials the next authenticators are called. If none of them returns a user, authentication fails
    with all errors; the request is not treated as one without credentials.

    @ivar authenticators: The authenticators, in the order of their calls.
    """

    def __init__(self, authenticators: Sequence[IAuthenticator], anonymous: IAuthenticator | None = None) -> None:
        """
        @param anonymous: The authenticator of requests without credentials; L{None} for none.
        """
        self.authenticators = authenticators
        self._methods: list[_Authenticate] = [authenticator.authenticate for authenticator in authenticators]
        self._anonymous: _Authenticate | None = None if anonymous is None else anonymous.authenticate

    def authenticate(
        self, request: IAuthenticationRequest | TokenOnlyRequest
    ) -> UserInfo | Deferred[UserInfo | None] | None:
        """@see: L{IAuthenticator.authenticate}."""
        errors: list[AuthenticationFailed] = []
        for number, authenticate in enumerate(self._methods):
            try:
                user = authenticate(request)
            except RequestRefused:
                raise
            except AuthenticationFailed as error:
                errors.append(error)
                continue
            if user is None:
                continue
            # A check for a Deferred alone takes as long as the lookup of a token.
            if type(user) is not UserInfo and isinstance(user, Deferred):
                return Deferred.fromCoroutine(self._authenticate_async(user, number, errors, request))
            return user if AUTHENTICATED in user.groups else add_authenticated_group(user)
        return self._fallback(errors, request)

    def authenticate_token(
        self, token: str, audiences: Sequence[str] = ()
    ) -> TokenAuthentication | Deferred[TokenAuthentication]:
        """
        Authenticate a bearer token, as for a request that has no other credentials (C{AuthenticateToken}).

        @param token: The token.
        @param audiences: The token must be valid for one of these audiences; empty for the audiences of this server.
        @return: The result, or a Deferred of it.
        """
        without_anonymous = AuthenticatorUnion(())
        without_anonymous._methods = self._methods
        request = TokenOnlyRequest(token, audiences)
        try:
            user = without_anonymous.authenticate(request)
        except AuthenticationFailed as error:
            return _failed_authentication(error)
        if isinstance(user, Deferred):
            return user.addCallbacks(request.to_authentication, _failed)
        return request.to_authentication(user)

    async def _authenticate_async(
        self,
        first: UserInfo | Deferred[UserInfo | None],
        number: int,
        errors: list[AuthenticationFailed],
        request: IAuthenticationRequest | TokenOnlyRequest,
    ) -> UserInfo | None:
        """Continue with the authenticator that has returned a Deferred."""
        for index, authenticate in enumerate(self._methods[number:]):
            try:
                user = first if index == 0 else authenticate(request)
                if isinstance(user, Deferred):
                    user = await user
            except RequestRefused:
                raise
            except AuthenticationFailed as error:
                errors.append(error)
                continue
            if user is not None:
                return add_authenticated_group(user)
        fallback = self._fallback(errors, request)
        if isinstance(fallback, Deferred):
            fallback = await fallback
        return fallback

    def _fallback(
        self, errors: list[AuthenticationFailed], request: IAuthenticationRequest | TokenOnlyRequest
    ) -> UserInfo | Deferred[UserInfo | None] | None:
        if errors:
            raise _aggregate(errors)
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
    Return C{user} with the group C{system:authenticated} (C{group.NewAuthenticatedGroupAdder}).

    Anonymous and unauthenticated users are unchanged.
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

    @ivar requested_audiences: The token must be valid for one of these audiences.
    @ivar granted_audiences: The requested audiences for which the token is valid; L{None} for a token without
        audiences.
    """

    method = b"GET"
    path = b""
    audit_id = ""
    signed_in = False
    granted_audiences: tuple[str, ...] | None = None

    def __init__(self, token: str, audiences: Sequence[str]) -> None:
        self.requested_audiences = tuple(audiences)
        # As in a header, trailing white space is removed: tokens are often read from files.
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
