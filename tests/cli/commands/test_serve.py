# mypy: allow-untyped-calls
"""Tests for L{kubetwist.cli.commands.serve}."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.cli import main
from kubetwist.cli.kubeapi import Options


class ServeTests(SynchronousTestCase):
    """C{kubetwist serve} without a server; F{tests/e2e/test_kubetwist.py} starts one."""

    def serve(self, *arguments: str) -> tuple[object, str, str]:
        """Run the command; return the exit code, and what it writes to stdout and stderr."""
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = self.assertRaises(SystemExit, main.run, ["serve", *arguments]).code
        return code, out.getvalue(), err.getvalue()

    def test_help(self) -> None:
        """The help has all flags of C{twist kubeapi}, and the name of this command."""
        code, out, err = self.serve("--help")
        options = Options()
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(out, str(options).replace("Usage: twist kubeapi", "Usage: kubetwist serve") + "\n")

    def test_invalid(self) -> None:
        """Flags are parsed as by C{twist kubeapi}, with its exit code."""
        code, out, err = self.serve("--secure-prt=1")
        self.assertEqual((code, out), (64, ""))
        self.assertEqual(
            err,
            "kubetwist serve: unknown flag: --secure-prt; did you mean --secure-port?; see kubetwist serve --help\n",
        )

    def test_version(self) -> None:
        """The version has the Kubernetes release first, as for C{twist kubeapi}."""
        code, out, _ = self.serve("--version")
        self.assertEqual(code, 0)
        self.assertRegex(out, r"^Kubernetes v1\.\d+\.\d+ \(kubetwist \S+\)\n$")
