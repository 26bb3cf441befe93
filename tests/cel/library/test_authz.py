"""Tests for L{kubetwist.cel.library.authz}."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.authorization import AuthorizerAttributes, Decision, Verdict
from kubetwist.api.resource import UserInfo
from kubetwist.api.selectors import Requirement
from kubetwist.cel.environment import Program
from kubetwist.cel.errors import EvaluationError
from kubetwist.cel.library.authz import AUTHORIZER_TYPE, RESOURCE_CHECK_TYPE, Authorize, Authorizer, evaluate
from kubetwist.cel.library.environments import kubernetes_environment

_ALICE = UserInfo("alice", groups=("staff",))
_POD = ("", "pods", "status", "prod", "web-0")


def _compiled(text: str) -> Program:
    variables = {"authorizer": AUTHORIZER_TYPE, "authorizer.requestResource": RESOURCE_CHECK_TYPE}
    return kubernetes_environment().extend(variables).compile(text)


class AuthzTests(SynchronousTestCase):
    """Tests for expressions with authorization checks."""

    def setUp(self) -> None:
        """Record the checks; only C{get} is allowed."""
        self.asked: list[AuthorizerAttributes] = []

    def authorize(self, attributes: AuthorizerAttributes) -> Verdict:
        """Allow the verb C{get}."""
        self.asked.append(attributes)
        decision = Decision.ALLOW if attributes.verb == "get" else Decision.NO_OPINION
        return Verdict(decision, f"{attributes.user.name} may {attributes.verb}")

    def start(self, text: str, authorize: Authorize | None = None, **limits: Any) -> Deferred[Any]:
        """Start to evaluate an expression for Alice."""
        authorizer = Authorizer(_ALICE, authorize or self.authorize)
        variables = {
            "authorizer": authorizer,
            "authorizer.requestResource": authorizer.request_resource(*_POD),
        }
        return Deferred.fromCoroutine(evaluate(_compiled(text), variables, **limits))

    def value(self, text: str, authorize: Authorize | None = None) -> Any:
        """Return the value of an expression for Alice."""
        return self.successResultOf(self.start(text, authorize))[0]

    def test_resource(self) -> None:
        """The authorizer gets all attributes of a check of a resource."""
        self.assertIs(
            self.value(
                "authorizer.group('apps').resource('deployments').subresource('scale').namespace('prod').name('web')"
                ".fieldSelector('spec.nodeName=n').labelSelector('app=web').check('get').allowed()"
            ),
            True,
        )
        expected = AuthorizerAttributes(
            _ALICE,
            "get",
            group="apps",
            version="*",
            resource="deployments",
            subresource="scale",
            namespace="prod",
            name="web",
            field_terms=(("spec.nodeName", "n", True),),
            label_terms=(Requirement("app", "=", ("web",)),),
        )
        self.assertEqual(self.asked, [expected])

    def test_path(self) -> None:
        """A check of a path is a check of a non-resource request."""
        self.assertIs(self.value("authorizer.path('/healthz').check('get').allowed()"), True)
        self.assertEqual(self.asked, [AuthorizerAttributes(_ALICE, "get", path="/healthz", is_resource_request=False)])

    def test_request_resource(self) -> None:
        """C{authorizer.requestResource} is a check of the resource of the request."""
        self.assertIs(self.value("authorizer.requestResource.check('delete').allowed()"), False)
        asked = self.asked[0]
        self.assertEqual((asked.group, asked.resource, asked.subresource, asked.namespace, asked.name), _POD)

    def test_service_account(self) -> None:
        """A check may be for a service account."""
        self.assertIs(
            self.value("authorizer.serviceAccount('ns', 'bot').group('').resource('pods').check('get').allowed()"), True
        )
        groups = ("system:serviceaccounts", "system:serviceaccounts:ns")
        self.assertEqual(self.asked[0].user, UserInfo("system:serviceaccount:ns:bot", groups=groups))

    def test_reasons(self) -> None:
        """A decision has a reason, and an error only if there was one."""
        self.assertEqual(
            self.value("authorizer.requestResource.check('list').reason() + authorizer.path('/').check('get').error()"),
            "alice may list",
        )

    def test_bad_selectors(self) -> None:
        """Invalid selectors are ignored."""
        self.value("authorizer.requestResource.fieldSelector('!').labelSelector('!!').check('get').allowed()")
        self.assertEqual((self.asked[0].field_terms, self.asked[0].label_terms), ((), ()))

    def test_checked_once(self) -> None:
        """The same check in an expression calls the authorizer only once."""
        self.value(
            "authorizer.requestResource.check('get').allowed()"
            " && authorizer.requestResource.check('get').reason() != ''"
        )
        self.assertEqual(len(self.asked), 1)

    def test_failures(self) -> None:
        """Checks without a resource, a path or a valid service account are errors."""
        for text, message in {
            "authorizer.path(' ').check('get').allowed()": "path must not be empty",
            "authorizer.group('').resource('').check('get').allowed()": "resource must not be empty",
            "authorizer.serviceAccount('ns', 'b@d').path('/').check('get').allowed()": "Invalid service account name",
            "authorizer.serviceAccount('n.s', 'b').path('x').check('a').allowed()": "Invalid service account namespace",
            "authorizer == authorizer": "no such overload",
        }.items():
            failure = self.failureResultOf(self.start(text), EvaluationError)
            self.assertEqual(failure.value.message, message)

    def test_pending(self) -> None:
        """A pending decision is awaited and stored, and no check is repeated."""
        answers: list[Deferred[Verdict]] = []

        def authorize(attributes: AuthorizerAttributes) -> Deferred[Verdict]:
            answers.append(Deferred())
            return answers[-1]

        result = self.start(
            "!authorizer.path('/a').check('get').allowed() || authorizer.path('/b').check('get').allowed()", authorize
        )
        self.assertNoResult(result)
        answers[0].callback(Verdict(Decision.ALLOW))
        self.assertNoResult(result)
        answers[1].callback(Verdict(Decision.DENY))
        value, cost = self.successResultOf(result)
        self.assertIs(value, False)
        self.assertEqual(len(answers), 2)
        # The cost of one evaluation: two variables, paths, checks and accessors, and a negation.
        self.assertEqual(cost, 2 * 350_003 + 1)

    def test_errors(self) -> None:
        """The error of an authorizer, immediate or later, is the error of the decision."""

        def at_once(attributes: AuthorizerAttributes) -> Verdict:
            raise RuntimeError("no idea")

        def later(attributes: AuthorizerAttributes) -> Deferred[Verdict]:
            failed: Deferred[Verdict] = Deferred()
            failed.errback(RuntimeError("no idea"))
            return failed

        def silent(attributes: AuthorizerAttributes) -> Verdict:
            return Verdict(Decision.NO_OPINION, "", "no idea")

        check = "authorizer.path('/').check('get')"
        for authorize in (at_once, later, silent):
            self.assertEqual(self.value(f"{check}.errored() ? {check}.error() : ''", authorize), "no idea")
            self.assertIs(self.value(f"{check}.allowed()", authorize), False)

    def test_cancelled(self) -> None:
        """Cancelling the evaluation cancels the pending check."""
        cancelled: list[object] = []

        def authorize(attributes: AuthorizerAttributes) -> Deferred[Verdict]:
            return Deferred(cancelled.append)

        result = self.start("authorizer.path('/').check('get').allowed()", authorize)
        result.cancel()
        self.failureResultOf(result, CancelledError)
        self.assertEqual(len(cancelled), 1)

    def test_cost(self) -> None:
        """The cost limit does not allow three checks."""
        check = "authorizer.path('/{}').check('get').allowed()"
        failure = self.failureResultOf(self.start(" && ".join(map(check.format, "abc"))), EvaluationError)
        self.assertTrue(failure.value.cost_exceeded)
