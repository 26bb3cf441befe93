"""What an object takes of something shared before it is written: addresses, ports."""

from __future__ import annotations

from collections.abc import Sequence

from ..storage.values import Write


class Hold:
    """Nothing. Kinds that take something make their own."""

    __slots__ = ()

    def writes(self) -> Sequence[Write]:
        """What else is written in the same transaction."""
        return ()

    def commit(self) -> None:
        """The object is written: keep what was taken."""

    def cancel(self) -> None:
        """The object is not written: give back what was taken."""


NOTHING = Hold()
