"""Tests for L{kubetwist.authentication.webhook}; its HTTP requests are in L{tests.server.test_authwebhooks}."""

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

#: Responses that are not reviews, whose content must not be disclosed.
UNDISCLOSED = (
    Response(403, {}, b"open sesame"),
    Response(418, {"content-type": "text/plain"}, b"open sesame"),
    Response(400, {}, b'{"kind":"Status","apiVersion":"v1","message":"open sesame","reason":"sesame"}'),
    Response(200, {"content-type": "sesame"}, b""),
    Response(200, {}, b"open sesame"),
    Response(200, {}, b'{"kind":"sesame","apiVersion":"sesame"}'),
    Response(200, {}, b'{"status":"sesame"}'),
)


class Webhook:
    """A client with scripted responses."""

    def __init__(self, answer: Callable[[dict[str, Any]], Any]) -> None:
        self.answer = answer
        self.reviews: list[dict[str, Any]] = []

    async def post(self, body: bytes, *, timeout: float) -> Response:
        """Return a status or response, raise an error, or wait for a Deferred."""
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
    """Tests for L{WebhookTokenAuthenticator}."""

    def make(self, answer: Callable[[dict[str, Any]], Any], **options: Any) -> Any:
        """Create an authenticator with a scripted webhook."""
        self.clock = Clock()
        self.webhook = Webhook(answer)
        options.setdefault("backoff", Backoff(0.5, 1.5, 0.0, 3))
        audiences = options.pop("audiences", ("api",))
        return WebhookTokenAuthenticator(self.clock, self.webhook, audiences, **options)

    def review(self, tokens: Any, token: str = "t") -> Any:
        """Return the result for a token."""
        outcome = tokens.authenticate(Request(f"Bearer {token}"))
        return self.successResultOf(outcome) if isinstance(outcome, Deferred) else outcome

    def failure(self, tokens: Any, token: str = "t") -> str:
        """Return the error for a token."""
        try:
            outcome = tokens.authenticate(Request(f"Bearer {token}"))
        except AuthenticationFailed as error:
            return str(error)
        return str(self.failureResultOf(outcome, AuthenticationFailed).value)

    def logged_errors(self) -> list[str]:
        """Return the logged errors."""
        lines: list[str] = []

        def observe(event: Any) -> None:
            if event["log_level"] is LogLevel.error:
                lines.append(event["log_format"].format(**event))

        globalLogPublisher.addObserver(observe)
        self.addCleanup(globalLogPublisher.removeObserver, observe)
        return lines

    def test_interface(self) -> None:
        """The authenticator implements its interface."""
        verifyObject(IAuthenticator, self.make(lambda spec: {}))

    def test_user(self) -> None:
        """The webhook returns the user, and is called in the configured version."""
        for version in ("v1", "v1beta1"):
            tokens = self.make(lambda spec: JANE, version=version)
            user = self.review(tokens)
            self.assertEqual(user, UserInfo("jane", "7", ("a", "system:authenticated"), {"k": ("v",)}))
            (review,) = self.webhook.reviews
            self.assertEqual(
                (review["kind"], review["apiVersion"]), ("TokenReview", f"authentication.k8s.io/{version}")
            )
            self.assertEqual(review["spec"], {"token": "t", "audiences": ["api"]})

    def test_no_token(self) -> None:
        """Without a token the webhook is not called."""
        tokens = self.make(lambda spec: JANE)
        self.assertIsNone(tokens.authenticate(Request()))
        self.assertEqual(self.webhook.reviews, [])

    def test_cached(self) -> None:
        """Results for valid and invalid tokens are cached for the TTL."""
        tokens = self.make(lambda spec: JANE if spec["token"] == "good" else {}, ttl=10.0)
        for _ in range(3):
            self.assertEqual(self.review(tokens, "good").name, "jane")
            self.assertIsNone(self.review(tokens, "bad"))
        self.assertEqual(len(self.webhook.reviews), 2)
        self.clock.advance(10)
        self.review(tokens, "good")
        self.assertEqual(len(self.webhook.reviews), 3)

    def test_not_cached(self) -> None:
        """With a TTL of 0 the webhook is called each time."""
        tokens = self.make(lambda spec: JANE, ttl=0.0)
        self.review(tokens)
        self.review(tokens)
        self.assertEqual(len(self.webhook.reviews), 2)

    def test_bounded(self) -> None:
        """The number of cached results is limited; the least recently used one is evicted."""
        self.patch(webhook, "MAX_CACHE_ENTRIES", 100)
        tokens = self.make(lambda spec: JANE if spec["token"] == "good" else {})
        for number in range(1000):
            self.review(tokens, f"wrong-{number}")
            self.review(tokens, "good")
        self.assertEqual(len(tokens._cache), 100)
        self.assertEqual(len(self.webhook.reviews), 1001)
        self.assertEqual(len(tokens._calls), 0)

    def test_shared(self) -> None:
        """Concurrent requests with the same token share one call; cancelling one does not affect the other requests."""
        waiting: Deferred[Any] = Deferred()
        tokens = self.make(lambda spec: waiting)
        calls = [tokens.authenticate(Request("Bearer t")) for _ in range(3)]
        calls[0].cancel()
        self.failureResultOf(calls[0])
        waiting.callback(JANE)
        self.assertEqual([self.successResultOf(one).name for one in calls[1:]], ["jane", "jane"])
        self.assertEqual(len(self.webhook.reviews), 1)

    def test_error(self) -> None:
        """An error of the webhook fails the authentication and is not cached."""
        tokens = self.make(lambda spec: {"error": "expired"})
        self.assertEqual([self.failure(tokens), self.failure(tokens)], ["expired", "expired"])
        self.assertEqual(len(self.webhook.reviews), 2)

    def test_retried(self) -> None:
        """Failed calls are retried with backoff and a limited number of attempts."""
        answers = [Response(500, {}, b""), Response(429, {}, b""), JANE]
        tokens = self.make(lambda spec: answers.pop(0))
        calls = tokens.authenticate(Request("Bearer t"))
        self.clock.advance(0.5)
        self.assertNoResult(calls)
        self.clock.advance(0.75)
        self.assertEqual(self.successResultOf(calls).name, "jane")

    def test_unreachable(self) -> None:
        """If the webhook cannot be reached, authentication fails and nothing is cached."""
        lines = self.logged_errors()
        tokens = self.make(lambda spec: CallError("POST", "https://x/", "dial tcp: no"))
        self.assertEqual(self.failure(tokens), 'Post "https://x/": dial tcp: no')
        self.assertEqual(len(tokens._cache), 0)
        self.assertEqual(lines, ['Failed to make webhook authenticator request: Post "https://x/": dial tcp: no'])

    def test_cve_2020_8561(self) -> None:
        """CVE-2020-8561: a response that is not a review is not logged."""
        lines = self.logged_errors()
        for answer in UNDISCLOSED:
            self.assertNotIn("sesame", self.failure(self.make(lambda spec, answer=answer: answer)))
        self.assertEqual(len(lines), len(UNDISCLOSED))
        self.assertNotIn("sesame", "".join(lines))

    def test_timeout(self) -> None:
        """The call is cancelled after 30 s."""
        self.logged_errors()
        tokens = self.make(lambda spec: Deferred())
        calls = tokens.authenticate(Request("Bearer t"))
        self.clock.advance(30)
        failure = self.failureResultOf(calls, AuthenticationFailed)
        self.assertEqual(str(failure.value), "context deadline exceeded")
        self.assertEqual((len(tokens._calls), self.clock.getDelayedCalls()), (0, []))

    def test_garbage(self) -> None:
        """A response that is not a TokenReview fails the authentication."""
        self.logged_errors()
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
        """Only the boolean true authenticates a token."""
        for value in ("true", 1, "false", None):
            tokens = self.make(lambda spec, value=value: {**JANE, "authenticated": value})
            self.assertIsNone(self.review(tokens))

    def test_audiences(self) -> None:
        """
        A token is valid for the requested audiences that the webhook returns, or else for the audiences of this server.
        """
        for theirs, expected, granted in (
            (["api", "other"], ["other", "api"], ("other", "api")),
            (["other"], ["api"], None),
            ([], ["api", "more"], ("api",)),
            ([], ["more"], None),
        ):
            tokens = self.make(lambda spec, theirs=theirs: {**JANE, "audiences": theirs})
            union = AuthenticatorUnion([tokens, InvalidTokenAuthenticator()])
            outcome = self.successResultOf(union.authenticate_token("t", expected))
            if granted is None:
                self.assertEqual(outcome, TokenAuthentication(None, error="invalid bearer token"))
            else:
                self.assertEqual((outcome.user.name, outcome.audiences), ("jane", granted))

    def test_audiences_are_part_of_the_key(self) -> None:
        """A result that is cached for one audience is not used for another."""
        tokens = self.make(lambda spec: {**JANE, "audiences": ["a"]})
        union = AuthenticatorUnion([tokens, InvalidTokenAuthenticator()])
        self.assertEqual(self.successResultOf(union.authenticate_token("t", ["a"])).user.name, "jane")
        self.assertIsNone(self.successResultOf(union.authenticate_token("t", ["b"])).user)

    def test_server_without_audiences(self) -> None:
        """A server without audiences requests none."""
        tokens = self.make(lambda spec: JANE, audiences=())
        self.review(tokens)
        self.assertEqual(self.webhook.reviews[0]["spec"], {"token": "t"})
