"""Tests of L{kubetwist.extension._options}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.cli.kubeapi import Options
from kubetwist.extension import ExtensionOptions


class OptionsTests(SynchronousTestCase):
    """L{ExtensionOptions}."""

    def test_help(self) -> None:
        """The help describes the extension server and its flags, not C{twist kubeapi}."""
        text = str(ExtensionOptions())
        self.assertIn("Usage: twist extension [flags]\n\nAn extension API server.", text)
        self.assertIn("--authentication-tolerate-lookup-failure", text)
        self.assertNotIn("--authorization-mode", text)

    def test_max_streams(self) -> None:
        """The connection of an aggregator may have more streams than the one of another client, as in the reference."""
        extension, server = ExtensionOptions(), Options()
        for options in (extension, server):
            options.parseOptions([])
        name = "http2-max-streams-per-connection"
        self.assertEqual((extension[name], server[name]), (1000, 0))
