"""Options of the C{twist} subcommands, defined by tables of flags."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar

from twisted.python import usage

from ..api.resource import JSONObject
from .flagformat import (
    flags_of,
    typed_flags,
)
from .flagtypes import BOOLEAN, Flag, FlagError, describe_flags, parse_flags

_USAGE_EXIT = 64
HELP = Flag("help", BOOLEAN, False, "Print this text and exit.", "Global")


class FlagOptions(usage.Options):
    """
    The values of flags, by name: C{options["secure-port"]}.

    @cvar command: The subcommand of C{twist}.
    @cvar flags: The flags of the command.
    @cvar description: The description in the help.
    @cvar general: Flags that print something and exit, such as C{--version}; see L{handle_query_flags}.
    @ivar parent: The options of C{twist}, if C{twist} runs the command.
    @ivar invoked_as: The program and command as the user typed them, if not C{twist} and L{command}.
    @ivar changed: The names of the flags on the command line (pflag: C{Changed}).
    """

    command: ClassVar[str]
    description: ClassVar[str]
    flags: ClassVar[Sequence[Flag]]
    general: ClassVar[Sequence[Flag]] = (HELP,)
    parent: Any = None
    changed: frozenset[str] = frozenset()
    invoked_as: str = ""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # Twisted has no annotations here
        self.update({flag.name: flag.default for flag in self.flags})

    @property
    def program(self) -> str:
        """The program and its command, for messages: C{twist kubeapi}."""
        return self.invoked_as or f"twist {self.command}"

    def parseOptions(self, options: Sequence[str] | None = None) -> None:
        """
        Parse and validate the command line.

        @raise usage.UsageError: It is invalid. Under C{twist} the process prints one line and exits instead.
        """
        arguments = list(sys.argv[1:] if options is None else options)
        if "--help" in arguments or "-h" in arguments:
            with suppress(FlagError):
                self.read([argument for argument in arguments if argument not in ("--help", "-h")])
            print(self)
            raise SystemExit(0)
        self.handle_query_flags(arguments)
        try:
            self.read(arguments)
            self.check()
        except FlagError as error:
            if self.parent is None:
                raise usage.UsageError(str(error)) from error
            print(f"{self.program}: {error}; see {self.program} --help", file=sys.stderr)
            raise SystemExit(_USAGE_EXIT) from error

    def handle_query_flags(self, arguments: Sequence[str]) -> None:
        """
        Handle flags that print something and exit.

        @raise SystemExit: Such a flag is set.
        """

    def read(self, arguments: Sequence[str]) -> None:
        """
        Parse the flags.

        @raise FlagError: A flag is unknown or its value invalid.
        """
        self.apply(parse_flags(self.flags, arguments, lambda text: print(text, file=sys.stderr)))

    def apply(self, parsed: Mapping[str, Any]) -> None:
        """
        Set the flags of a command line.

        @param parsed: The values of the flags that are set, by name.
        @raise FlagError: A combination of flags is invalid.
        """
        self.changed = frozenset(parsed)
        self.update(parsed)

    def check(self) -> None:
        """
        Validate combinations of flags.

        @raise FlagError: Flags are inconsistent.
        """

    def formatted_values(self) -> dict[str, str]:
        """Return the values of all flags as command-line arguments, by name, without the passwords in URLs."""
        return flags_of(self.flags, self)

    def typed_values(self) -> JSONObject:
        """Return the values of all flags as JSON values, by name, without the passwords in URLs."""
        return typed_flags(self.flags, self)

    def getSynopsis(self) -> str:
        """Return the usage line."""
        return f"Usage: {self.program} [flags]"

    def getUsage(self, width: int | None = None) -> str:
        """Return the description of the command, and its flags."""
        return f"{self.description}\n{describe_flags([*self.flags, *self.general])}"

    def __str__(self) -> str:
        return f"{self.getSynopsis()}\n\n{self.getUsage()}"
