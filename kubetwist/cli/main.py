"""
The command C{kubetwist}: the table of its subcommands, errors and exit codes.

A subcommand is a row of L{COMMANDS} and a module of L{kubetwist.cli.commands}. The module is imported when the
subcommand is used, so that the help and completion do not import Twisted and the server. It has an attribute
C{command}, a C{click.Command} or C{click.Group}:

 - A command with a table of flags is C{flag_command(Options, run)} of L{kubetwist.cli.flagcommand}: names, defaults,
   required flags, validation and help come from the subclass of L{kubetwist.cli.command.CommandOptions}, which
   C{twist} can use, too.
 - Another command is declared with decorators of click. Its function runs a coroutine in the reactor by
   L{kubetwist.cli.command.run_coroutine}.

A command writes its result to stdout by C{click.echo} or C{CommandService.print_line}. It does not print errors, but
raises:

 - C{click.UsageError} or L{kubetwist.cli.flagtypes.FlagError} for an invalid command line: one line on stderr, exit
   code 2.
 - L{kubetwist.cli.command.CommandError}, C{StartError} or C{StorageError} with a message of one line: exit code 1.
 - C{click.exceptions.Exit(code)} for another exit code, without a message.

Each other exception is a bug: its traceback is printed, and the exit code is 1. An interrupted command has the exit
code 128 plus the number of the signal. C{kubetwist serve} has the exit codes of C{twist kubeapi}.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Final, NoReturn

import click
from attrs import frozen

PROGRAM: Final = "kubetwist"
FAILED: Final = 1
USAGE: Final = 2
#: Exit code of an interrupted program, as in shells.
INTERRUPTED: Final = 130


@frozen
class Row:
    """
    A subcommand.

    @ivar place: The module and the attribute of the C{click.Command}: C{"package.module:attribute"}.
    @ivar help: The line in the help of C{kubetwist}.
    """

    place: str
    help: str


#: The subcommands in the order of the help.
COMMANDS: Final[Mapping[str, Row]] = {
    "serve": Row("kubetwist.cli.commands.serve:command", "Run the Kubernetes API server."),
    "health": Row("kubetwist.cli.commands.health:command", "Check the health of a server."),
    "backup": Row("kubetwist.cli.commands.backup:command", "Back up the data directory of a server."),
    "restore": Row("kubetwist.cli.commands.restore:command", "Create a data directory from a backup."),
    "migrate": Row("kubetwist.cli.commands.migrate:command", "Copy all objects to another storage backend."),
    "certs": Row("kubetwist.cli.commands.certs:command", "Check, renew and rotate keys and certificates."),
    "token": Row(
        "kubetwist.cli.commands.token:command",
        "Create tokens of service accounts and users, and sign-in links of the web UI.",
    ),
    "why": Row("kubetwist.cli.commands.why:command", "Explain an authorization decision of a server."),
    "hardening": Row("kubetwist.cli.commands.hardening:command", "Check flags of a server by the CIS benchmark."),
    "doctor": Row("kubetwist.cli.commands.doctor:command", "Check the environment and the flags of a server."),
    "plugin": Row("kubetwist.cli.commands.plugin:command", "Write a package with plugins to start from."),
    # The module belongs to the layer of the means for tests, above this one.
    "envtest": Row("kubetwist.testing.envtest.command:command", "Write a directory for $KUBEBUILDER_ASSETS."),
    "completion": Row("kubetwist.cli.commands.completion:command", "Print a script for completion in a shell."),
}


def load_command(row: Row) -> click.Command:
    """Import the command of a row."""
    module, _, attribute = row.place.partition(":")
    command = getattr(import_module(module), attribute)
    assert isinstance(command, click.Command), row.place
    return command


class CommandTable(click.Group):
    """A group whose commands are imported when they are used."""

    def __init__(self, rows: Mapping[str, Row], name: str, help: str, **settings: Any) -> None:
        """
        @param rows: The commands.
        @param name: The name of the group.
        @param help: The description of the group.
        @param settings: Further arguments of C{click.Group}.
        """
        super().__init__(name=name, help=help, **settings)
        self._rows = rows

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands in the order of the table."""
        return list(self._rows)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command; L{None} if there is none of this name."""
        row = self._rows.get(cmd_name)
        return None if row is None else load_command(row)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the names and descriptions of the commands, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, row.help) for name, row in self._rows.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[click.shell_completion.CompletionItem]:
        """Return the commands that begin with C{incomplete}, without importing them."""
        from click.shell_completion import CompletionItem

        found = [CompletionItem(name, help=row.help) for name, row in self._rows.items() if name.startswith(incomplete)]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def invoke(self, ctx: click.Context) -> object:
        """
        Run the command.

        @raise CommandFailed: It failed for a reason that the user can understand.
        """
        try:
            return super().invoke(ctx)
        except Exception as error:
            translated = _translate(error, ctx)
            if translated is None:
                raise
            raise translated from error


class CommandFailed(click.ClickException):
    """
    A command failed. The message is a single line for the user.

    @ivar path: The program and the subcommand.
    """

    def __init__(self, message: str, path: str) -> None:
        super().__init__(message)
        self.path = path


def _translate(error: Exception, ctx: click.Context) -> Exception | None:
    """Return the exception of click for an error of a command; L{None} if it is a bug or an exception of click."""
    path = f"{ctx.command_path} {ctx.invoked_subcommand}"
    if isinstance(error, click.UsageError) and error.ctx is None:
        # The parser of click does not know the command.
        return CommandUsageError(error.format_message(), path)
    if isinstance(error, (click.ClickException, click.exceptions.Exit, click.Abort)):
        return None
    from .command import expected_failure
    from .flagtypes import FlagError

    if isinstance(error, FlagError):
        return CommandUsageError(str(error), path)
    return CommandFailed(str(error), path) if expected_failure(error) else None


class CommandUsageError(click.UsageError):
    """
    The command line is invalid, which was found without the context of click.

    @ivar path: The program and the subcommand.
    """

    def __init__(self, message: str, path: str) -> None:
        super().__init__(message)
        self.path = path


def _print_version(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from importlib.metadata import version

        from ..server.version import git_version
        from .flags.kubetwist import DEFAULT_KUBERNETES_VERSION

        click.echo(f"{PROGRAM} {version('kubetwist')} (Kubernetes {git_version(DEFAULT_KUBERNETES_VERSION)})")
        ctx.exit()


command = CommandTable(
    COMMANDS,
    PROGRAM,
    "The Kubernetes API server, and commands for its operation.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    params=[
        click.Option(
            ["--version"],
            is_flag=True,
            expose_value=False,
            is_eager=True,
            callback=_print_version,
            help="Print the version of kubetwist and the Kubernetes release, and exit.",
        )
    ],
)


def run(arguments: Sequence[str] | None = None) -> int:
    """
    Run the command line.

    @param arguments: The arguments after the name of the program; by default the arguments of the process.
    @return: The exit code.
    """
    try:
        result = command.main(None if arguments is None else list(arguments), prog_name=PROGRAM, standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return USAGE
    except click.UsageError as error:
        path = error.path if isinstance(error, CommandUsageError) else _path(error.ctx)
        click.echo(f"{path}: {error.format_message().rstrip('.')}; see {path} --help", err=True)
        return USAGE
    except click.ClickException as error:
        path = error.path if isinstance(error, CommandFailed) else PROGRAM
        click.echo(f"{path}: {error.format_message()}", err=True)
        return FAILED
    except click.Abort:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of the output has ended. The interpreter must not write the rest at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return FAILED
    # The code of C{click.exceptions.Exit}; commands return nothing.
    return result if isinstance(result, int) else 0


def _path(ctx: click.Context | None) -> str:
    return PROGRAM if ctx is None else ctx.command_path


def main() -> NoReturn:
    """Run the command line of the process, and exit."""
    raise SystemExit(run())
