"""Tests for L{kubetwist.admission.decisions}."""

from __future__ import annotations

from twisted.internet.defer import Deferred, fail
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer

from kubetwist.admission.decisions import decide
from kubetwist.api.authorization import AuthorizerAttributes, Decision, Verdict
from kubetwist.api.resource import UserInfo
from kubetwist.interfaces import IAuthorizer

ALLOWED = Verdict(Decision.ALLOW)


@implementer(IAuthorizer)
class Authorizer:
    """An authorizer with one answer."""

    name = "Test"

    def __init__(self, answer: Verdict | Deferred[Verdict]) -> None:
        self.answer = answer
        self.asked: list[AuthorizerAttributes] = []

    def authorize(self, attributes: AuthorizerAttributes) -> Verdict | Deferred[Verdict]:
        """Return the answer."""
        self.asked.append(attributes)
        return self.answer


class DecideTests(SynchronousTestCase):
    """The verdict of an authorizer is awaited."""

    question = AuthorizerAttributes(UserInfo("alice"), "get")

    def test_immediately(self) -> None:
        """A verdict is returned, and the authorizer is called once, with the attributes."""
        authorizer = Authorizer(ALLOWED)
        self.assertIs(ALLOWED, self.successResultOf(Deferred.fromCoroutine(decide(authorizer, self.question))))
        self.assertEqual([self.question], authorizer.asked)

    def test_later(self) -> None:
        """A Deferred verdict is awaited."""
        answer: Deferred[Verdict] = Deferred()
        found = Deferred.fromCoroutine(decide(Authorizer(answer), self.question))
        self.assertNoResult(found)
        answer.callback(ALLOWED)
        self.assertIs(ALLOWED, self.successResultOf(found))

    def test_failure(self) -> None:
        """The failure of an authorizer is raised."""
        found = Deferred.fromCoroutine(decide(Authorizer(fail(ValueError("broken"))), self.question))
        self.failureResultOf(found, ValueError)
