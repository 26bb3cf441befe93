"""Random UUIDs, for uids of objects and audit ids."""

from __future__ import annotations

from os import register_at_fork, urandom
from typing import Final


def random_uuid() -> str:
    """Return a random UUID, as C{str(uuid.uuid4())} does but faster."""
    try:
        return _pool.pop()
    except IndexError:
        digits = urandom(16 * _POOL_SIZE).hex()
        _pool.extend(_uuid(digits[start : start + 32]) for start in range(0, 32 * _POOL_SIZE, 32))
        return _pool.pop()


def _uuid(digits: str) -> str:
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


# Random bytes for many ids are read with one system call. A forked process drops the ids of its parent.
_POOL_SIZE: Final = 64
_pool: list[str] = []
register_at_fork(after_in_child=_pool.clear)
