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
        self.calls: list[AuthorizerAttributes] = []

    def authorize(self, attributes: AuthorizerAttributes) -> Verdict | Deferred[Verdict]:
        """Return the answer."""
        self.calls.append(attributes)
        return self.answer


class DecideTests(SynchronousTestCase):
    """The verdict of an authorizer is awaited."""

    request_attributes = AuthorizerAttributes(UserInfo("alice"), "get")

    def test_immediately(self) -> None:
        """A verdict is returned, and the authorizer is called once, with the attributes."""
        authorizer = Authorizer(ALLOWED)
        self.assertIs(
            ALLOWED, self.successResultOf(Deferred.fromCoroutine(decide(authorizer, self.request_attributes)))
        )
        self.assertEqual([self.request_attributes], authorizer.calls)

    def test_later(self) -> None:
        """A Deferred verdict is awaited."""
        answer: Deferred[Verdict] = Deferred()
        result = Deferred.fromCoroutine(decide(Authorizer(answer), self.request_attributes))
        self.assertNoResult(result)
        answer.callback(ALLOWED)
        self.assertIs(ALLOWED, self.successResultOf(result))

    def test_failure(self) -> None:
        """The failure of an authorizer is raised."""
        result = Deferred.fromCoroutine(decide(Authorizer(fail(ValueError("broken"))), self.request_attributes))
        self.failureResultOf(result, ValueError)
