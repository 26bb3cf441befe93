# mypy: allow-untyped-calls
"""Tests for L{kubetwist.cli.flagcommand}."""

from __future__ import annotations

from typing import Any, ClassVar
from unittest.mock import patch

import click
from click.testing import CliRunner

from twisted.trial.unittest import SynchronousTestCase, TestCase

from kubetwist.cli import flagcommand
from kubetwist.cli.command import CommandOptions, CommandService
from kubetwist.cli.flagcommand import flag_command, kubetwist_text
from kubetwist.cli.flagtypes import BOOLEAN, DURATION, NATURAL, STRING, STRINGS, Flag, FlagError
from tests.cli.commandruns import run_kubetwist


class Options(CommandOptions):
    """Options with one flag of each form."""

    command: ClassVar[str] = "kubeapi-try"
    description: ClassVar[str] = "Try it, as twist kubeapi does\nin two lines.\n\n    twist kubeapi-try X --size=1\n"
    required: ClassVar = ("to",)
    argument: ClassVar[str] = "THING"
    flags: ClassVar = (
        Flag("to", STRING, "", "The target of twist kubeapi-migrate.", "One"),
        Flag("keep-all", BOOLEAN, True, "Keep all.", "One"),
        Flag("size", NATURAL, 3, "The size.", "Other"),
        Flag("kind", STRINGS, ("a",), "The kinds.", "Other"),
        Flag("wait", DURATION, 90.0, "The time.", "Other"),
    )
    thing = ""

    def set_argument(self, text: str) -> None:
        """Set the thing."""
        self.thing = text

    def check(self) -> None:
        """Check the size."""
        super().check()
        if self["size"] > 10:
            raise FlagError("too large")


async def work(service: CommandService) -> None:
    """Do nothing."""


class FlagCommandTests(SynchronousTestCase):
    """Commands of click that are made of tables of flags."""

    def parse(self, *arguments: str) -> Options:
        """Return the options of a command line."""
        made: list[Any] = []
        with patch.object(flagcommand, "run_command", lambda options, work: made.append(options)):
            flag_command(Options, work).main(list(arguments), prog_name="kubetwist try", standalone_mode=False)
        [options] = made
        assert isinstance(options, Options)
        return options

    def test_defaults(self) -> None:
        """Flags that are not set have the defaults of the table."""
        options = self.parse("--to=x", "pod")
        values = {flag.name: options[flag.name] for flag in options.flags}
        self.assertEqual(values, {"to": "x", "keep-all": True, "size": 3, "kind": ("a",), "wait": 90.0})
        self.assertEqual((options.thing, options.changed), ("pod", {"to"}))
        self.assertEqual(options.program, "kubetwist try")

    def test_syntax(self) -> None:
        """The syntax is the one of pflag: switches need an equals sign for a value, repeated lists are merged."""
        options = self.parse(
            "--keep-all", "pod", "--to", "--keep-all", "--kind=b,c", "--kind", "d", "--wait=1m", "--keep_all=false"
        )
        values = {flag.name: options[flag.name] for flag in options.flags}
        self.assertEqual(
            values, {"to": "--keep-all", "keep-all": False, "size": 3, "kind": ("b", "c", "d"), "wait": 60.0}
        )
        self.assertEqual(options.thing, "pod")
        self.assertTrue(self.parse("--to=x", "--keep-all", "--", "--keep-all")["keep-all"])

    def test_same_as_twist(self) -> None:
        """The values are those that C{twist} parses."""
        for arguments in (
            ["pod", "--to=x"],
            ["pod", "--to", "x", "--keep-all=0", "--size", "7", "--kind=b", "--kind=c"],
            ["--to=x", "--keep-all", "--wait=1h2s", "pod"],
        ):
            twist = Options()
            twist.parseOptions(arguments)
            click_options = self.parse(*arguments)
            self.assertEqual(dict(click_options), dict(twist))
            self.assertEqual((click_options.thing, click_options.changed), (twist.thing, twist.changed))

    def test_invalid(self) -> None:
        """Invalid values, missing flags and combinations are usage errors."""
        for message, arguments in (
            ("Missing option '--to'", ["pod"]),
            ("Missing argument 'THING'", ["--to=x"]),
            ("Invalid value for '--size': \"-1\": it must not be negative", ["pod", "--to=x", "--size=-1"]),
            ("No such option '--sze'", ["pod", "--to=x", "--sze=1"]),
        ):
            error = self.assertRaises(click.UsageError, self.parse, *arguments)
            self.assertIn(message, error.format_message())
        self.assertEqual(str(self.assertRaises(FlagError, self.parse, "pod", "--to=x", "--size=11")), "too large")

    def test_help(self) -> None:
        """The help has the texts, defaults and sections of the table, with the commands of C{kubetwist}."""
        text = CliRunner().invoke(flag_command(Options, work), ["--help"], terminal_width=100).output
        self.assertIn("Try it, as kubetwist serve does in two lines.", text)
        self.assertIn("\n      kubetwist try X --size=1\n", text)
        self.assertIn("The target of kubetwist migrate. [required]", " ".join(text.split()))
        self.assertRegex(
            text, r"(?s)One flags:\n  --to string .*--keep-all .*default true.*Other flags:\n  --size int "
        )
        self.assertIn("(default 1m30s)", text)

    def test_text(self) -> None:
        """Commands of C{twist} are replaced."""
        self.assertEqual(
            kubetwist_text("twist kubeapi, twist kubeapi-restore x"), "kubetwist serve, kubetwist restore x"
        )


class ProcessTests(TestCase):
    """Commands that run in the reactor."""

    async def test_failed(self) -> None:
        """A command that fails prints one line with its name."""
        ended = await run_kubetwist("backup", "--to=x", f"--data-dir={self.mktemp()}")
        self.assertEqual((ended.code, ended.out), (1, ""))
        self.assertRegex(ended.err, r"^kubetwist backup: .* is not a data directory of kubetwist: .*\n$")

    async def test_done(self) -> None:
        """A command that succeeds prints its result."""
        folder = self.mktemp()
        ended = await run_kubetwist("plugin", "team-labels", f"--to={folder}")
        self.assertEqual((ended.code, ended.err), (0, ""))
        self.assertIn(f"{folder}/pyproject.toml\n", ended.out)
