"""Tests for what is decided about calls without making any: services, refusals, retries."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.errors import APIStatusError
from kubetwist.client.errors import CallError
from kubetwist.client.httpclient import Answer
from kubetwist.client.responses import check_answer
from kubetwist.client.retrying import (
    Backoff,
    should_retry,
    with_backoff,
)
from kubetwist.client.services import (
    NoSuchService,
    Services,
)


class ServicesTests(SynchronousTestCase):
    """Where a service is."""

    def services(self, spec: Any) -> Services:
        """The service C{ns/web}, and no other."""
        return Services(lambda namespace, name: {"spec": spec} if (namespace, name) == ("ns", "web") else None)

    def test_resolve(self) -> None:
        """A service is at its cluster IP, or at the name it stands for."""
        ports = [{"port": 443}, {"port": 8443}]
        for kind in ("ClusterIP", "NodePort", "LoadBalancer"):
            services = self.services({"type": kind, "clusterIP": "10.0.0.7", "ports": ports})
            self.assertEqual(services.resolve("ns", "web", 8443), ("10.0.0.7", 8443))
        services = self.services({"type": "ExternalName", "externalName": "web.example"})
        self.assertEqual(services.resolve("ns", "web", 77), ("web.example", 77))

    def test_nowhere(self) -> None:
        """What can not be called is told in the reference's words."""
        for spec, name, why in (
            ({}, "other", 'service "other" not found'),
            ({"type": "ClusterIP", "clusterIP": "None"}, "web", 'cannot route to service with ClusterIP "None"'),
            (
                {"type": "ClusterIP", "clusterIP": "10.0.0.7", "ports": [{"port": 80}]},
                "web",
                'no service port 443 found for service "web"',
            ),
            ({"type": "Odd"}, "web", 'unsupported service type "Odd"'),
        ):
            error = self.assertRaises(NoSuchService, self.services(spec).resolve, "ns", name, 443)
            self.assertEqual(str(error), why)

    def test_settings(self) -> None:
        """A service is called by its name in the cluster, and may not be anywhere on this machine."""
        services = self.services({"clusterIP": "10.0.0.7", "ports": [{"port": 443}]})
        settings = services.settings("ns", "web", path="hook", ca=b"PEM")
        self.assertEqual((settings.url, settings.server_name), ("https://web.ns.svc:443/hook", "web.ns.svc"))
        assert settings.dial is not None
        self.assertEqual((settings.dial(), settings.guarded, settings.ca), (("10.0.0.7", 443), True, b"PEM"))


class RefusalTests(SynchronousTestCase):
    """Answers that are no success."""

    def refusal(self, code: int, body: bytes = b"", **headers: str) -> APIStatusError:
        """What is made of an answer."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.assertRaises(APIStatusError, check_answer, Answer(code, named, body))

    def test_success(self) -> None:
        """200 to 206 are successes, whatever the body says."""
        for code in (200, 201, 206):
            check_answer(Answer(code, {}, b"?"))

    def test_status(self) -> None:
        """A Status tells itself what is wrong."""
        error = self.refusal(
            500, b'{"kind":"Status","apiVersion":"v1","status":"Failure","message":"m","reason":"R","code":418}'
        )
        self.assertEqual((error.code, error.reason, error.message), (418, "R", "m"))

    def test_generic(self) -> None:
        """Of other bodies client-go makes messages of its own; bodies that are no text are not shown."""
        for code, headers, body, reason, message in (
            (400, {}, b"no", "BadRequest", "the server rejected our request for an unknown reason"),
            (401, {}, b"", "Unauthorized", "the server has asked for the client to provide credentials"),
            (403, {}, b" not you \n", "Forbidden", "not you"),
            (404, {}, b"", "NotFound", "the server could not find the requested resource"),
            (409, {}, b"", "AlreadyExists", "the server reported a conflict"),
            (418, {}, b"", "", "the server responded with the status code 418 but did not return more information"),
            (503, {}, b"", "ServiceUnavailable", "the server is currently unable to handle the request"),
            (
                500,
                {},
                b'oh "no"\n',
                "InternalError",
                'an error on the server ("oh \\"no\\"") has prevented the request from succeeding',
            ),
            (
                502,
                {"content_type": "application/json"},
                b'{"a":1}',
                "InternalError",
                'an error on the server ("unknown") has prevented the request from succeeding',
            ),
        ):
            error = self.refusal(code, body, **headers)
            self.assertEqual((error.code, error.reason, error.message), (code, reason, message))

    def test_cve_2020_8561_unquoted(self) -> None:
        """What goes into the log has no words of the other side, and is worth another try all the same."""
        status = b'{"kind":"Status","apiVersion":"v1","status":"Failure","message":"sesame","reason":"%b","code":429}'
        for code, headers, body, text in (
            (403, {}, b"sesame", "the other side answered 403"),
            (404, {}, b"sesame", "the server could not find the requested resource"),
            (500, {}, b"sesame", 'an error on the server ("unknown") has prevented the request from succeeding'),
            (418, {"retry-after": "7"}, b"sesame", "the server responded with the status code 418 but did not return"),
            (400, {}, status % b"TooManyRequests", "the server has received too many requests and has asked us to"),
            (400, {}, status % b"sesame", "the server has received too many requests and has asked us to"),
        ):
            answer = Answer(code, headers, body)
            quoted = self.assertRaises(APIStatusError, check_answer, answer)
            error = self.assertRaises(APIStatusError, check_answer, answer, quote=False)
            self.assertTrue(str(error).startswith(text), error)
            self.assertNotIn("sesame", f"{error.message} {error.reason} {error.details}")
            self.assertEqual((error.code, error.retry_after), (quoted.code, quoted.retry_after))
            self.assertTrue(should_retry(error) or not should_retry(quoted))

    def test_retry_after(self) -> None:
        """When the other side wants to be asked again is kept."""
        self.assertEqual(self.refusal(429, b"", retry_after="7").retry_after, 7)
        self.assertIsNone(self.refusal(429, b"", retry_after="soon").retry_after)

    def test_odd_bodies(self) -> None:
        """Odd values in a Status do no harm."""
        error = self.refusal(500, b'{"kind":"Status","apiVersion":"v1","message":3,"code":true,"details":[]}')
        self.assertEqual((error.code, error.message, error.details), (500, "", None))


class RetryTests(SynchronousTestCase):
    """Calls that are tried again."""

    def setUp(self) -> None:
        """A clock, and errors to come."""
        self.clock = Clock()
        self.errors: list[Exception] = []
        self.tries: list[float] = []

    async def call(self) -> str:
        """Fail as long as there are errors."""
        self.tries.append(self.clock.seconds())
        if self.errors:
            raise self.errors.pop(0)
        return "done"

    def start(self) -> Deferred[str]:
        """Call, without jitter."""
        return Deferred.fromCoroutine(with_backoff(self.clock, self.call, Backoff(0.5, 1.5, 0.0, 5)))

    def test_waits(self) -> None:
        """Waits grow by half each, and the fifth try is the last."""
        self.errors = [APIStatusError.internal("x") for _ in range(9)]
        failing = self.start()
        self.clock.pump([0.05] * 200)
        self.failureResultOf(failing, APIStatusError)
        waits = [round(after - before, 2) for before, after in zip(self.tries, self.tries[1:], strict=False)]
        self.assertEqual(len(self.tries), 5)
        for wait, wanted in zip(waits, (0.5, 0.75, 1.125, 1.6875), strict=True):
            self.assertTrue(wanted <= wait <= wanted + 0.1, waits)

    def test_recovery(self) -> None:
        """A try that works is the result."""
        self.errors = [APIStatusError.internal("x")]
        working = self.start()
        self.assertNoResult(working)
        self.clock.advance(0.5)
        self.assertEqual(self.successResultOf(working), "done")

    def test_no_use(self) -> None:
        """An error that would come again is told at once."""
        self.errors = [APIStatusError.bad_request("x")]
        self.failureResultOf(self.start(), APIStatusError)
        self.assertEqual(len(self.tries), 1)

    def test_cancelled(self) -> None:
        """Whoever does not want to wait any more leaves nothing behind."""
        self.errors = [APIStatusError.internal("x")]
        waiting = self.start()
        waiting.cancel()
        self.failureResultOf(waiting, CancelledError)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_which(self) -> None:
        """Resets, 500, 504, 429 and whatever says Retry-After are tried again; refusals and timeouts are not."""
        for error, again in (
            (CallError("POST", "u", "reset", retriable=True), True),
            (CallError("POST", "u", "refused"), False),
            (CallError("POST", "u", "late", timed_out=True), False),
            (APIStatusError(500, "InternalError", ""), True),
            (APIStatusError(504, "Timeout", ""), True),
            (APIStatusError(429, "TooManyRequests", ""), True),
            (APIStatusError(503, "ServiceUnavailable", ""), False),
            (APIStatusError(503, "ServiceUnavailable", "", None, 1), True),
            (APIStatusError(403, "Forbidden", ""), False),
            (ValueError(), False),
        ):
            self.assertEqual(should_retry(error), again, error)
