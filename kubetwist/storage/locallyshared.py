"""The store of a storage process with fronts: an embedded store that other processes of the server write, too."""

from __future__ import annotations

from zope.interface import implementer

from ..interfaces import ISharedStorage
from .wrappers import ForwardingStorage


@implementer(ISharedStorage)
class LocallySharedStorage(ForwardingStorage):
    """
    L{ISharedStorage} over a store of this process, which fronts use through it.

    So components whose state depends on the writes of this process only, such as allocators, consider other writers.
    Fronts run no controllers, so L{shared} is the value of the store.
    """

    async def current_revision(self) -> int:
        """See L{ISharedStorage.current_revision}: all writes are made in this process."""
        return self.inner.revision

    async def claim_compaction(self, revision: int) -> bool:
        """See L{ISharedStorage.claim_compaction}: fronts do not compact."""
        return True
