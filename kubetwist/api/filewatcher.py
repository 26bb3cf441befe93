"""Files that are read again when they change, for the packages that name such files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

T = TypeVar("T")


class FileWatcher(Protocol):
    """
    Reads files, and reads them again when they change.

    @see: L{kubetwist.server.watchedfiles.FileReloader}, which implements it.
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
        Read files now, and whenever they change.

        @param paths: The files.
        @param load: Decodes their contents: now, and later in a thread.
        @param use: Called in the reactor's thread with what C{load} returned for new contents. If it raises
            L{ValueError}, the contents are logged as unusable. A Deferred is waited for before the change is logged.
        @param what: The flag that names the files, for the log.
        @param also: Returns further files that the decoded contents name.
        @return: The result of C{load} for the current contents.
        @raise OSError: A file cannot be read.
        @raise ValueError: The contents cannot be used, or are too long.
        """
