# mypy: allow-untyped-calls
"""Tests for L{kubetwist.cli.commands.token}; F{tests/e2e/test_kubetwist.py} creates tokens of a server."""

from __future__ import annotations

from pathlib import Path

import click
from click.testing import CliRunner

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import UserInfo
from kubetwist.authentication.tokenfile import users_of_file
from kubetwist.authentication.usertokens import sign_user
from kubetwist.cli.command import CommandError
from kubetwist.cli.commands.token import command, seconds_of, token_request


class TokenTests(SynchronousTestCase):
    """C{kubetwist token}."""

    def run_command(self, *arguments: str) -> str:
        """Run the command, and return its output."""
        result = CliRunner().invoke(command, list(arguments), standalone_mode=False)
        if result.exception is not None:
            raise result.exception
        return result.output

    def test_duration(self) -> None:
        """Durations have the format of Go, and are at least one second."""
        self.assertEqual([seconds_of(text) for text in ("", "10m", "1h0m1.9s")], [None, 600, 3601])
        for text in ("10", "-1h", "1ms", "x"):
            self.assertRaises(click.UsageError, seconds_of, text)

    def test_request(self) -> None:
        """Settings that are not given are left to the server."""
        self.assertEqual(token_request([], None)["spec"], {})
        self.assertEqual(token_request(["a", "b"], 60)["spec"], {"audiences": ["a", "b"], "expirationSeconds": 60})

    def test_line(self) -> None:
        """Without a file, the line for one is printed."""
        [(token, user)] = users_of_file(
            self.run_command("user", "bob", "--group=dev", "--group=ops", "--uid=7").encode(), Path("x")
        ).items()
        self.assertEqual((user, len(token) >= 43), (UserInfo("bob", "7", ("dev", "ops")), True))

    def test_file(self) -> None:
        """With a file, the token is printed, and the file has its user."""
        path = self.mktemp()
        token = self.run_command("user", "bob", f"--file={path}", "--uid=7").rstrip("\n")
        self.assertEqual(users_of_file(Path(path).read_bytes(), Path(path)), {token: UserInfo("bob", "7", ())})

    def test_signed(self) -> None:
        """With the key of a server for tests, the token has a signature."""
        path = Path(self.mktemp())
        path.write_text("k" * 32 + "\n")
        token = self.run_command("user", "bob", f"--key-file={path}", "--group=dev").rstrip("\n")
        self.assertEqual(token, sign_user(b"k" * 32, UserInfo("bob", "", ("dev",))))
        path.write_text("short")
        for file, message in ((path, "the key has 5 bytes"), (f"{path}.missing", "cannot read")):
            error = self.assertRaises(CommandError, self.run_command, "user", "bob", f"--key-file={file}")
            self.assertIn(message, str(error))

    def test_exclusive(self) -> None:
        """A token is either in a file or signed."""
        self.assertRaises(click.UsageError, self.run_command, "user", "bob", "--file=x", "--key-file=y")
