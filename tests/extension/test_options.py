"""Tests of L{kubetwist.extension._options}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.extension import ExtensionOptions


class OptionsTests(SynchronousTestCase):
    """L{ExtensionOptions}."""

    def test_help(self) -> None:
        """The help describes the extension server and its flags, not C{twist kubeapi}."""
        text = str(ExtensionOptions())
        self.assertIn("Usage: twist extension [flags]\n\nAn extension API server.", text)
        self.assertIn("--authentication-tolerate-lookup-failure", text)
        self.assertNotIn("--authorization-mode", text)
