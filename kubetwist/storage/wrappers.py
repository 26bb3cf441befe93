"""Storage backends that stand over others."""

from __future__ import annotations

from typing import Any

from ..interfaces import (
    ISharedStorage,
    IStorageBackend,
)


def innermost(backend: IStorageBackend) -> Any:
    """Where values are in the end: the backend itself, unless it has an C{inner} one."""
    found: Any = backend
    while (inner := getattr(found, "inner", None)) is not None:
        found = inner
    return found


def shared_storage(backend: IStorageBackend) -> Any:
    """
    What servers share.

    @return: An L{ISharedStorage}; L{None} where this server is the only one.
    """
    found = innermost(backend)
    return found if ISharedStorage.providedBy(found) else None
