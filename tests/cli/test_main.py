# mypy: allow-untyped-calls
"""Tests for L{kubetwist.cli.main}."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from unittest.mock import patch

import click

from twisted.trial.unittest import SynchronousTestCase, TestCase

from kubetwist.cli import main
from kubetwist.cli.command import CommandError
from kubetwist.cli.flagtypes import FlagError
from kubetwist.cli.main import COMMANDS, CommandTable, Row
from kubetwist.server.errors import StartError
from kubetwist.storage.errors import StorageUnavailable
from tests.cli.commandruns import run_kubetwist

#: Exceptions that the command C{fail} raises, by its argument.
ERRORS = {
    "command": CommandError("no way"),
    "start": StartError("no way"),
    "storage": StorageUnavailable("no way"),
    "flag": FlagError("no such value"),
    "usage": click.UsageError("no such value"),
    "code": click.exceptions.Exit(7),
    "abort": click.Abort(),
    "pipe": BrokenPipeError(),
}


@click.command("fail")
@click.argument("kind")
@click.option("--level", type=int)
def fail(kind: str, level: int | None) -> None:
    """Fail. The rest of the text is in the long help."""
    click.echo("begin")
    if kind in ERRORS:
        raise ERRORS[kind]


def run(*arguments: str) -> tuple[int, str, str]:
    """Run a group with the command C{fail}; return the exit code, and what it writes to stdout and stderr."""
    table = CommandTable({"fail": Row("tests.cli.test_main:fail", "Fail.")}, "kubetwist", "A group.")
    out, err = io.StringIO(), io.StringIO()
    with patch.object(main, "command", table), redirect_stdout(out), redirect_stderr(err):
        code = main.run(arguments)
    return code, out.getvalue(), err.getvalue()


class TableTests(SynchronousTestCase):
    """The table of the subcommands."""

    def test_commands(self) -> None:
        """Each row names a command of its name, whose help begins with a sentence."""
        ctx = click.Context(main.command, info_name="kubetwist")
        self.assertEqual(main.command.list_commands(ctx), list(COMMANDS))
        for name, row in COMMANDS.items():
            command = main.command.get_command(ctx, name)
            assert command is not None
            self.assertEqual(command.name, name)
            self.assertRegex(row.help, r"^[A-Z].*\.$")
        self.assertIsNone(main.command.get_command(ctx, "nothing"))

    def test_help(self) -> None:
        """The help lists the commands."""
        with redirect_stdout(io.StringIO()) as out:
            self.assertEqual(main.run(["--help"]), 0)
        for name, row in COMMANDS.items():
            self.assertRegex(out.getvalue(), rf"(?m)^  {name} +{row.help[:20].replace('$', '.')}")

    def test_no_command(self) -> None:
        """Without a command, the help is written to stderr, and the exit code is 2."""
        with redirect_stderr(io.StringIO()) as err:
            self.assertEqual(main.run([]), 2)
        self.assertIn("serve", err.getvalue())

    def test_lazy(self) -> None:
        """The help and the refusal of unknown commands import neither Twisted nor a command."""
        program = (
            "import sys\n"
            "from kubetwist.cli import main\n"
            "main.run(sys.argv[1:])\n"
            "loaded = [name for name in sys.modules if name.split('.')[0] == 'twisted' or '.cli.commands' in name]\n"
            "sys.exit(str(loaded) if loaded else 0)"
        )
        for argument in ("--help", "nothing"):
            ended = subprocess.run([sys.executable, "-c", program, argument], capture_output=True, text=True)
            self.assertEqual(ended.returncode, 0, ended.stderr)


class ErrorTests(SynchronousTestCase):
    """Errors and exit codes."""

    def test_failed(self) -> None:
        """A command that fails prints one line, and the exit code is 1."""
        for kind in ("command", "start", "storage"):
            self.assertEqual(run("fail", kind), (1, "begin\n", "kubetwist fail: no way\n"))

    def test_usage(self) -> None:
        """An invalid command line is one line, too, and the exit code is 2."""
        self.assertEqual(
            run("fail", "flag"), (2, "begin\n", "kubetwist fail: no such value; see kubetwist fail --help\n")
        )
        self.assertEqual(
            run("fail", "usage"), (2, "begin\n", "kubetwist fail: no such value; see kubetwist fail --help\n")
        )
        self.assertEqual(
            run("fail", "x", "--level"),
            (2, "", "kubetwist fail: Option '--level' requires an argument; see kubetwist fail --help\n"),
        )
        self.assertEqual(run("fail"), (2, "", "kubetwist fail: Missing argument 'KIND'; see kubetwist fail --help\n"))
        self.assertEqual(run("nothing"), (2, "", "kubetwist: No such command 'nothing'; see kubetwist --help\n"))

    def test_codes(self) -> None:
        """A command can choose its exit code, without a message."""
        self.assertEqual(run("fail", "nothing"), (0, "begin\n", ""))
        self.assertEqual(run("fail", "code"), (7, "begin\n", ""))
        self.assertEqual(run("fail", "abort")[0], 130)

    def test_broken_pipe(self) -> None:
        """If the reader of the output ends, the command ends without a message."""
        duplicates: list[tuple[int, int]] = []
        with patch.object(os, "dup2", lambda one, other: duplicates.append((one, other))):
            self.assertEqual(run("fail", "pipe"), (1, "begin\n", ""))
        [(descriptor, replaced)] = duplicates
        os.close(descriptor)
        self.assertEqual(replaced, 1)

    def test_bug(self) -> None:
        """Another exception is a bug, and has a traceback."""
        with patch.dict(ERRORS, {"bug": ZeroDivisionError()}):
            self.assertRaises(ZeroDivisionError, run, "fail", "bug")


class ProcessTests(TestCase):
    """The command in a separate process."""

    async def test_module(self) -> None:
        """C{python -m kubetwist} is the command."""
        ended = await run_kubetwist("--version")
        self.assertEqual((ended.code, ended.err), (0, ""))
        self.assertRegex(ended.out, r"^kubetwist \d+\.\d+\.\S+ \(Kubernetes v1\.\d+\.\d+\)\n$")
        ended = await run_kubetwist("nothing")
        self.assertEqual((ended.code, ended.out), (2, ""))
