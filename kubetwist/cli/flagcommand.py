"""Commands of click that are made of tables of flags."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

import click

from .command import CommandOptions, CommandService, run_command
from .flagtypes import Flag, format_default

#: A command of C{twist}, in the texts of tables.
_TWIST: Final = re.compile(r"twist kubeapi(?:-([a-z]+))?")


def kubetwist_text(text: str) -> str:
    """Replace the commands of C{twist} in a text by the commands of C{kubetwist}."""
    return _TWIST.sub(lambda match: f"kubetwist {match[1] or 'serve'}", text)


if TYPE_CHECKING:
    ValueType = click.ParamType[Any]
else:
    # Not generic in all versions of click.
    ValueType = click.ParamType


class FlagValue(ValueType):
    """The value of a flag, parsed by the type of the flag."""

    def __init__(self, flag: Flag) -> None:
        self._parse = flag.flag_type.parse
        self.name = flag.flag_type.metavar or "boolean"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """
        Parse a value.

        @raise click.BadParameter: It is invalid.
        """
        try:
            return self._parse(value)
        except ValueError as error:
            self.fail(f'"{value}": {error}', param, ctx)


class FlagOption(click.Option):
    """
    An option that is made of a flag.

    @ivar flag: The flag.
    """

    def __init__(self, flag: Flag, *, required: bool) -> None:
        self.flag = flag
        default = format_default(flag)
        text = kubetwist_text(flag.help)
        super().__init__(
            [f"--{flag.name}"],
            type=FlagValue(flag),
            help=f"{text} (default {default})" if default else text,
            required=required,
            multiple=flag.flag_type.merge is not None,
            metavar=flag.flag_type.metavar,
        )


class FlagCommand(click.Command):
    """A command whose flags have the syntax of pflag, like C{twist kubeapi}."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse a command line. Click has no options whose value can only follow an equals sign."""
        return super().parse_args(ctx, list(self._with_values(args)))

    def _with_values(self, arguments: Sequence[str]) -> list[str]:
        flags = {option.flag.name: option.flag for option in self.params if isinstance(option, FlagOption)}
        written: list[str] = []
        remaining = list(arguments)
        while remaining:
            argument = remaining.pop(0)
            if argument == "--":
                return [*written, argument, *remaining]
            flag = flags.get(_normalize(argument.removeprefix("--"))) if argument.startswith("--") else None
            if flag is not None and flag.flag_type.value_optional:
                argument += "=true"
            written.append(argument)
            if flag is not None and not flag.flag_type.value_optional and remaining:
                written.append(remaining.pop(0))
        return written

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, grouped by the sections of the table."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = None if isinstance(parameter, click.Argument) else parameter.get_help_record(ctx)
            if record is not None:
                section = f"{parameter.flag.section} flags" if isinstance(parameter, FlagOption) else "Options"
                sections.setdefault(section, []).append(record)
        for section, records in sections.items():
            with formatter.section(section):
                formatter.write_dl(records)


def _normalize(name: str) -> str:
    # As in kube-apiserver, underscores are accepted instead of dashes.
    return name.replace("_", "-")


def flag_command(
    options_class: Callable[[], CommandOptions], work: Callable[[CommandService], Coroutine[Any, Any, None]]
) -> FlagCommand:
    """
    Return the command of click for a command of C{twist}.

    @param options_class: The options. Its flags become options of click, and its argument an argument.
    @param work: Runs the command in the reactor. Raises L{kubetwist.cli.command.CommandError} to fail.
    """
    template = options_class()
    parameters: list[click.Parameter] = [
        FlagOption(flag, required=flag.name in template.required) for flag in template.flags
    ]
    if template.argument:
        parameters.append(click.Argument(["argument"], metavar=template.argument))

    def invoke(argument: str = "", **values: Any) -> None:
        ctx = click.get_current_context()
        options = options_class()
        options.invoked_as = ctx.command_path
        if template.argument:
            options.set_argument(argument)
        parsed = {}
        for parameter in parameters:
            if isinstance(parameter, FlagOption):
                value = values[str(parameter.name)]
                merge = parameter.flag.flag_type.merge
                if merge is not None:
                    value = reduce(merge, value) if value else None
                if value is not None:
                    parsed[parameter.flag.name] = value
        options.apply(parsed)
        options.check()
        run_command(options, work)

    return FlagCommand(
        template.command.removeprefix("kubeapi-"),
        params=parameters,
        callback=invoke,
        help=help_text(kubetwist_text(template.description)),
        context_settings={"token_normalize_func": _normalize},
    )


def help_text(description: str) -> str:
    """Mark the indented paragraphs of a description, which are examples, so that click does not wrap them."""
    paragraphs = description.strip("\n").split("\n\n")
    return "\n\n".join(f"\b\n{text}" if text.startswith(" ") else text for text in paragraphs)
