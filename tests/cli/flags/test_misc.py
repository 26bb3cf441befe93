"""Tests for L{kubetwist.cli.flags.misc}."""

from __future__ import annotations

from twisted.python.usage import UsageError

from ..commandlines import CommandLineTestCase, parsed


class MiscTests(CommandLineTestCase):
    """Flags of the section Misc."""

    def test_reconciler(self) -> None:
        """All three endpoint reconcilers are accepted."""
        for kind in ("lease", "master-count", "none"):
            self.assertEqual(parsed(f"--endpoint-reconciler-type={kind}")["endpoint-reconciler-type"], kind)
        self.assertEqual(parsed("--apiserver-count=3")["apiserver-count"], 3)
        self.assertRaises(UsageError, parsed, "--apiserver-count=0")
        self.assertRaises(UsageError, parsed, "--endpoint-reconciler-type=x")
