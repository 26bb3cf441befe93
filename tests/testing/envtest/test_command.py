# mypy: allow-untyped-calls
"""Tests for L{kubetwist.testing.envtest.command}."""

from __future__ import annotations

import io
import sys
from pathlib import Path

from twisted.application.service import IServiceMaker
from twisted.plugin import getPlugins
from twisted.python.usage import UsageError
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.cli.command import FAILED, CommandService
from kubetwist.testing.envtest import command
from tests.cli.test_command import FakeReactor


class CommandTests(SynchronousTestCase):
    """C{twist kubeapi-envtest}."""

    def setUp(self) -> None:
        """Capture the output."""
        self.out, self.err = io.StringIO(), io.StringIO()
        self.patch(sys, "__stdout__", self.out)
        self.patch(sys, "__stderr__", self.err)

    def run_command(self, *arguments: str) -> int:
        """Run the command, and return its exit code."""
        options = command.Options()
        options.parseOptions(arguments)
        service = CommandService(options, FakeReactor(), command.run)
        service.startService()
        return service.code

    def test_written(self) -> None:
        """The command prints the path of the directory alone; flags that are no defaults are part of the program."""
        folder = Path(self.mktemp())
        self.assertEqual(self.run_command(str(folder), "--kubernetes-version=1.33.1"), 0)
        self.assertEqual(self.out.getvalue(), f"{folder.absolute()}\n")
        script = (folder / "kube-apiserver").read_text()
        self.assertIn(' --kubernetes-version=1.33 "$@"', script)
        self.assertEqual(self.run_command("--controllers=", str(folder)), 0)
        self.assertIn(' --controllers= "$@"', (folder / "kube-apiserver").read_text())

    def test_foreign(self) -> None:
        """Programs of other origin are not replaced."""
        folder = Path(self.mktemp())
        folder.mkdir()
        (folder / "etcd").touch()
        self.assertEqual(self.run_command(str(folder)), FAILED)
        self.assertIn(f"twist kubeapi-envtest: {folder.absolute()}/etcd exists", self.err.getvalue())

    def test_usage(self) -> None:
        """Wrong arguments are errors."""
        for arguments, reason in (((), "DIR is required"), (("a", "--kubernetes-version=1.9"), "must be one of")):
            error = self.assertRaises(UsageError, command.Options().parseOptions, arguments)
            self.assertIn(reason, str(error))

    def test_found(self) -> None:
        """Twisted finds the command."""
        (maker,) = (one for one in getPlugins(IServiceMaker) if one.tapname == "kubeapi-envtest")
        self.assertIsInstance(maker.options(), command.Options)
        self.assertIn("Usage: twist kubeapi-envtest DIR [flags]", str(command.Options()))
