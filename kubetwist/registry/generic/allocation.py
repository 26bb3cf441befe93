"""What an object takes of something shared before it is written: addresses, ports."""

from __future__ import annotations

from collections.abc import Sequence

from ...api.resource import JSONObject
from ...api.storage import Write
from ...storage.errors import RevisionConflict


class AllocationConflict(RevisionConflict):
    """Another server has given away what a write was to take: the write begins again, with something else."""


class Allocation:
    """Nothing. Kinds that take something make their own."""

    __slots__ = ()

    def writes(self) -> Sequence[Write]:
        """What else is written in the same transaction."""
        return ()

    def commit(self) -> None:
        """The object is written: keep what was taken."""

    def cancel(self) -> None:
        """The object is not written: give back what was taken."""

    def undo(self, obj: JSONObject) -> None:
        """Take out of an object again what was filled in, for the next attempt."""


NOTHING = Allocation()
