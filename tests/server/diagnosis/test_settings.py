"""Tests for L{kubetwist.server.diagnosis.settings}."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.server.diagnosis.findings import Finding, Severity
from kubetwist.server.diagnosis.settings import check_files, judge_deprecated, judge_limited, judge_settings
from tests.cli.commandlines import parsed


class SettingTests(SynchronousTestCase):
    """Checks of flags."""

    def weak(self, *flags: str) -> dict[str, Severity]:
        """Return the severities of the settings of a command line, without the findings of the defaults."""
        found: list[Finding] = list(judge_settings(parsed(*flags)))
        notes = {one.id for one in judge_settings(parsed())}
        return {one.id: one.severity for one in found if one.id not in notes}

    def test_defaults(self) -> None:
        """The defaults are not insecure: there are notes only."""
        found = {one.id: one.severity for one in judge_settings(parsed())}
        self.assertEqual(found, {"weak/encryption": Severity.NOTE, "weak/audit": Severity.NOTE, "weak": Severity.OK})

    def test_weak(self) -> None:
        """Each weak setting has its finding."""
        cases = (
            (("--authorization-mode=AlwaysAllow", "--profiling=false"), "authorization", Severity.WARNING),
            (("--authorization-mode=AlwaysAllow",), "profiling", Severity.WARNING),
            (("--authorization-mode=RBAC",), "node-authorization", Severity.NOTE),
            (("--audit-policy-file=x",), "audit-destination", Severity.WARNING),
            (("--unsafe-no-fsync",), "fsync", Severity.WARNING),
            (("--allow-lost-writes",), "lost-writes", Severity.WARNING),
            (("--token-auth-file=x",), "static-tokens", Severity.WARNING),
            (("--tls-cipher-suites=TLS_RSA_WITH_AES_128_CBC_SHA",), "tls", Severity.WARNING),
            (("--bind-address=0.0.0.0",), "tls-version", Severity.NOTE),
            (("--bind-address=0.0.0.0",), "kubelet", Severity.NOTE),
            (("--allow-loopback-proxy", "--bind-address=10.0.0.1"), "loopback-proxy", Severity.WARNING),
            (("--webhook-url-denied-cidrs=",), "webhook-networks", Severity.WARNING),
            (("--service-account-lookup=false",), "tokens", Severity.WARNING),
            (("--requestheader-client-ca-file=x",), "request-headers", Severity.NOTE),
        )
        for flags, name, expected in cases:
            self.assertIs(self.weak(*flags).get(f"weak/{name}"), expected, flags)
        self.assertEqual(self.weak("--in-memory", "--unsafe-no-fsync"), {})
        strong = ("--tls-min-version=VersionTLS13", "--tls-cipher-suites=TLS_RSA_WITH_AES_128_CBC_SHA")
        self.assertEqual(self.weak(*strong), {})

    def test_hardened(self) -> None:
        """The hardened profile has no weak setting: it encrypts Secrets and writes an audit log."""
        found = {one.id for one in judge_settings(parsed("--hardened", "--kubelet-certificate-authority=x"))}
        self.assertEqual(found, {"weak"})
        self.assertNotIn("weak/audit-destination", self.weak("--hardened", "--audit-policy-file=x"))

    def test_limited(self) -> None:
        """Flags without effect are notes with the reason."""
        (found,) = judge_limited({"log-flush-frequency", "v"}, {"log-flush-frequency": "at once"})
        self.assertEqual((found.id, found.severity), ("flags/effect", Severity.NOTE))
        self.assertIn("at once", found.message)
        (found,) = judge_limited({"v"}, {"log-flush-frequency": "at once"})
        self.assertIs(found.severity, Severity.OK)

    def test_deprecated(self) -> None:
        """Deprecated flags are notes with the replacement."""
        (found,) = judge_deprecated(parsed("--audit-webhook-batch-initial-backoff=1s").changed)
        self.assertEqual(found.remedy, "use --audit-webhook-initial-backoff")
        self.assertEqual(list(judge_deprecated(parsed("--v=1").changed)), [])

    def test_files(self) -> None:
        """A missing file is an error, and a secret that all users can read a warning."""
        path = Path(self.mktemp())
        path.write_text("token,user,uid")
        path.chmod(0o600)
        (found,) = check_files(parsed(f"--token-auth-file={path}"))
        self.assertIs(found.severity, Severity.OK)
        path.chmod(0o604)
        (found,) = check_files(parsed(f"--token-auth-file={path}"))
        self.assertEqual((found.id, found.severity), ("flags/secrets", Severity.WARNING))
        (found,) = check_files(parsed(f"--client-ca-file={path}"))
        self.assertIs(found.severity, Severity.OK)
        (found,) = check_files(parsed("--audit-policy-file=/nonexistent"))
        self.assertEqual((found.id, found.severity), ("flags/files", Severity.ERROR))
