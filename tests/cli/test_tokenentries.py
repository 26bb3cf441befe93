# mypy: allow-untyped-calls
"""Tests for L{kubetwist.cli.tokenentries}."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis.strategies import lists, text

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import UserInfo
from kubetwist.authentication.tokenfile import users_of_file
from kubetwist.cli.command import CommandError
from kubetwist.cli.tokenentries import add_entry, format_entry, new_entry


class EntryTests(SynchronousTestCase):
    """Lines of token files."""

    @given(name=text(min_size=1), uid=text(), groups=lists(text()))
    def test_read(self, name: str, uid: str, groups: list[str]) -> None:
        """A server reads the user that was written, or the values are refused."""
        try:
            line = format_entry("secret", name, uid, groups)
        except CommandError:
            return
        self.assertEqual(line.count("\n"), 1)
        self.assertEqual(users_of_file(line.encode(), Path("x")), {"secret": UserInfo(name, uid, tuple(groups))})

    def test_refused(self) -> None:
        """Line breaks, empty names and groups with commas are refused."""
        for name, groups in (("a\nb", []), ("", []), ("a", ["x,y"]), ("a", [""])):
            self.assertRaises(CommandError, format_entry, "secret", name, "1", groups)

    def test_random(self) -> None:
        """Tokens and UIDs are random."""
        entries = [new_entry("bob", "", ["dev"]) for _ in range(2)]
        self.assertEqual(len({token for token, _ in entries}), 2)
        for token, line in entries:
            self.assertGreaterEqual(len(token), 43)
            self.assertRegex(line, rf"^{token},bob,[-0-9a-f]{{36}},dev\n$")


class FileTests(SynchronousTestCase):
    """Users in token files."""

    def setUp(self) -> None:
        """Make a folder."""
        self.path = Path(self.mktemp()) / "tokens.csv"
        self.path.parent.mkdir()

    def test_created(self) -> None:
        """The file is created for its owner only."""
        token = add_entry(self.path, "bob", "7", ["dev", "ops"])
        self.assertEqual(self.path.stat().st_mode & 0o777, 0o600)
        self.assertEqual(
            users_of_file(self.path.read_bytes(), self.path), {token: UserInfo("bob", "7", ("dev", "ops"))}
        )

    def test_added(self) -> None:
        """Existing lines and the mode of the file are kept, and a user keeps the UID."""
        self.path.write_text("old,bob,7")
        self.path.chmod(0o640)
        token = add_entry(self.path, "bob", "", [])
        self.assertEqual(self.path.read_text(), f"old,bob,7\n{token},bob,7\n")
        self.assertEqual(self.path.stat().st_mode & 0o777, 0o640)

    def test_invalid(self) -> None:
        """A file that a server would refuse is not changed."""
        self.path.write_text("old,bob\n")
        error = self.assertRaises(CommandError, add_entry, self.path, "bob", "", [])
        self.assertIn("at least 3 columns", str(error))
        self.assertEqual(self.path.read_text(), "old,bob\n")

    def test_unwritable(self) -> None:
        """A folder that does not exist is an error of one line."""
        path = self.path.parent / "missing" / "tokens.csv"
        error = self.assertRaises(CommandError, add_entry, path, "bob", "", [])
        self.assertEqual(str(error), f"cannot write {path.resolve()}: No such file or directory")
