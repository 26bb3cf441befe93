"""Tests of L{kubetwist.client.responses}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.errors import APIStatusError
from kubetwist.client.httpclient import Response
from kubetwist.client.responses import raise_for_status
from kubetwist.client.retrying import (
    should_retry,
)


class ErrorTests(SynchronousTestCase):
    """L{raise_for_status<kubetwist.client.responses.raise_for_status>}."""

    def refusal(self, code: int, body: bytes = b"", **headers: str) -> APIStatusError:
        """Return the error for a response."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.assertRaises(APIStatusError, raise_for_status, Response(code, named, body))

    def test_success(self) -> None:
        """Codes 200 to 206 are successes, with any body."""
        for code in (200, 201, 206):
            raise_for_status(Response(code, {}, b"?"))

    def test_status(self) -> None:
        """A Status in the body is raised as the error."""
        error = self.refusal(
            500, b'{"kind":"Status","apiVersion":"v1","status":"Failure","message":"m","reason":"R","code":418}'
        )
        self.assertEqual((error.code, error.reason, error.message), (418, "R", "m"))

    def test_generic(self) -> None:
        """A body without a Status raises client-go's generic error; binary bodies are not quoted."""
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
        """CVE-2020-8561: an unquoted error contains no text of the response, and remains retriable."""
        status = b'{"kind":"Status","apiVersion":"v1","status":"Failure","message":"sesame","reason":"%b","code":429}'
        for code, headers, body, text in (
            (403, {}, b"sesame", "the other side answered 403"),
            (404, {}, b"sesame", "the server could not find the requested resource"),
            (500, {}, b"sesame", 'an error on the server ("unknown") has prevented the request from succeeding'),
            (418, {"retry-after": "7"}, b"sesame", "the server responded with the status code 418 but did not return"),
            (400, {}, status % b"TooManyRequests", "the server has received too many requests and has asked us to"),
            (400, {}, status % b"sesame", "the server has received too many requests and has asked us to"),
        ):
            answer = Response(code, headers, body)
            quoted = self.assertRaises(APIStatusError, raise_for_status, answer)
            error = self.assertRaises(APIStatusError, raise_for_status, answer, quote=False)
            self.assertTrue(str(error).startswith(text), error)
            self.assertNotIn("sesame", f"{error.message} {error.reason} {error.details}")
            self.assertEqual((error.code, error.retry_after), (quoted.code, quoted.retry_after))
            self.assertTrue(should_retry(error) or not should_retry(quoted))

    def test_retry_after(self) -> None:
        """Retry-After is part of the error."""
        self.assertEqual(self.refusal(429, b"", retry_after="7").retry_after, 7)
        self.assertIsNone(self.refusal(429, b"", retry_after="soon").retry_after)

    def test_malformed_status(self) -> None:
        """Values of wrong types in a Status are ignored."""
        error = self.refusal(500, b'{"kind":"Status","apiVersion":"v1","message":3,"code":true,"details":[]}')
        self.assertEqual((error.code, error.message, error.details), (500, "", None))
