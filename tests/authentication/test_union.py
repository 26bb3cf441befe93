"""Tests for L{kubetwist.authentication.union}."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred, fail, succeed
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from kubetwist.api.resource import UserInfo
from kubetwist.authentication.anonymous import Anonymous
from kubetwist.authentication.bearer import InvalidTokenAuthenticator
from kubetwist.authentication.errors import AuthenticationFailed, RequestRefused
from kubetwist.authentication.tokenfile import TokenFile
from kubetwist.authentication.union import AuthenticatorUnion, TokenAuthentication
from kubetwist.interfaces import IAuthenticator
from tests.authentication.requests import Request


class FixedAuthenticator:
    """An authenticator with a fixed result."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.calls = 0

    def authenticate(self, request: Any) -> Any:
        """Return or raise the result."""
        self.calls += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class UnionTests(SynchronousTestCase):
    """Tests for L{AuthenticatorUnion}."""

    alice = UserInfo("alice", groups=("system:authenticated",))

    def combine(self, *answers: Any, anonymous: Any = None) -> Any:
        """Return the result of several authenticators."""
        union = AuthenticatorUnion([FixedAuthenticator(answer) for answer in answers], anonymous)
        verifyObject(IAuthenticator, union)
        result = union.authenticate(Request())
        return self.successResultOf(result) if isinstance(result, Deferred) else result

    def test_first_user_decides(self) -> None:
        """The first authenticator that returns a user decides, and the following ones are not called."""
        other = FixedAuthenticator(UserInfo("bob"))
        union = AuthenticatorUnion([FixedAuthenticator(None), FixedAuthenticator(self.alice), other])
        self.assertIs(union.authenticate(Request()), self.alice)
        self.assertEqual(other.calls, 0)

    def test_group(self) -> None:
        """Authenticated users are in system:authenticated."""
        self.assertEqual(self.combine(UserInfo("alice", groups=("a",))).groups, ("a", "system:authenticated"))
        self.assertEqual(self.combine(succeed(UserInfo("alice"))).groups, ("system:authenticated",))

    def test_valid_after_invalid(self) -> None:
        """After invalid credentials a following authenticator can authenticate the request."""
        bad = AuthenticationFailed("bad")
        self.assertIs(self.combine(bad, self.alice), self.alice)
        self.assertEqual(self.combine(bad, succeed(None), fail(bad), self.alice), self.alice)

    def test_invalid_is_not_anonymous(self) -> None:
        """A request with invalid credentials is not anonymous."""
        bad = AuthenticationFailed("bad")
        union = AuthenticatorUnion([FixedAuthenticator(bad), FixedAuthenticator(None)], Anonymous())
        self.assertRaises(AuthenticationFailed, union.authenticate, Request())
        union = AuthenticatorUnion([FixedAuthenticator(fail(bad)), FixedAuthenticator(None)], Anonymous())
        self.failureResultOf(union.authenticate(Request()), AuthenticationFailed)

    def test_all_errors(self) -> None:
        """The error contains the text of each error once."""
        first, second = AuthenticationFailed("bad"), AuthenticationFailed("worse")
        for calls in ([first, None, second, first], [fail(first), second, fail(first)]):
            union = AuthenticatorUnion([FixedAuthenticator(answer) for answer in calls], Anonymous())
            try:
                result = union.authenticate(Request())
                error: Any = self.failureResultOf(result).value
            except AuthenticationFailed as failed:
                error = failed
            self.assertEqual(str(error), "[bad, worse]")

    def test_rejected(self) -> None:
        """A rejected request ends the authentication."""
        for rejection in (RequestRefused("odd"), fail(RequestRefused("odd"))):
            other = FixedAuthenticator(self.alice)
            union = AuthenticatorUnion([FixedAuthenticator(succeed(None)), FixedAuthenticator(rejection), other])
            self.failureResultOf(union.authenticate(Request()), RequestRefused)
            self.assertEqual(other.calls, 0)
        union = AuthenticatorUnion([FixedAuthenticator(RequestRefused("odd")), FixedAuthenticator(self.alice)])
        self.assertRaises(RequestRefused, union.authenticate, Request())

    def test_anonymous(self) -> None:
        """A request without credentials is passed to the anonymous authenticator, if there is one."""
        self.assertEqual(self.combine(None, anonymous=Anonymous()).name, "system:anonymous")
        self.assertEqual(self.combine(succeed(None), anonymous=Anonymous()).groups, ("system:unauthenticated",))
        self.assertIsNone(self.combine(None))

    def test_unknown_token(self) -> None:
        """A token that no authenticator accepts is rejected, not anonymous."""
        union = AuthenticatorUnion([FixedAuthenticator(None), InvalidTokenAuthenticator()], Anonymous())
        self.assertRaises(AuthenticationFailed, union.authenticate, Request("Bearer x"))

    def test_authenticate_token(self) -> None:
        """A token can be authenticated without a request; unknown and empty tokens are not authenticated."""
        path = Path(self.mktemp())
        path.write_text("t1,alice,u1\n")
        union = AuthenticatorUnion([TokenFile.read(path), InvalidTokenAuthenticator()], Anonymous())
        alice = UserInfo("alice", "u1", ("system:authenticated",))
        self.assertEqual(union.authenticate_token("t1"), TokenAuthentication(alice))
        # As from a file: trailing white space is removed.
        self.assertEqual(union.authenticate_token("t1\n"), TokenAuthentication(alice))
        unknown = TokenAuthentication(None, error="invalid bearer token")
        self.assertEqual(union.authenticate_token("t2"), unknown)
        self.assertEqual(union.authenticate_token(""), unknown)
        later = AuthenticatorUnion([FixedAuthenticator(succeed(alice))])
        self.assertEqual(self.successResultOf(later.authenticate_token("t1")), TokenAuthentication(alice))
        later = AuthenticatorUnion([FixedAuthenticator(fail(AuthenticationFailed("bad")))])
        outcome = self.successResultOf(later.authenticate_token("t1"))
        self.assertEqual(outcome, TokenAuthentication(None, error="[invalid bearer token, bad]"))
