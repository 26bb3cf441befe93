# mypy: allow-untyped-calls
"""Tests for L{kubetwist.cli.plugin}."""

from __future__ import annotations

import io
import sys
from pathlib import Path

from twisted.application.service import IServiceMaker
from twisted.plugin import getPlugins
from twisted.python.usage import UsageError
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.cli import plugin
from kubetwist.cli.command import FAILED, CommandService
from tests.cli.test_command import FakeReactor


class CommandTests(SynchronousTestCase):
    """C{twist kubeapi-plugin}."""

    def setUp(self) -> None:
        """Capture the output."""
        self.out, self.err = io.StringIO(), io.StringIO()
        self.patch(sys, "__stdout__", self.out)
        self.patch(sys, "__stderr__", self.err)

    def run_command(self, *arguments: str) -> int:
        """Run the command, and return its exit code."""
        options = plugin.Options()
        options.parseOptions(arguments)
        service = CommandService(options, FakeReactor(), plugin.run)
        service.startService()
        return service.code

    def test_written(self) -> None:
        """The command writes a package and prints its files; the name is the first or the last argument."""
        folder = Path(self.mktemp())
        self.assertEqual(self.run_command("team-labels", "--kind", "admission,controller", f"--to={folder}"), 0)
        self.assertIn(f"{folder}/team_labels/controller.py", self.out.getvalue().split())
        self.assertTrue((folder / "team_labels" / "admission.py").is_file())
        other = Path(self.mktemp())
        self.assertEqual(self.run_command(f"--to={other}", "--kind=storage", "team-labels"), 0)
        self.assertFalse((other / "team_labels" / "admission.py").exists())

    def test_existing(self) -> None:
        """A folder that exists is an error of one line, and is not changed."""
        folder = Path(self.mktemp())
        folder.mkdir()
        self.assertEqual(self.run_command("a", f"--to={folder}"), FAILED)
        self.assertEqual(self.err.getvalue(), f"twist kubeapi-plugin: {folder} exists: nothing was written\n")
        self.assertEqual(list(folder.iterdir()), [])

    def test_usage(self) -> None:
        """Wrong arguments are errors of one line."""
        for arguments, reason in (
            ((), "NAME is required"),
            (("--kind=admission",), "NAME is required"),
            (("a", "--kind=scheduler"), "--kind must be one or several of admission"),
            (("a", "--kind="), "--kind must be one or several of admission"),
            (("a/b",), "invalid name 'a/b'"),
            (("a", "b"), "b"),
            (("a", "--unknown"), "unknown"),
        ):
            error = self.assertRaises(UsageError, plugin.Options().parseOptions, arguments)
            self.assertIn(reason, str(error))
            self.assertNotIn("\n", str(error))

    def test_help(self) -> None:
        """The help has the kinds and the usage with the name."""
        text = str(plugin.Options())
        self.assertIn("Usage: twist kubeapi-plugin NAME [flags]", text)
        self.assertIn("admission, authorizer, authenticator, controller, storage, converter", " ".join(text.split()))

    def test_found(self) -> None:
        """Twisted finds the command."""
        (maker,) = (one for one in getPlugins(IServiceMaker) if one.tapname == "kubeapi-plugin")
        self.assertIsInstance(maker.options(), plugin.Options)
