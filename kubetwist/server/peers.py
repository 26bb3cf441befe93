"""The other processes of a server of several processes (C{--workers}), as endpoints use them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol


class Peers(Protocol):
    """The other processes of this server."""

    def register(self, name: str, function: Callable[..., object]) -> None:
        """
        Let the other processes call a function.

        @param function: Arguments and results are JSON values; the result may be an awaitable.
        """

    def call(self, name: str, *arguments: object) -> Awaitable[Sequence[object]]:
        """
        Call a registered function in all other processes.

        @param arguments: JSON values.
        @return: The results; a process that ends before, or does not answer in time, has none.
        """
