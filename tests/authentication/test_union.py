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


class Says:
    """An authenticator that has one answer."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked = 0

    def authenticate(self, request: Any) -> Any:
        """Give it."""
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class UnionTests(SynchronousTestCase):
    """Tests for L{AuthenticatorUnion}."""

    alice = UserInfo("alice", groups=("system:authenticated",))

    def ask(self, *answers: Any, anonymous: Any = None) -> Any:
        """What several say together."""
        union = AuthenticatorUnion([Says(answer) for answer in answers], anonymous)
        verifyObject(IAuthenticator, union)
        result = union.authenticate(Request())
        return self.successResultOf(result) if isinstance(result, Deferred) else result

    def test_first_who_knows(self) -> None:
        """The first who knows the user decides, and the others are not asked."""
        other = Says(UserInfo("bob"))
        union = AuthenticatorUnion([Says(None), Says(self.alice), other])
        self.assertIs(union.authenticate(Request()), self.alice)
        self.assertEqual(other.asked, 0)

    def test_group(self) -> None:
        """Whoever is known is an authenticated user."""
        self.assertEqual(self.ask(UserInfo("alice", groups=("a",))).groups, ("a", "system:authenticated"))
        self.assertEqual(self.ask(succeed(UserInfo("alice"))).groups, ("system:authenticated",))

    def test_good_after_bad(self) -> None:
        """Bad credentials do no harm where there are good ones, too."""
        bad = AuthenticationFailed("bad")
        self.assertIs(self.ask(bad, self.alice), self.alice)
        self.assertEqual(self.ask(bad, succeed(None), fail(bad), self.alice), self.alice)

    def test_bad_is_not_anonymous(self) -> None:
        """A request with bad credentials is not one without any."""
        bad = AuthenticationFailed("bad")
        union = AuthenticatorUnion([Says(bad), Says(None)], Anonymous())
        self.assertRaises(AuthenticationFailed, union.authenticate, Request())
        union = AuthenticatorUnion([Says(fail(bad)), Says(None)], Anonymous())
        self.failureResultOf(union.authenticate(Request()), AuthenticationFailed)

    def test_all_problems(self) -> None:
        """The log gets to know every problem, each once."""
        first, second = AuthenticationFailed("bad"), AuthenticationFailed("worse")
        for asked in ([first, None, second, first], [fail(first), second, fail(first)]):
            union = AuthenticatorUnion([Says(answer) for answer in asked], Anonymous())
            try:
                result = union.authenticate(Request())
                error: Any = self.failureResultOf(result).value
            except AuthenticationFailed as failed:
                error = failed
            self.assertEqual(str(error), "[bad, worse]")

    def test_refused(self) -> None:
        """Where something is wrong with the request nobody else is asked."""
        for refusal in (RequestRefused("odd"), fail(RequestRefused("odd"))):
            other = Says(self.alice)
            union = AuthenticatorUnion([Says(succeed(None)), Says(refusal), other])
            self.failureResultOf(union.authenticate(Request()), RequestRefused)
            self.assertEqual(other.asked, 0)
        union = AuthenticatorUnion([Says(RequestRefused("odd")), Says(self.alice)])
        self.assertRaises(RequestRefused, union.authenticate, Request())

    def test_nobody(self) -> None:
        """A request without credentials is the last one's, if there is one."""
        self.assertEqual(self.ask(None, anonymous=Anonymous()).name, "system:anonymous")
        self.assertEqual(self.ask(succeed(None), anonymous=Anonymous()).groups, ("system:unauthenticated",))
        self.assertIsNone(self.ask(None))

    def test_unclaimed_token(self) -> None:
        """A token that nobody knows is refused, not taken for anonymous."""
        union = AuthenticatorUnion([Says(None), InvalidTokenAuthenticator()], Anonymous())
        self.assertRaises(AuthenticationFailed, union.authenticate, Request("Bearer x"))

    def test_user_of_token(self) -> None:
        """A token can be looked up without a request; what nobody knows, and no token at all, is nobody's."""
        path = Path(self.mktemp())
        path.write_text("t1,alice,u1\n")
        union = AuthenticatorUnion([TokenFile.read(path), InvalidTokenAuthenticator()], Anonymous())
        alice = UserInfo("alice", "u1", ("system:authenticated",))
        self.assertEqual(union.authenticate_token("t1"), TokenAuthentication(alice))
        # As from a file: what is blank at the end of a header does not belong to it.
        self.assertEqual(union.authenticate_token("t1\n"), TokenAuthentication(alice))
        nobody = TokenAuthentication(None, error="invalid bearer token")
        self.assertEqual(union.authenticate_token("t2"), nobody)
        self.assertEqual(union.authenticate_token(""), nobody)
        later = AuthenticatorUnion([Says(succeed(alice))])
        self.assertEqual(self.successResultOf(later.authenticate_token("t1")), TokenAuthentication(alice))
        later = AuthenticatorUnion([Says(fail(AuthenticationFailed("bad")))])
        found = self.successResultOf(later.authenticate_token("t1"))
        self.assertEqual(found, TokenAuthentication(None, error="[invalid bearer token, bad]"))
