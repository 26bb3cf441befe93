"""Tests for L{kubetwist.authentication.webhook}; what it says over HTTP is in L{tests.server.test_authwebhooks}."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.logger import LogLevel, globalLogPublisher
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from kubetwist.api.resource import UserInfo
from kubetwist.authentication import webhook
from kubetwist.authentication.bearer import InvalidTokenAuthenticator
from kubetwist.authentication.errors import AuthenticationFailed
from kubetwist.authentication.union import AuthenticatorUnion, TokenAuthentication
from kubetwist.authentication.webhook import WebhookTokenAuthenticator
from kubetwist.client.errors import CallError
from kubetwist.client.httpclient import Response
from kubetwist.client.retrying import Backoff
from kubetwist.interfaces import IAuthenticator
from tests.authentication.requests import Request

JANE = {"authenticated": True, "user": {"username": "jane", "uid": "7", "groups": ["a"], "extra": {"k": ["v"]}}}

#: Answers that are no reviews, whose words are nobody's business.
UNTOLD = (
    Response(403, {}, b"open sesame"),
    Response(418, {"content-type": "text/plain"}, b"open sesame"),
    Response(400, {}, b'{"kind":"Status","apiVersion":"v1","message":"open sesame","reason":"sesame"}'),
    Response(200, {"content-type": "sesame"}, b""),
    Response(200, {}, b"open sesame"),
    Response(200, {}, b'{"kind":"sesame","apiVersion":"sesame"}'),
    Response(200, {}, b'{"status":"sesame"}'),
)


class Webhook:
    """What is called; answers are scripted."""

    def __init__(self, answer: Callable[[dict[str, Any]], Any]) -> None:
        self.answer = answer
        self.reviews: list[dict[str, Any]] = []

    async def post(self, body: bytes, *, timeout: float) -> Response:
        """Answer with a status, an answer, an error, or when a Deferred says so."""
        review = json.loads(body)
        self.reviews.append(review)
        result = self.answer(review["spec"])
        if isinstance(result, Deferred):
            result = await result
        if isinstance(result, Exception):
            raise result
        if isinstance(result, Response):
            return result
        return Response(200, {}, json.dumps({**review, "status": result}).encode())


class WebhookTokensTests(SynchronousTestCase):
    """What becomes of tokens."""

    def make(self, answer: Callable[[dict[str, Any]], Any], **options: Any) -> Any:
        """An authenticator over a webhook."""
        self.clock = Clock()
        self.webhook = Webhook(answer)
        options.setdefault("backoff", Backoff(0.5, 1.5, 0.0, 3))
        audiences = options.pop("audiences", ("api",))
        return WebhookTokenAuthenticator(self.clock, self.webhook, audiences, **options)

    def ask(self, tokens: Any, token: str = "t") -> Any:
        """What it says of a token."""
        found = tokens.authenticate(Request(f"Bearer {token}"))
        return self.successResultOf(found) if isinstance(found, Deferred) else found

    def failure(self, tokens: Any, token: str = "t") -> str:
        """Why a token is bad."""
        try:
            found = tokens.authenticate(Request(f"Bearer {token}"))
        except AuthenticationFailed as error:
            return str(error)
        return str(self.failureResultOf(found, AuthenticationFailed).value)

    def quiet(self) -> list[str]:
        """Errors that are logged from now on."""
        lines: list[str] = []

        def observe(event: Any) -> None:
            if event["log_level"] is LogLevel.error:
                lines.append(event["log_format"].format(**event))

        globalLogPublisher.addObserver(observe)
        self.addCleanup(globalLogPublisher.removeObserver, observe)
        return lines

    def test_interface(self) -> None:
        """It is an authenticator."""
        verifyObject(IAuthenticator, self.make(lambda spec: {}))

    def test_user(self) -> None:
        """The webhook says who it is, and is asked in the version that it understands."""
        for version in ("v1", "v1beta1"):
            tokens = self.make(lambda spec: JANE, version=version)
            user = self.ask(tokens)
            self.assertEqual(user, UserInfo("jane", "7", ("a", "system:authenticated"), {"k": ("v",)}))
            (review,) = self.webhook.reviews
            self.assertEqual(
                (review["kind"], review["apiVersion"]), ("TokenReview", f"authentication.k8s.io/{version}")
            )
            self.assertEqual(review["spec"], {"token": "t", "audiences": ["api"]})

    def test_no_token(self) -> None:
        """Without a token nobody is asked."""
        tokens = self.make(lambda spec: JANE)
        self.assertIsNone(tokens.authenticate(Request()))
        self.assertEqual(self.webhook.reviews, [])

    def test_remembered(self) -> None:
        """Good and bad tokens are remembered for the time that is set, and not any longer."""
        tokens = self.make(lambda spec: JANE if spec["token"] == "good" else {}, ttl=10.0)
        for _ in range(3):
            self.assertEqual(self.ask(tokens, "good").name, "jane")
            self.assertIsNone(self.ask(tokens, "bad"))
        self.assertEqual(len(self.webhook.reviews), 2)
        self.clock.advance(10)
        self.ask(tokens, "good")
        self.assertEqual(len(self.webhook.reviews), 3)

    def test_not_remembered(self) -> None:
        """With a time of 0 the webhook is asked each time."""
        tokens = self.make(lambda spec: JANE, ttl=0.0)
        self.ask(tokens)
        self.ask(tokens)
        self.assertEqual(len(self.webhook.reviews), 2)

    def test_bounded(self) -> None:
        """However many tokens are tried, no more than a fixed number is remembered; those in use stay."""
        self.patch(webhook, "MAX_CACHE_ENTRIES", 100)
        tokens = self.make(lambda spec: JANE if spec["token"] == "good" else {})
        for number in range(1000):
            self.ask(tokens, f"wrong-{number}")
            self.ask(tokens, "good")
        self.assertEqual(len(tokens._cache), 100)
        self.assertEqual(len(self.webhook.reviews), 1001)
        self.assertEqual(len(tokens._calls), 0)

    def test_shared(self) -> None:
        """Who asks for the same token at the same time waits for the same answer; one who leaves disturbs nobody."""
        waiting: Deferred[Any] = Deferred()
        tokens = self.make(lambda spec: waiting)
        asked = [tokens.authenticate(Request("Bearer t")) for _ in range(3)]
        asked[0].cancel()
        self.failureResultOf(asked[0])
        waiting.callback(JANE)
        self.assertEqual([self.successResultOf(one).name for one in asked[1:]], ["jane", "jane"])
        self.assertEqual(len(self.webhook.reviews), 1)

    def test_error(self) -> None:
        """What the webhook says is wrong goes to the log, and the next request asks again."""
        tokens = self.make(lambda spec: {"error": "expired"})
        self.assertEqual([self.failure(tokens), self.failure(tokens)], ["expired", "expired"])
        self.assertEqual(len(self.webhook.reviews), 2)

    def test_retried(self) -> None:
        """A webhook that is in trouble is asked again after a while, and no more often than said."""
        answers = [Response(500, {}, b""), Response(429, {}, b""), JANE]
        tokens = self.make(lambda spec: answers.pop(0))
        asked = tokens.authenticate(Request("Bearer t"))
        self.clock.advance(0.5)
        self.assertNoResult(asked)
        self.clock.advance(0.75)
        self.assertEqual(self.successResultOf(asked).name, "jane")

    def test_trouble(self) -> None:
        """A webhook that can not be reached is no reason to let anyone in; nothing of it is remembered."""
        lines = self.quiet()
        tokens = self.make(lambda spec: CallError("POST", "https://x/", "dial tcp: no"))
        self.assertEqual(self.failure(tokens), 'Post "https://x/": dial tcp: no')
        self.assertEqual(len(tokens._cache), 0)
        self.assertEqual(lines, ['Failed to make webhook authenticator request: Post "https://x/": dial tcp: no'])

    def test_cve_2020_8561(self) -> None:
        """CVE-2020-8561: what a webhook answers that is no review does not get into the log."""
        lines = self.quiet()
        for answer in UNTOLD:
            self.assertNotIn("sesame", self.failure(self.make(lambda spec, answer=answer: answer)))
        self.assertEqual(len(lines), len(UNTOLD))
        self.assertNotIn("sesame", "".join(lines))

    def test_too_slow(self) -> None:
        """A webhook is not waited for any longer than 30 s, whatever it does."""
        self.quiet()
        tokens = self.make(lambda spec: Deferred())
        asked = tokens.authenticate(Request("Bearer t"))
        self.clock.advance(30)
        failure = self.failureResultOf(asked, AuthenticationFailed)
        self.assertEqual(str(failure.value), "context deadline exceeded")
        self.assertEqual((len(tokens._calls), self.clock.getDelayedCalls()), (0, []))

    def test_garbage(self) -> None:
        """An answer that is no TokenReview lets nobody in."""
        self.quiet()
        api = '"apiVersion":"authentication.k8s.io/v1"'
        for body in (
            b"",
            b"nonsense",
            b"[]",
            b'{"status":[]}',
            b'{"kind":"Pod","status":{"authenticated":true}}',
            b'{"apiVersion":"authentication.k8s.io/v2","status":{"authenticated":true}}',
            b'{"status":{"authenticated":true,"user":[]}}',
            b'{"status":{"authenticated":true,"user":{"username":3}}}',
            b'{"status":{"authenticated":true,"user":{"username":"a","groups":"system:masters"}}}',
            b'{"status":{"authenticated":true,"user":{"username":"a","groups":[3]}}}',
            b'{"status":{"authenticated":true,"user":{"username":"a","extra":[]}}}',
            b'{"status":{"authenticated":true,"audiences":"api"}}',
            (f'{{"kind":"TokenReview",{api},"status":3}}').encode(),
        ):
            tokens = self.make(lambda spec, body=body: Response(200, {}, body))
            self.assertTrue(self.failure(tokens), body)

    def test_authenticated_is_a_boolean(self) -> None:
        """Nothing but true is true."""
        for value in ("true", 1, "false", None):
            tokens = self.make(lambda spec, value=value: {**JANE, "authenticated": value})
            self.assertIsNone(self.ask(tokens))

    def test_audiences(self) -> None:
        """A token is for one of those that were asked for; what the webhook leaves open is for this server."""
        for theirs, wanted, granted in (
            (["api", "other"], ["other", "api"], ("other", "api")),
            (["other"], ["api"], None),
            ([], ["api", "more"], ("api",)),
            ([], ["more"], None),
        ):
            tokens = self.make(lambda spec, theirs=theirs: {**JANE, "audiences": theirs})
            union = AuthenticatorUnion([tokens, InvalidTokenAuthenticator()])
            found = self.successResultOf(union.authenticate_token("t", wanted))
            if granted is None:
                self.assertEqual(found, TokenAuthentication(None, error="invalid bearer token"))
            else:
                self.assertEqual((found.user.name, found.audiences), ("jane", granted))

    def test_audiences_are_part_of_the_question(self) -> None:
        """What was found for one audience does not count for another."""
        tokens = self.make(lambda spec: {**JANE, "audiences": ["a"]})
        union = AuthenticatorUnion([tokens, InvalidTokenAuthenticator()])
        self.assertEqual(self.successResultOf(union.authenticate_token("t", ["a"])).user.name, "jane")
        self.assertIsNone(self.successResultOf(union.authenticate_token("t", ["b"])).user)

    def test_server_without_audiences(self) -> None:
        """A server that has none asks for none."""
        tokens = self.make(lambda spec: JANE, audiences=())
        self.ask(tokens)
        self.assertEqual(self.webhook.reviews[0]["spec"], {"token": "t"})
