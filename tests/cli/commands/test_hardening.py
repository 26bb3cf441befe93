"""Tests for L{kubetwist.cli.commands.hardening}: output and exit codes."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import TestCase

from ..commandruns import run_kubetwist


class HardeningTests(TestCase):
    """C{kubetwist hardening}."""

    async def test_failures(self) -> None:
        """Failed checks are printed with their remedies, and the exit code is 1."""
        ended = await run_kubetwist("hardening", "--failures", "--hardened")
        self.assertEqual((ended.code, ended.err), (1, ""))
        lines = ended.out.splitlines()
        self.assertTrue(lines[0].startswith("1.2.5   fail   certificates of kubelets are verified -- set "), lines)
        self.assertEqual(lines[-1], "29 passed, 2 failed, 2 to check by hand")

    async def test_passed(self) -> None:
        """The exit code is 0 if no check fails; the provider of the encryption is read from its file."""
        path = Path(self.mktemp())
        path.write_text("resources: [{resources: [secrets], providers: [{aescbc: {}}]}]")
        flags = ("--kubelet-certificate-authority=ca.crt", "--service-account-extend-token-expiration=false")
        ended = await run_kubetwist("hardening", "--hardened", f"--encryption-provider-config={path}", *flags)
        self.assertEqual((ended.code, ended.err), (0, ""))
        self.assertIn("1.2.28  pass   the cipher for Secrets is a strong one", ended.out.splitlines())

    async def test_bad_flags(self) -> None:
        """Flags that the server would refuse, and a file that cannot be read, are reported in one line."""
        ended = await run_kubetwist("hardening", "--hardened", "--tls-min-version=VersionTLS12")
        self.assertEqual((ended.code, ended.out), (2, ""))
        self.assertIn("are mutually exclusive", ended.err)
        ended = await run_kubetwist("hardening", "--encryption-provider-config=/nonexistent/file")
        self.assertEqual((ended.code, ended.out, ended.err.count("\n")), (1, "", 1))
