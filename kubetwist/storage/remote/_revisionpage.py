"""
The newest revision in shared memory, so that a front process knows without a request which revision it must reach.

The storage process writes the revision before it sends the results of that revision to any front. A front that has
received a request after such a result was passed to its client therefore finds this revision or a newer one. The number
is aligned and has 8 bytes, and is written at once.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from typing import Final

_SIZE: Final = mmap.PAGESIZE


def _create_file() -> int:
    """Return the descriptor of a file without a name, in memory where the system supports it."""
    memfd_create = getattr(os, "memfd_create", None)
    if memfd_create is not None:
        descriptor: int = memfd_create("kubetwist-revision")
        return descriptor
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


class RevisionPage:
    """
    A page of memory with one revision.

    @ivar descriptor: The descriptor of the file, for other processes.
    """

    def __init__(self) -> None:
        """Create a page."""
        self.descriptor = _create_file()
        os.ftruncate(self.descriptor, _SIZE)
        self._memory = mmap.mmap(self.descriptor, _SIZE)
        self._numbers = memoryview(self._memory).cast("Q")

    def write(self, revision: int) -> None:
        """Write the revision."""
        self._numbers[0] = revision

    def close(self) -> None:
        """Release the memory; processes that have mapped it keep it."""
        self._numbers.release()
        self._memory.close()
        os.close(self.descriptor)


class MappedRevision:
    """The page of another process."""

    def __init__(self, descriptor: int) -> None:
        """
        Map a file, and close its descriptor.

        @raise OSError: It cannot be mapped.
        @raise ValueError: It is too short.
        """
        try:
            self._memory = mmap.mmap(descriptor, _SIZE, prot=mmap.PROT_READ)
        finally:
            os.close(descriptor)
        self._numbers = memoryview(self._memory).cast("Q")

    def read(self) -> int:
        """Return the revision."""
        return self._numbers[0]

    def close(self) -> None:
        """Release the memory."""
        self._numbers.release()
        self._memory.close()
