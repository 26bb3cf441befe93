"""
The errors of storage: backends, encryption and the watch cache raise only these.

The registry translates them for clients. L{MemoryError} passes unchanged, since the server frees memory and answers
503.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from ..api.errors import ReportedError
from ..api.go.quote import quoted
from ..api.renamed import renamed_names


class StorageError(Exception):
    """The base class of all errors of storage."""


#: Translates an error of a watch cache for its readers and the sinks of its watches.
ErrorTranslator: TypeAlias = Callable[[StorageError], Exception]


def unchanged(error: StorageError) -> Exception:
    """Translate no error: see L{ErrorTranslator}."""
    return error


class KeyNotFound(StorageError):
    """The key does not exist."""

    def __init__(self, key: str, revision: int = 0) -> None:
        super().__init__(f"{key} does not exist")
        self.key = key
        self.revision = revision


class KeyExists(StorageError):
    """The key to create exists already."""

    def __init__(self, key: str, revision: int = 0) -> None:
        super().__init__(f"{key} exists")
        self.key = key
        self.revision = revision


class RevisionConflict(StorageError):
    """The key's newest revision, C{revision}, differs from the expected one."""

    def __init__(self, key: str, revision: int) -> None:
        super().__init__(f"{key} is at revision {revision}")
        self.key = key
        self.revision = revision


class RevisionCompacted(StorageError):
    """The requested revision is compacted; C{oldest} is the oldest one available."""

    def __init__(self, revision: int, oldest: int) -> None:
        super().__init__(f"revision {revision} is compacted; the oldest is {oldest}")
        self.revision = revision
        self.oldest = oldest


class FutureRevision(StorageError):
    """The requested revision is greater than the newest, C{revision}."""

    def __init__(self, asked: int, revision: int) -> None:
        super().__init__(f"revision {asked} is ahead of {revision}")
        self.asked = asked
        self.revision = revision


class InvalidArgument(StorageError, ValueError):
    """
    An invalid call, which is a bug of the caller; nothing was done.

    A transaction is empty, writes a key twice or too many keys; a key cannot be encoded; a watched prefix does not end
    with a slash; a revision to skip to is not in the future.
    """


class WatchInterrupted(StorageError):
    """A watch lost its position: its observer must list again."""

    def __init__(self) -> None:
        super().__init__("the watch was interrupted")


class WatchFailed(StorageError):
    """A watch ended because of an unexpected failure, which is logged."""

    def __init__(self) -> None:
        super().__init__("the watch could not go on")


class StorageUnavailable(StorageError, ReportedError):
    """The store cannot write at present (disk full, connection lost); nothing was written."""


class StorageUnwritable(StorageUnavailable):
    """
    The disk is full or read-only: writes fail, reads work.

    @ivar path: The file, for the log.
    @ivar reason: The problem, in a text that any client may see.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path} cannot be written: {reason}")
        self.path = path
        self.reason = reason

    @property
    def client_message(self) -> str:
        """Return the text without the name of the file."""
        return f"storage cannot be written at present: {self.reason}"


class OutcomeUnknown(StorageError, ReportedError):
    """The store did not answer a write in time: it may be applied already, later, or never."""


class StorageCorrupt(StorageError):
    """The store's file is damaged, foreign, or of a newer format."""


class DecryptionUnavailable(StorageUnavailable):
    """A stored value cannot be decrypted at present: the key management service does not respond."""


class CorruptObjectError(StorageError):
    """The value stored at C{key} cannot be decoded into an object; C{reason} is the decoder's error text."""

    def __init__(self, key: str, reason: str, revision: int = 0) -> None:
        super().__init__(f"unable to transform key {quoted(key)}: {reason}")
        self.key = key
        self.reason = reason
        self.revision = revision


class UnknownFormatError(StorageError):
    """A stored value is valid, but of an unknown format; the text names the format and does not quote the value."""


class TransformToStorageError(StorageError):
    """The value for C{key} cannot be encrypted; nothing was written."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(reason)
        self.key = key


if not TYPE_CHECKING:
    __getattr__ = renamed_names(
        __name__,
        {
            "ForeignValue": "UnknownFormatError",
            "UnreadableValue": "CorruptObjectError",
            "UnwritableValue": "TransformToStorageError",
        },
    )
