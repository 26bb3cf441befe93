"""Several authenticators as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import evolve

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure
from zope.interface import implementer

from ..api.resource import UserInfo
from ..api.users import ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED
from ..interfaces import IAuthenticator
from .errors import AuthenticationFailed


@implementer(IAuthenticator)
class AuthenticatorUnion:
    """
    Asks one after the other; the first who knows the user decides.

    Bad credentials do not end the search, but when nobody finds better ones the request has failed: it is not taken
    for one without credentials.
    """

    def __init__(self, authenticators: Sequence[Any], last: Any = None) -> None:
        """
        @param last: Asked for requests without any credentials.
        """
        self._asked = [authenticator.authenticate for authenticator in authenticators]
        self._last = None if last is None else last.authenticate

    def authenticate(self, request: Any) -> Any:
        """@see: L{IAuthenticator.authenticate}."""
        failed: AuthenticationFailed | None = None
        for number, ask in enumerate(self._asked):
            try:
                user = ask(request)
            except AuthenticationFailed as error:
                failed = failed or error
                continue
            if user is None:
                continue
            if isinstance(user, Deferred):
                return Deferred.fromCoroutine(self._slowly(user, number, failed, request))
            return user if AUTHENTICATED in user.groups else authenticated(user)
        return self._at_last(failed, request)

    def user_of_token(self, token: str) -> Any:
        """
        Whose bearer token this is, as if a request had come with nothing else.

        @return: The user, L{None} when it is nobody's, or a Deferred of either.
        """
        alone = AuthenticatorUnion(())
        alone._asked = self._asked
        try:
            found = alone.authenticate(_TokenAlone(token))
        except AuthenticationFailed:
            return None
        if isinstance(found, Deferred):
            found.addErrback(_nobody)
        return found

    async def _slowly(
        self, first: Any, number: int, failed: AuthenticationFailed | None, request: Any
    ) -> UserInfo | None:
        """Go on from where somebody had to wait."""
        for place, ask in enumerate(self._asked[number:]):
            try:
                user = first if place == 0 else ask(request)
                if isinstance(user, Deferred):
                    user = await user
            except AuthenticationFailed as error:
                failed = failed or error
                continue
            if user is not None:
                return authenticated(user)
        found = self._at_last(failed, request)
        if isinstance(found, Deferred):
            found = await found
        return found  # type: ignore[no-any-return]

    def _at_last(self, failed: AuthenticationFailed | None, request: Any) -> Any:
        if failed is not None:
            raise failed
        return None if self._last is None else self._last(request)


def authenticated(user: UserInfo) -> UserInfo:
    """C{user} as a member of C{system:authenticated}, unless it is told apart from those already."""
    if user.name == ANONYMOUS or AUTHENTICATED in user.groups or UNAUTHENTICATED in user.groups:
        return user
    return evolve(user, groups=(*user.groups, AUTHENTICATED))


class _TokenAlone:
    """A request that has a bearer token and nothing else."""

    def __init__(self, token: str) -> None:
        self.fields = {b"authorization": [b"Bearer " + token.encode("utf-8", "replace")]}
        self.connection = self
        self.remembered: dict[object, Any] = {}
        self.transport = None

    def warn(self, text: str) -> None:
        """There is no answer that a warning could go with."""


def _nobody(failure: Failure) -> None:
    failure.trap(AuthenticationFailed)
