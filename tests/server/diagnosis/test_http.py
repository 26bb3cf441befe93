"""Tests for L{kubetwist.server.diagnosis.http}; F{test_etcd.py} has those with a server."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.server.diagnosis.http import Answer, RequestFailed, make_context, request


class RequestTests(SynchronousTestCase):
    """Small requests."""

    def test_json(self) -> None:
        """A body that is no JSON object is an empty one."""
        for body, expected in ((b'{"a": 1}', {"a": 1}), (b"[]", {}), (b"<html>", {}), (b"\xff", {}), (b"", {})):
            self.assertEqual(Answer(200, body).json(), expected)

    def test_failures(self) -> None:
        """Bad addresses are failures with a reason, not exceptions of libraries."""
        for url in ("http://127.0.0.1:1", "https://127.0.0.1:1", "http://[::1", "http://127.0.0.1:99999", "http://"):
            error = self.assertRaises(RequestFailed, request, url, "/", make_context())
            self.assertNotEqual(str(error), "", url)
