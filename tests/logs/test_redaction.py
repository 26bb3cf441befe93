"""Tests for L{kubetwist.logs.redaction}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.logs.redaction import MAX_URI_LENGTH, redact_uri


class RedactionTests(SynchronousTestCase):
    """Redaction of requests."""

    def test_secrets(self) -> None:
        """Values of secret parameters are redacted, for all spellings of their names."""
        for name in ("access_token", "Token", "acc%65ss_token", "client_secret", "password", "api-key", "code", "sig"):
            for separator in ("&", ";"):
                text = redact_uri(f"/a?limit=5{separator}{name}=hunter2&x=y".encode())
                self.assertEqual(text, f"/a?limit=5{separator}{name}=REDACTED&x=y")

    def test_commands(self) -> None:
        """Commands that are executed in a pod are redacted."""
        self.assertEqual(redact_uri(b"/exec?command=mysql&command=-phunter2&tty=true").count("hunter2"), 0)

    def test_other_parameters(self) -> None:
        """Parameters of the API are not redacted."""
        uri = b"/api/v1/pods?limit=500&resourceVersion=0&labelSelector=a%3Db&continue=abc&watch"
        self.assertEqual(redact_uri(uri), uri.decode())

    def test_opaque(self) -> None:
        """All values of a proxied request are redacted."""
        text = redact_uri(b"/api/v1/namespaces/a/services/b/proxy/c?x=hunter2&hunter3", opaque=True)
        self.assertTrue(text.endswith("/c?x=REDACTED&REDACTED"), text)

    def test_bounded(self) -> None:
        """Long lines are truncated."""
        self.assertEqual(len(redact_uri(b"/" + b"a" * 100_000 + b"?" + b"b=c&" * 100_000)), MAX_URI_LENGTH + 3)
