"""Base class of tests with invalid JSON."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.decoding import BodyError, decode_json


class JSONTestCase(SynchronousTestCase):
    """A test case for documents that are rejected."""

    def assert_rejected(self, data: bytes, message: str) -> None:
        """Check that a document is rejected with a message."""
        error = self.assertRaises(BodyError, decode_json, data)
        self.assertEqual(str(error), message)
        self.assertEqual(error.as_body_of_object(), f"couldn't get version/kind; json parse error: {message}")
