"""Tests for L{kubetwist.authorization.webhook}; its HTTP requests are in L{tests.server.test_authwebhooks}."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.logger import LogLevel, globalLogPublisher
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from kubetwist.api.authorization import AuthorizerAttributes, Decision, Verdict
from kubetwist.api.resource import UserInfo
from kubetwist.api.selectors import parse_field_selector, parse_label_selector
from kubetwist.authorization import webhook
from kubetwist.authorization.union import AuthorizerUnion
from kubetwist.authorization.webhook import (
    WebhookAuthorizer,
    WebhookRules,
    review_spec,
)
from kubetwist.client.errors import CallError
from kubetwist.client.httpclient import Response
from kubetwist.client.retrying import Backoff
from kubetwist.interfaces import IAuthorizer, IRuleResolver
from tests.authentication.test_webhook import UNDISCLOSED, Webhook

JANE = UserInfo("jane", "7", ("a", "b"), {"k": ("v",)})


def pods(name: str = "", **other_attributes: Any) -> AuthorizerAttributes:
    """Return the attributes of a get of a pod by jane."""
    return AuthorizerAttributes(
        JANE, "get", version="v1", resource="pods", namespace="ns", name=name, **other_attributes
    )


class SpecTests(SynchronousTestCase):
    """Tests for L{review_spec}."""

    def test_resource(self) -> None:
        """The review has the resource and the user; empty fields are omitted."""
        self.assertEqual(
            review_spec(pods("web")),
            {
                "resourceAttributes": {
                    "namespace": "ns",
                    "verb": "get",
                    "version": "v1",
                    "resource": "pods",
                    "name": "web",
                },
                "user": "jane",
                "groups": ["a", "b"],
                "extra": {"k": ["v"]},
                "uid": "7",
            },
        )

    def test_path(self) -> None:
        """The review of a path has nonResourceAttributes."""
        request_attributes = AuthorizerAttributes(UserInfo("jane"), "get", path="/metrics", is_resource_request=False)
        self.assertEqual(
            review_spec(request_attributes),
            {"nonResourceAttributes": {"path": "/metrics", "verb": "get"}, "user": "jane"},
        )

    def test_selectors(self) -> None:
        """Selectors are requirements; terms with unsupported operators are omitted."""
        request_attributes = pods(
            field_terms=parse_field_selector("spec.nodeName=n,status.phase!=Running"),
            label_terms=parse_label_selector("a=1,b!=2,c in (3,4),d notin (5),e,!f,g>7").requirements,
        )
        resource = review_spec(request_attributes)["resourceAttributes"]
        self.assertEqual(
            resource["fieldSelector"]["requirements"],
            [
                {"key": "spec.nodeName", "operator": "In", "values": ["n"]},
                {"key": "status.phase", "operator": "NotIn", "values": ["Running"]},
            ],
        )
        self.assertEqual(
            resource["labelSelector"]["requirements"],
            [
                {"key": "a", "operator": "In", "values": ["1"]},
                {"key": "b", "operator": "NotIn", "values": ["2"]},
                {"key": "c", "operator": "In", "values": ["3", "4"]},
                {"key": "d", "operator": "NotIn", "values": ["5"]},
                {"key": "e", "operator": "Exists"},
                {"key": "f", "operator": "DoesNotExist"},
            ],
        )


class WebhookAuthorizerTests(SynchronousTestCase):
    """Tests for L{WebhookAuthorizer}."""

    def make(self, answer: Callable[[dict[str, Any]], Any], **rules: Any) -> WebhookAuthorizer:
        """Create an authorizer with a scripted webhook."""
        self.clock = Clock()
        self.webhook = Webhook(answer)
        rules.setdefault("version", "v1")
        return WebhookAuthorizer(self.clock, self.webhook, WebhookRules(**rules), Backoff(0.5, 1.5, 0.0, 3))

    def decide(self, authorizer: Any, request_attributes: AuthorizerAttributes | None = None) -> Any:
        """Return the verdict."""
        verdict = authorizer.authorize(request_attributes or pods())
        return self.successResultOf(verdict) if isinstance(verdict, Deferred) else verdict

    def logged_errors(self) -> list[str]:
        """Return the logged errors."""
        lines: list[str] = []

        def observe(event: Any) -> None:
            if event["log_level"] is LogLevel.error:
                lines.append(event["log_format"].format(**event))

        globalLogPublisher.addObserver(observe)
        self.addCleanup(globalLogPublisher.removeObserver, observe)
        return lines

    def test_interfaces(self) -> None:
        """The authorizer does not support rule resolution."""
        authorizer = self.make(lambda spec: {})
        verifyObject(IAuthorizer, authorizer)
        verifyObject(IRuleResolver, authorizer)
        status = AuthorizerUnion([authorizer]).rules_for(JANE, "ns")
        self.assertTrue(status["incomplete"])
        self.assertEqual(status["evaluationError"], "webhook authorizer does not support user rule resolution")

    def test_verdicts(self) -> None:
        """The webhook allows, denies or has no opinion, with its reason."""
        for status, verdict in (
            ({"allowed": True, "reason": "nice"}, Verdict(Decision.ALLOW, "nice")),
            ({"allowed": False, "denied": True, "reason": "no"}, Verdict(Decision.DENY, "no")),
            ({"allowed": False, "reason": "who?"}, Verdict(Decision.NO_OPINION, "who?")),
            ({}, Verdict(Decision.NO_OPINION)),
            (
                {"allowed": True, "denied": True},
                Verdict(Decision.DENY, "", "webhook subject access review returned both allow and deny response"),
            ),
        ):
            self.assertEqual(self.decide(self.make(lambda spec, status=status: status)), verdict)

    def test_versions(self) -> None:
        """The older version has another field name for groups."""
        authorizer = self.make(lambda spec: {"allowed": True}, version="v1")
        self.decide(authorizer)
        (review,) = self.webhook.reviews
        self.assertEqual(review["apiVersion"], "authorization.k8s.io/v1")
        self.assertEqual((review["spec"].get("groups"), review["spec"].get("group")), (["a", "b"], None))
        authorizer = self.make(lambda spec: {"allowed": True}, version="v1beta1")
        self.decide(authorizer)
        (review,) = self.webhook.reviews
        self.assertEqual(review["apiVersion"], "authorization.k8s.io/v1beta1")
        self.assertEqual((review["spec"].get("groups"), review["spec"].get("group")), (None, ["a", "b"]))

    def test_cached(self) -> None:
        """Allowed decisions and other decisions are cached with different TTLs."""
        authorizer = self.make(
            lambda spec: {"allowed": spec["resourceAttributes"].get("name") == "good"},
            authorized_ttl=100.0,
            unauthorized_ttl=10.0,
        )
        for _ in range(2):
            self.decide(authorizer, pods("good"))
            self.decide(authorizer, pods("bad"))
        self.assertEqual(len(self.webhook.reviews), 2)
        self.clock.advance(10)
        self.decide(authorizer, pods("good"))
        self.assertEqual(len(self.webhook.reviews), 2)
        self.decide(authorizer, pods("bad"))
        self.assertEqual(len(self.webhook.reviews), 3)
        self.clock.advance(90)
        self.decide(authorizer, pods("good"))
        self.assertEqual(len(self.webhook.reviews), 4)

    def test_not_cached(self) -> None:
        """With a TTL of 0 decisions are not cached; decisions about long attributes are not cached either."""
        authorizer = self.make(lambda spec: {"allowed": True}, authorized_ttl=0.0)
        self.decide(authorizer)
        self.decide(authorizer)
        self.assertEqual(len(self.webhook.reviews), 2)
        authorizer = self.make(lambda spec: {"allowed": True})
        self.decide(authorizer, pods("x" * 10_000))
        self.assertEqual(len(authorizer._cache), 0)

    def test_bounded(self) -> None:
        """The number of cached decisions is limited."""
        self.patch(webhook, "CACHE_SIZE", 50)
        authorizer = self.make(lambda spec: {"allowed": True})
        for number in range(200):
            self.decide(authorizer, pods(f"pod-{number}"))
        self.assertEqual(len(authorizer._cache), 50)

    def test_shared(self) -> None:
        """Concurrent requests with the same attributes share one call."""
        waiting: Deferred[Any] = Deferred()
        authorizer = self.make(lambda spec: waiting)
        verdicts = [authorizer.authorize(pods()) for _ in range(3)]
        waiting.callback({"allowed": True})
        self.assertEqual([self.successResultOf(one).decision for one in verdicts], [Decision.ALLOW] * 3)
        self.assertEqual((len(self.webhook.reviews), len(authorizer._calls)), (1, 0))

    def test_failure(self) -> None:
        """After a failure the verdict follows failurePolicy; the error is returned and not cached."""
        lines = self.logged_errors()
        for deny, decision in ((False, Decision.NO_OPINION), (True, Decision.DENY)):
            authorizer = self.make(lambda spec: CallError("POST", "https://x/", "EOF"), deny_on_error=deny)
            for _ in range(2):
                self.assertEqual(self.decide(authorizer), Verdict(decision, "", 'Post "https://x/": EOF'))
            self.assertEqual(len(self.webhook.reviews), 2)
        self.assertEqual(lines[0], 'Failed to make webhook authorizer request: Post "https://x/": EOF')

    def test_http_error(self) -> None:
        """An HTTP error is an error, not a decision."""
        self.logged_errors()
        authorizer = self.make(lambda spec: Response(403, {}, b"go away"), deny_on_error=True)
        self.assertEqual(self.decide(authorizer), Verdict(Decision.DENY, "", "the other side answered 403"))

    def test_cve_2020_8561(self) -> None:
        """CVE-2020-8561: a response that is not a review is neither logged nor sent to a client."""
        lines = self.logged_errors()
        for answer in UNDISCLOSED:
            verdict = self.decide(self.make(lambda spec, answer=answer: answer))
            self.assertTrue(verdict.error, answer)
            self.assertNotIn("sesame", verdict.error)
        self.assertEqual(len(lines), len(UNDISCLOSED))
        self.assertNotIn("sesame", "".join(lines))

    def test_retried(self) -> None:
        """Failed calls are retried with backoff."""
        answers = [Response(500, {}, b""), {"allowed": True}]
        verdict = self.make(lambda spec: answers.pop(0)).authorize(pods())
        self.assertNoResult(verdict)
        self.clock.advance(0.5)
        self.assertIs(self.successResultOf(verdict).decision, Decision.ALLOW)

    def test_garbage(self) -> None:
        """A response that is not a SubjectAccessReview allows nothing."""
        self.logged_errors()
        for body in (
            b"",
            b"yes",
            b"[]",
            b'{"status":true}',
            b'{"status":{"allowed":"true"}}',
            b'{"status":{"allowed":1}}',
            b'{"status":{"allowed":true,"denied":"no"}}',
            b'{"status":{"allowed":true,"reason":[]}}',
            b'{"kind":"TokenReview","status":{"allowed":true}}',
            b'{"apiVersion":"authorization.k8s.io/v1beta1","status":{"allowed":true}}',
        ):
            verdict = self.decide(self.make(lambda spec, body=body: Response(200, {}, body)))
            self.assertIs(verdict.decision, Decision.NO_OPINION, body)
            self.assertTrue(verdict.error, body)

    def test_together(self) -> None:
        """After an error without opinion the next authorizer decides; the error is in the final verdict."""
        self.logged_errors()
        failing = self.make(lambda spec: CallError("POST", "https://x/", "EOF"))
        silent = self.make(lambda spec: {"reason": "hm"})
        allowing = self.make(lambda spec: {"allowed": True})
        self.assertIs(self.decide(AuthorizerUnion([failing, allowing])).decision, Decision.ALLOW)
        self.assertEqual(
            self.decide(AuthorizerUnion([failing, silent])),
            Verdict(Decision.NO_OPINION, "hm", 'Post "https://x/": EOF'),
        )


class ConditionTests(SynchronousTestCase):
    """Tests of match conditions."""

    def decide(self, deny: bool, *expressions: str) -> tuple[Verdict, int]:
        """Return the verdict and the number of calls of the webhook."""
        from kubetwist.cel.authorization import compile_match_conditions

        conditions, causes = compile_match_conditions([{"expression": one} for one in expressions])
        self.assertEqual(causes, [])
        called = Webhook(lambda spec: {"allowed": True})
        rules = WebhookRules(version="v1", deny_on_error=deny, conditions=conditions)
        verdict = WebhookAuthorizer(Clock(), called, rules).authorize(pods("web"))
        return (self.successResultOf(verdict) if isinstance(verdict, Deferred) else verdict), len(called.reviews)

    def test_all_true(self) -> None:
        """The webhook is called if all conditions are true."""
        verdict, calls = self.decide(
            False, "request.user == 'jane'", "request.resourceAttributes.name == 'web'", "'a' in request.groups"
        )
        self.assertEqual((verdict.decision, calls), (Decision.ALLOW, 1))

    def test_one_false(self) -> None:
        """The webhook is not called if a condition is false, even if another one fails."""
        for expressions in (("request.user != 'jane'",), ("request.nonResourceAttributes.path == '/'", "false")):
            for deny in (False, True):
                verdict, calls = self.decide(deny, *expressions)
                self.assertEqual((verdict, calls), (Verdict(Decision.NO_OPINION), 0))

    def test_errors(self) -> None:
        """If a condition cannot be evaluated, the failure policy decides."""
        for deny, decision in ((False, Decision.NO_OPINION), (True, Decision.DENY)):
            verdict, calls = self.decide(deny, "request.nonResourceAttributes.path == '/'")
            self.assertEqual((verdict.decision, calls), (decision, 0))
            self.assertIn("request.nonResourceAttributes.path == '/'", verdict.error)
