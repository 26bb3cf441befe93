"""
The high-water mark of a store: the newest acknowledged revision, in a separate file.

It is written after the transaction is synced and before its answer, without a sync. Therefore it is never ahead of the
disk: a store that is older than its mark has lost writes. After a kill the mark is exact, since the kernel has it.
After a power cut it may be up to about 30 s old, since the kernel had not written it yet.
"""

from __future__ import annotations

import os
import zlib
from contextlib import suppress

from ..errors import StorageUnavailable


class HighWaterMark:
    """
    The file with the mark of one store, to be used by one thread only.

    @ivar path: Path of the file.
    """

    def __init__(self, path: str, *, synced: bool = True) -> None:
        """
        @param synced: Whether L{sync} and L{close} wait for the disk.
        """
        self.path = path
        self._synced = synced
        self._descriptor = -1

    def read(self) -> int | None:
        """
        Return the newest acknowledged revision.

        @return: The revision; 0 if there is no mark, L{None} if the file is damaged.
        @raise StorageUnavailable: It cannot be read.
        """
        try:
            with open(self.path, "rb") as file:
                content = file.read(64)
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise StorageUnavailable(f"{self.path} cannot be read: {error.strerror}") from error
        digits, _, check = content.strip().partition(b" ")
        if not digits.isdigit() or check != _check(digits):
            return None
        return int(digits)

    def open(self, revision: int) -> None:
        """
        Create the file if it does not exist, and set the mark.

        If the disk cannot be written, the mark stays unchanged.
        """
        with suppress(OSError):
            self._descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self.set(revision)
        self.sync()

    def set(self, revision: int) -> None:
        """Set the mark; a later L{sync}, or the kernel, writes it to the disk."""
        if self._descriptor >= 0:
            # The old mark, which remains if this fails, is also true; the transaction was written.
            with suppress(OSError, MemoryError):
                digits = b"%020d" % revision
                os.pwrite(self._descriptor, b"%b %b\n" % (digits, _check(digits)), 0)

    def sync(self) -> None:
        """Write the mark to the disk."""
        if self._descriptor >= 0 and self._synced:
            with suppress(OSError):
                os.fsync(self._descriptor)

    def close(self) -> None:
        """Write the mark to the disk, and close the file."""
        self.sync()
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def _check(digits: bytes) -> bytes:
    return b"%08x" % zlib.crc32(digits)
