"""Lock files, each held by one process at a time."""

from __future__ import annotations

import fcntl
import os

from attrs import define, field

from ..errors import StorageUnavailable


@define
class FileLock:
    """
    Locks the file at C{path} against other processes, and other stores in this one.

    The kernel releases the lock when its holder dies, however that happens. The lock's file names the holder.
    """

    path: str
    _descriptor: int = field(default=-1, init=False)

    def acquire(self) -> None:
        """
        Take the lock.

        @raise StorageUnavailable: It is held by another process, or the file cannot be created.
        """
        try:
            descriptor = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StorageUnavailable(f"{self.path} cannot be opened: {error.strerror}") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = read_holder(descriptor)
            os.close(descriptor)
            if isinstance(error, BlockingIOError):
                raise StorageUnavailable(f"{self.path} is in use by {holder}") from error
            raise StorageUnavailable(f"{self.path} cannot be locked: {error.strerror}") from error
        self._descriptor = descriptor
        write_holder(descriptor)

    def release(self) -> None:
        """Release the lock. The file stays: with its removal, two processes could lock two files of that name."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def write_holder(descriptor: int) -> None:
    """Write the holder to the lock's file; on a full disk the file stays empty, which is no error."""
    text = b"%d\n" % os.getpid()
    try:
        os.pwrite(descriptor, text, 0)
        os.ftruncate(descriptor, len(text))
    except OSError:
        pass


def read_holder(descriptor: int) -> str:
    """Return the holder of a lock, for a message."""
    try:
        return f"another process ({int(os.pread(descriptor, 32, 0))})"
    except (OSError, ValueError):
        return "another process"
