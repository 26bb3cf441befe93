"""JSON that is refused."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.decoding import BodyError, decode_json


class JSONTestCase(SynchronousTestCase):
    """A test with the tools of several test cases."""

    def assert_says(self, data: bytes, message: str) -> None:
        """Check that a document is refused with a text."""
        error = self.assertRaises(BodyError, decode_json, data)
        self.assertEqual(str(error), message)
        self.assertEqual(error.as_body_of_object(), f"couldn't get version/kind; json parse error: {message}")
