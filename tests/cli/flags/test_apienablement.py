"""Tests for L{kubetwist.cli.flags.apienablement}."""

from __future__ import annotations

from ..commandlines import CommandLineTestCase, parsed


class RuntimeConfigTests(CommandLineTestCase):
    """C{--runtime-config}."""

    def test_bad_runtime_config(self) -> None:
        """A malformed or unknown key of --runtime-config is rejected with kube-apiserver's message."""
        self.assert_rejected("--runtime-config: unknown api groups foo.io/v1", "--runtime-config=foo.io/v1=true")
        self.assert_rejected("--runtime-config: runtime-config invalid key apps", "--runtime-config=apps")
        self.assertEqual(parsed("--watch-cache-sizes=pods#5,x.y#0")["watch-cache-sizes"], {"pods": 5, "x.y": 0})
