"""What can go wrong in a store, in the store's own words; the registry translates."""

from __future__ import annotations


class StorageError(Exception):
    """Any failure below."""


class KeyNotFound(StorageError):
    """Nothing is stored at the key."""

    def __init__(self, key: str, revision: int = 0) -> None:
        super().__init__(f"nothing is stored at {key}")
        self.key = key
        self.revision = revision


class KeyExists(StorageError):
    """Something is stored already where a create wants to write."""

    def __init__(self, key: str, revision: int = 0) -> None:
        super().__init__(f"{key} exists")
        self.key = key
        self.revision = revision


class RevisionConflict(StorageError):
    """The key's newest revision is another than the write expects; C{revision} is the newest."""

    def __init__(self, key: str, revision: int) -> None:
        super().__init__(f"{key} is at revision {revision}")
        self.key = key
        self.revision = revision


class RevisionCompacted(StorageError):
    """The asked revision is forgotten; C{oldest} is the oldest that can still be asked for."""

    def __init__(self, revision: int, oldest: int) -> None:
        super().__init__(f"revision {revision} is compacted; the oldest is {oldest}")
        self.revision = revision
        self.oldest = oldest


class FutureRevision(StorageError):
    """The asked revision is newer than the newest, C{revision}."""

    def __init__(self, asked: int, revision: int) -> None:
        super().__init__(f"revision {asked} is ahead of {revision}")
        self.asked = asked
        self.revision = revision


class InvalidToken(StorageError):
    """A continue token that is not ours or points outside of what is listed."""


class StorageUnavailable(StorageError):
    """The store can not write at present (disk full, connection lost); nothing was written."""


class StorageCorrupt(StorageError):
    """The store's file is damaged, foreign, or of a newer format."""
