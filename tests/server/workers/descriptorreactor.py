"""A reactor in memory for descriptors: tests read and write them when they want."""

from __future__ import annotations

from typing import Any

from twisted.internet.task import Clock
from twisted.python.failure import Failure


class DescriptorReactor(Clock):
    """A clock that knows which descriptors are read and written."""

    def __init__(self) -> None:
        super().__init__()
        self.readers: list[Any] = []
        self.writers: list[Any] = []

    def addReader(self, reader: Any) -> None:
        """Read from a descriptor."""
        if reader not in self.readers:
            self.readers.append(reader)

    def removeReader(self, reader: Any) -> None:
        """Do not read from a descriptor."""
        if reader in self.readers:
            self.readers.remove(reader)

    def addWriter(self, writer: Any) -> None:
        """Write to a descriptor."""
        if writer not in self.writers:
            self.writers.append(writer)

    def removeWriter(self, writer: Any) -> None:
        """Do not write to a descriptor."""
        if writer in self.writers:
            self.writers.remove(writer)

    def turn(self) -> None:
        """Write and read all descriptors once, as one iteration does."""
        for selectables, method in ((self.writers, "doWrite"), (self.readers, "doRead")):
            for selectable in list(selectables):
                if selectable not in selectables:
                    continue
                reason = getattr(selectable, method)()
                if reason is not None:
                    self.removeReader(selectable)
                    self.removeWriter(selectable)
                    selectable.connectionLost(Failure(reason))
