"""Storage backends that wrap another backend."""

from __future__ import annotations

from ..interfaces import (
    ISharedStorage,
    IStorageBackend,
    IStorageWrapper,
)


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
