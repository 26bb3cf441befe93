"""Interface for the values of flags."""

from __future__ import annotations

from collections.abc import Set
from typing import Any, Protocol


class FlagValues(Protocol):
    """
    The values of flags, by their names without dashes.

    A value has the type of its flag; the value of an absent flag is its default. L{kubetwist.cli.kubeapi.Options}
    implements it.
    """

    @property
    def changed(self) -> Set[str]:
        """Return the names of the flags on the command line."""

    def __getitem__(self, name: str, /) -> Any:
        """Return the value of a flag."""

    def get(self, name: str, default: Any = None, /) -> Any:
        """Return the value of a flag, or C{default} if the command has no such flag."""
