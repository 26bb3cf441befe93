"""Whether objects are validated for a server that allows privileged containers: C{--allow-privileged}."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final, TypeVar

_Found = TypeVar("_Found")
#: Whether the server whose objects are validated has privileged containers: C{--allow-privileged}.
_privileged_allowed: Final[ContextVar[bool]] = ContextVar("privileged containers are allowed", default=True)


def unprivileged(validate: Callable[..., _Found], *objects: Any) -> _Found:
    """What C{validate} finds in objects, for a server that has no privileged containers."""
    before = _privileged_allowed.set(False)
    try:
        return validate(*objects)
    finally:
        _privileged_allowed.reset(before)


def privileged_allowed() -> bool:
    """Whether there may be privileged containers."""
    return _privileged_allowed.get()
