"""Tests for L{kubetwist.authorization.always}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from kubetwist.api.authorization import Decision, Verdict
from kubetwist.api.resource import UserInfo
from kubetwist.authorization import always
from kubetwist.interfaces import IAuthorizer
from tests.authorization.questions import ALICE, pods

ANONYMOUS = UserInfo("system:anonymous", groups=("system:unauthenticated",))


class AlwaysTests(SynchronousTestCase):
    """Tests for L{always}."""

    def test_allow(self) -> None:
        """AlwaysAllow allows every request."""
        allow = always.make_allow({}, None)
        verifyObject(IAuthorizer, allow)
        self.assertIs(allow.authorize(pods(ANONYMOUS)).decision, Decision.ALLOW)
        self.assertEqual(allow.name, "AlwaysAllow")

    def test_deny(self) -> None:
        """AlwaysDeny has no opinion and a reason."""
        deny = always.make_deny({}, None)
        self.assertEqual(deny.authorize(pods(ALICE)), Verdict(Decision.NO_OPINION, "Everything is forbidden."))
