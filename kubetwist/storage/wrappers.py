"""Storage backends that stand over others."""

from __future__ import annotations

from typing import Any

from ..interfaces import (
    ISharedStorage,
    IStorageBackend,
    IStorageWrapper,
)


def innermost(backend: IStorageBackend) -> Any:
    """Return the backend below all wrappers: the backend itself, unless it is an L{IStorageWrapper}."""
    found: Any = backend
    while IStorageWrapper.providedBy(found):
        found = found.inner
    return found


def shared_storage(backend: IStorageBackend) -> Any:
    """
    What servers share.

    @return: An L{ISharedStorage}; L{None} where this server is the only one.
    """
    found = innermost(backend)
    return found if ISharedStorage.providedBy(found) else None
