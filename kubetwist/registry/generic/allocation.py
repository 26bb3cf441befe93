"""Allocations of shared resources, such as addresses and ports, around the write of an object."""

from __future__ import annotations

from collections.abc import Sequence

from ...api.resource import JSONObject
from ...api.storage import Write
from ...storage.errors import RevisionConflict


class AllocationConflict(RevisionConflict):
    """Another server allocated a number of this write; the write is repeated with another number."""


class Allocation:
    """The allocation of one write. This base class allocates nothing."""

    __slots__ = ()

    def writes(self) -> Sequence[Write]:
        """Return further writes of the same transaction."""
        return ()

    def commit(self) -> None:
        """Keep the allocation: the object is written."""

    def cancel(self) -> None:
        """Release the allocation: the object is not written."""

    def undo(self, obj: JSONObject) -> None:
        """Remove the allocated values from an object, for the next attempt."""


NO_ALLOCATION = Allocation()
