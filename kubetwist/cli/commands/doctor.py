"""C{kubetwist doctor}: check the environment and the flags of a server."""

from __future__ import annotations

import click

from ..doctor import Options, diagnose, parse, report


class DoctorCommand(click.Command):
    """The command, whose flags are parsed as by the server."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the arguments unchanged."""
        ctx.args = list(args)
        return ctx.args

    def invoke(self, ctx: click.Context) -> None:
        """
        Run the checks and print the report.

        @raise FlagError: A flag is invalid.
        """
        if "--help" in ctx.args or "-h" in ctx.args:
            click.echo(str(Options()))
            return
        options = parse(ctx.args)
        text, code = report(diagnose(options), options)
        click.echo(text, nl=False)
        ctx.exit(code)


command = DoctorCommand("doctor", add_help_option=False)
