"""C{twist kubeapi-plugin NAME}: write a package with plugins, with tests, to start from."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from twisted.application.service import IService

from .command import CommandError, CommandOptions, CommandService
from .flagtypes import STRING, STRINGS, Flag, FlagError
from .plugintemplate import KINDS, TemplateError, check_name, write_package


class Options(CommandOptions):
    """
    Options of C{twist kubeapi-plugin}.

    @ivar name: The name of the project.
    """

    command: ClassVar[str] = "kubeapi-plugin"
    description: ClassVar[str] = (
        "Write a package with plugins for twist kubeapi: modules, tests that pass, the drop-in module that\n"
        "makes Twisted find the plugins, pyproject.toml and README.md.\n"
        "\n"
        "    twist kubeapi-plugin team-labels --kind=admission,controller\n"
        "\n"
        "NAME is the name of the project."
    )
    flags: ClassVar = (
        Flag("kind", STRINGS, ("admission",), f"The kinds of plugins: {', '.join(KINDS)}.", "Plugin"),
        Flag("to", STRING, "", "The folder of the project, which must not exist. The default is ./NAME.", "Plugin"),
    )
    argument: ClassVar[str] = "NAME"
    name = ""

    def set_argument(self, text: str) -> None:
        """Set the name of the project."""
        self.name = text

    def check(self) -> None:
        """Check the name and the kinds."""
        if not self.name:
            raise FlagError("NAME is required")
        unknown = sorted(set(self["kind"]) - set(KINDS))
        if unknown or not self["kind"]:
            raise FlagError(f"--kind must be one or several of {', '.join(KINDS)}")
        try:
            check_name(self.name)
        except TemplateError as error:
            raise FlagError(str(error)) from None


async def run(service: CommandService) -> None:
    """Write the files, and print their paths."""
    options = service.options
    assert isinstance(options, Options)
    folder = Path(options["to"] or options.name)
    try:
        written = write_package(options.name, options["kind"], folder)
    except TemplateError as error:
        raise CommandError(str(error)) from error
    for path in written:
        service.print_line(str(folder / path))


def makeService(options: Options) -> IService:
    """Return the service that C{twist} starts."""
    from twisted.internet import reactor

    return CommandService(options, reactor, run).install()
