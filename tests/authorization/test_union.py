"""Tests for L{kubetwist.authorization.union}."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred, succeed
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from kubetwist.api.authorization import Decision, Verdict
from kubetwist.api.resource import UserInfo
from kubetwist.authorization import always
from kubetwist.authorization.union import (
    AuthorizerUnion,
    PrivilegedGroup,
)
from kubetwist.interfaces import IAuthorizer, IRuleResolver
from tests.authorization.questions import ALICE, pods

MASTER = UserInfo("root", groups=("a", "system:masters"))


class FixedAuthorizer:
    """An authorizer with a fixed verdict."""

    name = "Says"

    def __init__(self, decision: Decision, reason: str = "", later: bool = False) -> None:
        self.verdict = Verdict(decision, reason)
        self.later = later
        self.calls = 0

    def authorize(self, attributes: Any) -> Any:
        """Return the verdict."""
        self.calls += 1
        return succeed(self.verdict) if self.later else self.verdict


class UnionTests(SynchronousTestCase):
    """Tests for L{AuthorizerUnion}."""

    def authorize_with(self, *authorizers: Any, user: UserInfo = ALICE) -> Any:
        """Return the verdict of several authorizers."""
        union = AuthorizerUnion(authorizers)
        verifyObject(IAuthorizer, union)
        verdict = union.authorize(pods(user))
        return self.successResultOf(verdict) if isinstance(verdict, Deferred) else verdict

    def test_first_opinion(self) -> None:
        """The first verdict other than NoOpinion decides, synchronously or asynchronously."""
        for later in (False, True):
            last = FixedAuthorizer(Decision.ALLOW, later=later)
            no_opinions = FixedAuthorizer(Decision.NO_OPINION, later=later)
            deny = FixedAuthorizer(Decision.DENY, "no", later)
            self.assertIs(self.authorize_with(no_opinions, last).decision, Decision.ALLOW)
            self.assertEqual(self.authorize_with(no_opinions, deny, last), Verdict(Decision.DENY, "no"))
            self.assertEqual(last.calls, 1)

    def test_no_opinion(self) -> None:
        """Without an opinion, the verdict has all reasons."""
        for later in (False, True):
            no_opinions = [FixedAuthorizer(Decision.NO_OPINION, reason, later) for reason in ("one", "", "two")]
            self.assertEqual(self.authorize_with(*no_opinions), Verdict(Decision.NO_OPINION, "one\ntwo"))

    def test_rules(self) -> None:
        """The rules of all authorizers are listed; an authorizer without rules makes the list incomplete."""
        allow, deny = always.make_allow({}, None), always.make_deny({}, None)
        for each in (allow, deny):
            verifyObject(IRuleResolver, each)
        everything = {
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            "incomplete": False,
        }
        union = AuthorizerUnion([PrivilegedGroup(), deny, allow])
        verifyObject(IRuleResolver, union)
        self.assertEqual(union.rules_for(ALICE, "default"), everything)
        nothing = AuthorizerUnion([deny, FixedAuthorizer(Decision.ALLOW)]).rules_for(ALICE, "default")
        self.assertEqual(
            nothing,
            {
                "resourceRules": [],
                "nonResourceRules": [],
                "incomplete": True,
                "evaluationError": "Says does not support user rule resolution",
            },
        )

    def test_masters(self) -> None:
        """Members of system:masters are allowed everything before other authorizers are called."""
        deny = FixedAuthorizer(Decision.DENY)
        self.assertIs(self.authorize_with(PrivilegedGroup(), deny, user=MASTER).decision, Decision.ALLOW)
        self.assertIs(self.authorize_with(PrivilegedGroup(), deny, user=ALICE).decision, Decision.DENY)
        self.assertEqual(deny.calls, 1)
