"""Tests of L{kubetwist.client.reviews}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.client.httpclient import Response
from kubetwist.client.reviews import review_status


def status(body: bytes) -> Any:
    """Return the status of a review in a webhook's response."""
    return review_status(Response(200, {}, body), "TokenReview", "authentication.k8s.io/v1")


class ReviewTests(SynchronousTestCase):
    """L{review_status}."""

    def test_status(self) -> None:
        """Kind and version may be absent; a review without a status has an empty one."""
        named = b'{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","status":{"authenticated":true}}'
        self.assertEqual(status(named), {"authenticated": True})
        self.assertEqual(status(b'{"status":{"error":"e"}}'), {"error": "e"})
        self.assertEqual(status(b"{}"), {})
        self.assertEqual(status(b'{"status":null}'), {})

    def test_not_quoted(self) -> None:
        """A response that is not a review fails with an error that does not quote it."""
        for body, expected in (
            (b"", "0-length response with status code: 200"),
            (b"secret", "it is no JSON"),
            (b'["secret"]', "is no TokenReview"),
            (b'{"kind":"secret"}', "should be TokenReview in authentication.k8s.io/v1"),
            (b'{"apiVersion":"secret"}', "should be TokenReview in authentication.k8s.io/v1"),
            (b'{"status":"secret"}', "its status is no object"),
        ):
            error = self.assertRaises(ValueError, status, body)
            self.assertIn(expected, str(error))
            self.assertNotIn("secret", str(error))
