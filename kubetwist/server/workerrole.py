"""
The role of a process in a server of several processes (C{--workers}).

The storage process opens the storage, and does what one process of a server does: bootstrap objects, controllers,
compaction. The fronts serve requests. A server of one process does both.
"""

from __future__ import annotations

from attrs import frozen


@frozen
class WorkerRole:
    """
    The role of this process.

    @ivar number: The number of the front, from 1 on; 0 in the storage process, and in the server of one process.
    @ivar count: The number of fronts; 0 in a server of one process.
    """

    number: int = 0
    count: int = 0

    @property
    def processes(self) -> int:
        """Return the number of processes of the server."""
        return self.count + 1

    @property
    def name(self) -> str:
        """Return the name of this process in metrics."""
        return str(self.number) if self.number else "storage"

    @property
    def serves(self) -> bool:
        """Return whether this process serves requests."""
        return self.number > 0 or not self.count

    def share(self, total: int) -> int:
        """
        Return the share of this process of a limit of the server: equal shares, of which the first are one larger.

        @param total: The limit of the server; 0 for no limit.
        @return: At least 1, if there is a limit.
        """
        if not total or not self.number:
            return total
        share, remainder = divmod(total, self.count)
        return max(1, share + (self.number <= remainder))
