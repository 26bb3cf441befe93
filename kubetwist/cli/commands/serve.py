"""C{kubetwist serve}: the API server, with the flags, the help and the exit codes of C{twist kubeapi}."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

from twisted.application.service import IService, IServiceMaker
from twisted.application.twist._options import TwistOptions
from twisted.application.twist._twist import Twist
from twisted.plugin import IPlugin, getPlugins
from twisted.python.usage import Options
from zope.interface import implementer

from ..commandline import FlagOptions

#: The subcommand of C{twist}.
KUBEAPI: Final = "kubeapi"


@implementer(IPlugin, IServiceMaker)
class ServePlugin:
    """
    The plugin C{twist kubeapi} under another name.

    @ivar invoked_as: The program and command for messages.
    """

    tapname = KUBEAPI

    def __init__(self, plugin: Any, invoked_as: str) -> None:
        self._plugin = plugin
        self.invoked_as = invoked_as
        self.description = plugin.description

    def options(self) -> Options:
        """Return the options of the server."""
        options: FlagOptions = self._plugin.options()
        options.invoked_as = self.invoked_as
        return options

    def makeService(self, options: Options) -> IService:
        """Return the service of the server."""
        service: IService = self._plugin.makeService(options)
        return service


class _ServeOptions(TwistOptions):
    """The options of C{twist}, with one plugin."""

    invoked_as = ""

    @property
    def plugins(self) -> Mapping[str, IServiceMaker]:
        """The plugin of the server."""
        if "plugins" not in self:
            found = [plugin for plugin in getPlugins(IServiceMaker) if plugin.tapname == KUBEAPI]
            self["plugins"] = {KUBEAPI: ServePlugin(found[0], self.invoked_as)}
        plugins: Mapping[str, IServiceMaker] = self["plugins"]
        return plugins


def run_server(arguments: list[str], invoked_as: str) -> None:
    """
    Run the server until it is stopped.

    @param arguments: The flags of C{twist kubeapi}.
    @param invoked_as: The program and command for messages.
    @raise SystemExit: Help was requested, or the flags are invalid.
    """
    options = _ServeOptions()
    options.invoked_as = invoked_as
    options.parseOptions([KUBEAPI, *arguments])
    plugin = options.plugins[KUBEAPI]
    service = Twist.service(plugin, options.subOptions)
    Twist.startService(options["reactor"], service)
    Twist.run(options)


class ServeCommand(click.Command):
    """The command, whose flags are parsed by the options of C{twist kubeapi}."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the arguments as they are."""
        ctx.args = list(args)
        return ctx.args

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the flags of the server that begin with C{incomplete}."""
        from ..kubeapi import Options as KubeAPIOptions

        if not incomplete.startswith("-"):
            return []
        flags = [*KubeAPIOptions.flags, *KubeAPIOptions.general]
        return [
            CompletionItem(f"--{flag.name}", help=flag.help.partition("\n")[0])
            for flag in flags
            if f"--{flag.name}".startswith(incomplete)
        ]

    def invoke(self, ctx: click.Context) -> None:
        """Run the server."""
        run_server(ctx.args, ctx.command_path)


command = ServeCommand("serve", add_help_option=False)
