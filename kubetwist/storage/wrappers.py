"""Storage backends that wrap another backend."""

from __future__ import annotations

from collections.abc import Sequence

from twisted.internet.defer import Deferred
from zope.interface import alsoProvides, implementer

from ..api.storage import History, Page, StoredValue, Write
from ..interfaces import (
    ISharedStorage,
    IStorageBackend,
    IStorageHistory,
    IStorageObserver,
    IStorageWatch,
    IStorageWrapper,
)


@implementer(IStorageWrapper)
class ForwardingStorage:
    """
    A storage that passes all calls to another one; wrappers override what they change.

    @ivar inner: See L{IStorageWrapper}.
    """

    def __init__(self, inner: IStorageBackend) -> None:
        self.inner = inner
        if IStorageHistory.providedBy(inner):
            alsoProvides(self, IStorageHistory)

    @property
    def revision(self) -> int:
        """See L{IStorageBackend.revision}."""
        return self.inner.revision

    @property
    def compacted(self) -> int:
        """See L{IStorageBackend.compacted}."""
        return self.inner.compacted

    @property
    def shared(self) -> bool:
        """See L{IStorageBackend.shared}."""
        return self.inner.shared

    async def open(self) -> None:
        """See L{IStorageBackend.open}."""
        await self.inner.open()

    async def close(self) -> None:
        """See L{IStorageBackend.close}."""
        await self.inner.close()

    def commit(self, writes: Sequence[Write]) -> Deferred[int]:
        """See L{IStorageBackend.commit}."""
        return self.inner.commit(writes)

    async def read(self, key: str) -> StoredValue:
        """See L{IStorageBackend.read}."""
        return await self.inner.read(key)

    async def read_page(self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0) -> Page:
        """See L{IStorageBackend.read_page}."""
        return await self.inner.read_page(prefix, start=start, limit=limit, revision=revision)

    async def watch(self, prefix: str, revision: int, observer: IStorageObserver) -> IStorageWatch:
        """See L{IStorageBackend.watch}."""
        return await self.inner.watch(prefix, revision, observer)

    async def compact(self, revision: int) -> None:
        """See L{IStorageBackend.compact}."""
        await self.inner.compact(revision)

    async def read_changes(self, prefix: str, after: int, until: int, max_changes: int, max_bytes: int) -> History:
        """
        See L{IStorageHistory.read_changes}; provided where the store provides it.

        @param prefix: The prefix of keys.
        @param after: Changes after this revision are read.
        @param until: A committed revision greater than C{after}.
        @param max_changes: Approximate maximum number of changes.
        @param max_bytes: Approximate maximum size of their values.
        """
        return await IStorageHistory(self.inner).read_changes(prefix, after, until, max_changes, max_bytes)


def unwrap_backend(backend: IStorageBackend) -> IStorageBackend:
    """Return the backend below all wrappers: the backend itself, unless it is an L{IStorageWrapper}."""
    while IStorageWrapper.providedBy(backend):
        backend = IStorageWrapper(backend).inner
    return backend


def find_shared_storage(backend: IStorageBackend) -> ISharedStorage | None:
    """Return the outermost storage that several servers share; L{None} if this server is the only one."""
    while not ISharedStorage.providedBy(backend):
        if not IStorageWrapper.providedBy(backend):
            return None
        backend = IStorageWrapper(backend).inner
    return ISharedStorage(backend)
