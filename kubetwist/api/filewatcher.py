"""Interface for files that are reloaded when they change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

T = TypeVar("T")


class FileWatcher(Protocol):
    """
    Reads files and reloads them when they change.

    @see: L{kubetwist.server.watchedfiles.FileReloader}, the implementation.
    """

    def watch(
        self,
        paths: Sequence[str | Path],
        load: Callable[[Sequence[bytes]], T],
        use: Callable[[T], object],
        what: str,
        also: Callable[[T], Sequence[Path]] = ...,
    ) -> T:
        """
        Read files now, and after each change.

        @param paths: The files.
        @param load: Decodes the contents; later calls run in a thread.
        @param use: Called in the reactor's thread with the result of C{load} for new contents. A L{ValueError} is
            logged. If it returns a Deferred, the change is logged after the Deferred fires.
        @param what: The flag that names the files, for the log.
        @param also: Returns the files that the decoded contents refer to.
        @return: The result of C{load} for the current contents.
        @raise OSError: A file cannot be read.
        @raise ValueError: The contents cannot be used, or are too long.
        """
