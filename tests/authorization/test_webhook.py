"""Tests for L{kubetwist.authorization.webhook}; what it says over HTTP is in L{tests.server.test_authwebhooks}."""

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
from tests.authentication.test_webhook import UNTOLD, Webhook

JANE = UserInfo("jane", "7", ("a", "b"), {"k": ("v",)})


def pods(name: str = "", **others: Any) -> AuthorizerAttributes:
    """The question whether jane may get a pod."""
    return AuthorizerAttributes(JANE, "get", version="v1", resource="pods", namespace="ns", name=name, **others)


class SpecTests(SynchronousTestCase):
    """Questions as reviews."""

    def test_resource(self) -> None:
        """What is asked about a resource, and who asks, stands in the review; what is empty does not."""
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
        """A path is asked about as such."""
        asked = AuthorizerAttributes(UserInfo("jane"), "get", path="/metrics", is_resource_request=False)
        self.assertEqual(
            review_spec(asked), {"nonResourceAttributes": {"path": "/metrics", "verb": "get"}, "user": "jane"}
        )

    def test_selectors(self) -> None:
        """Selectors are requirements; what has no operator there is left out."""
        asked = pods(
            field_terms=parse_field_selector("spec.nodeName=n,status.phase!=Running"),
            label_terms=parse_label_selector("a=1,b!=2,c in (3,4),d notin (5),e,!f,g>7").requirements,
        )
        resource = review_spec(asked)["resourceAttributes"]
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
    """What becomes of questions."""

    def make(self, answer: Callable[[dict[str, Any]], Any], **rules: Any) -> WebhookAuthorizer:
        """An authorizer over a webhook."""
        self.clock = Clock()
        self.webhook = Webhook(answer)
        rules.setdefault("version", "v1")
        return WebhookAuthorizer(self.clock, self.webhook, WebhookRules(**rules), Backoff(0.5, 1.5, 0.0, 3))

    def ask(self, authorizer: Any, asked: AuthorizerAttributes | None = None) -> Any:
        """What it says."""
        verdict = authorizer.authorize(asked or pods())
        return self.successResultOf(verdict) if isinstance(verdict, Deferred) else verdict

    def quiet(self) -> list[str]:
        """Errors that are logged from now on."""
        lines: list[str] = []

        def observe(event: Any) -> None:
            if event["log_level"] is LogLevel.error:
                lines.append(event["log_format"].format(**event))

        globalLogPublisher.addObserver(observe)
        self.addCleanup(globalLogPublisher.removeObserver, observe)
        return lines

    def test_interfaces(self) -> None:
        """it is an authorizer without rule resolution."""
        authorizer = self.make(lambda spec: {})
        verifyObject(IAuthorizer, authorizer)
        verifyObject(IRuleResolver, authorizer)
        status = AuthorizerUnion([authorizer]).rules_for(JANE, "ns")
        self.assertTrue(status["incomplete"])
        self.assertEqual(status["evaluationError"], "webhook authorizer does not support user rule resolution")

    def test_verdicts(self) -> None:
        """the webhook allows, denies or has no opinion, with its reason."""
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
            self.assertEqual(self.ask(self.make(lambda spec, status=status: status)), verdict)

    def test_versions(self) -> None:
        """The older version calls groups by another name."""
        authorizer = self.make(lambda spec: {"allowed": True}, version="v1")
        self.ask(authorizer)
        (review,) = self.webhook.reviews
        self.assertEqual(review["apiVersion"], "authorization.k8s.io/v1")
        self.assertEqual((review["spec"].get("groups"), review["spec"].get("group")), (["a", "b"], None))
        authorizer = self.make(lambda spec: {"allowed": True}, version="v1beta1")
        self.ask(authorizer)
        (review,) = self.webhook.reviews
        self.assertEqual(review["apiVersion"], "authorization.k8s.io/v1beta1")
        self.assertEqual((review["spec"].get("groups"), review["spec"].get("group")), (None, ["a", "b"]))

    def test_remembered(self) -> None:
        """What is allowed and what is not are remembered for times of their own."""
        authorizer = self.make(
            lambda spec: {"allowed": spec["resourceAttributes"].get("name") == "good"},
            authorized_ttl=100.0,
            unauthorized_ttl=10.0,
        )
        for _ in range(2):
            self.ask(authorizer, pods("good"))
            self.ask(authorizer, pods("bad"))
        self.assertEqual(len(self.webhook.reviews), 2)
        self.clock.advance(10)
        self.ask(authorizer, pods("good"))
        self.assertEqual(len(self.webhook.reviews), 2)
        self.ask(authorizer, pods("bad"))
        self.assertEqual(len(self.webhook.reviews), 3)
        self.clock.advance(90)
        self.ask(authorizer, pods("good"))
        self.assertEqual(len(self.webhook.reviews), 4)

    def test_not_remembered(self) -> None:
        """Nothing is remembered for 0 seconds, nor what a client has made too long."""
        authorizer = self.make(lambda spec: {"allowed": True}, authorized_ttl=0.0)
        self.ask(authorizer)
        self.ask(authorizer)
        self.assertEqual(len(self.webhook.reviews), 2)
        authorizer = self.make(lambda spec: {"allowed": True})
        self.ask(authorizer, pods("x" * 10_000))
        self.assertEqual(len(authorizer._cache), 0)

    def test_bounded(self) -> None:
        """However many questions are asked, no more than a fixed number of answers is kept."""
        self.patch(webhook, "CACHE_SIZE", 50)
        authorizer = self.make(lambda spec: {"allowed": True})
        for number in range(200):
            self.ask(authorizer, pods(f"pod-{number}"))
        self.assertEqual(len(authorizer._cache), 50)

    def test_shared(self) -> None:
        """Who asks the same at the same time waits for the same answer."""
        waiting: Deferred[Any] = Deferred()
        authorizer = self.make(lambda spec: waiting)
        asked = [authorizer.authorize(pods()) for _ in range(3)]
        waiting.callback({"allowed": True})
        self.assertEqual([self.successResultOf(one).decision for one in asked], [Decision.ALLOW] * 3)
        self.assertEqual((len(self.webhook.reviews), len(authorizer._calls)), (1, 0))

    def test_trouble(self) -> None:
        """on failure the verdict follows failurePolicy; the error is returned and not cached."""
        lines = self.quiet()
        for deny, decision in ((False, Decision.NO_OPINION), (True, Decision.DENY)):
            authorizer = self.make(lambda spec: CallError("POST", "https://x/", "EOF"), deny_on_error=deny)
            for _ in range(2):
                self.assertEqual(self.ask(authorizer), Verdict(decision, "", 'Post "https://x/": EOF'))
            self.assertEqual(len(self.webhook.reviews), 2)
        self.assertEqual(lines[0], 'Failed to make webhook authorizer request: Post "https://x/": EOF')

    def test_refusal(self) -> None:
        """An HTTP error is an error, not an opinion."""
        self.quiet()
        authorizer = self.make(lambda spec: Response(403, {}, b"go away"), deny_on_error=True)
        self.assertEqual(self.ask(authorizer), Verdict(Decision.DENY, "", "the other side answered 403"))

    def test_cve_2020_8561(self) -> None:
        """CVE-2020-8561: what a webhook answers that is no review gets neither into the log nor to a client."""
        lines = self.quiet()
        for answer in UNTOLD:
            verdict = self.ask(self.make(lambda spec, answer=answer: answer))
            self.assertTrue(verdict.error, answer)
            self.assertNotIn("sesame", verdict.error)
        self.assertEqual(len(lines), len(UNTOLD))
        self.assertNotIn("sesame", "".join(lines))

    def test_retried(self) -> None:
        """A webhook that is in trouble is asked again after a while."""
        answers = [Response(500, {}, b""), {"allowed": True}]
        verdict = self.make(lambda spec: answers.pop(0)).authorize(pods())
        self.assertNoResult(verdict)
        self.clock.advance(0.5)
        self.assertIs(self.successResultOf(verdict).decision, Decision.ALLOW)

    def test_garbage(self) -> None:
        """An answer that is no SubjectAccessReview allows nothing."""
        self.quiet()
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
            verdict = self.ask(self.make(lambda spec, body=body: Response(200, {}, body)))
            self.assertIs(verdict.decision, Decision.NO_OPINION, body)
            self.assertTrue(verdict.error, body)

    def test_together(self) -> None:
        """after an error without opinion the next authorizer decides; the error is in the final verdict."""
        self.quiet()
        failing = self.make(lambda spec: CallError("POST", "https://x/", "EOF"))
        silent = self.make(lambda spec: {"reason": "hm"})
        allowing = self.make(lambda spec: {"allowed": True})
        self.assertIs(self.ask(AuthorizerUnion([failing, allowing])).decision, Decision.ALLOW)
        self.assertEqual(
            self.ask(AuthorizerUnion([failing, silent])),
            Verdict(Decision.NO_OPINION, "hm", 'Post "https://x/": EOF'),
        )


class ConditionTests(SynchronousTestCase):
    """What a webhook is asked about."""

    def ask(self, deny: bool, *expressions: str) -> tuple[Verdict, int]:
        """What is said, and how often the webhook was asked for that."""
        from kubetwist.cel.authorization import compile_match_conditions

        conditions, causes = compile_match_conditions([{"expression": one} for one in expressions])
        self.assertEqual(causes, [])
        called = Webhook(lambda spec: {"allowed": True})
        rules = WebhookRules(version="v1", deny_on_error=deny, conditions=conditions)
        verdict = WebhookAuthorizer(Clock(), called, rules).authorize(pods("web"))
        return (self.successResultOf(verdict) if isinstance(verdict, Deferred) else verdict), len(called.reviews)

    def test_all_true(self) -> None:
        """It is asked when all conditions hold."""
        verdict, calls = self.ask(
            False, "request.user == 'jane'", "request.resourceAttributes.name == 'web'", "'a' in request.groups"
        )
        self.assertEqual((verdict.decision, calls), (Decision.ALLOW, 1))

    def test_one_false(self) -> None:
        """the webhook is not called if a condition is false, even if another one fails."""
        for expressions in (("request.user != 'jane'",), ("request.nonResourceAttributes.path == '/'", "false")):
            for deny in (False, True):
                verdict, calls = self.ask(deny, *expressions)
                self.assertEqual((verdict, calls), (Verdict(Decision.NO_OPINION), 0))

    def test_errors(self) -> None:
        """for a condition that cannot be evaluated the failure policy decides."""
        for deny, decision in ((False, Decision.NO_OPINION), (True, Decision.DENY)):
            verdict, calls = self.ask(deny, "request.nonResourceAttributes.path == '/'")
            self.assertEqual((verdict.decision, calls), (decision, 0))
            self.assertIn("request.nonResourceAttributes.path == '/'", verdict.error)
