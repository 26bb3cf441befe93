"""The setting C{--allow-privileged} during validation."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final, TypeVar

_Result = TypeVar("_Result")
#: Whether the server whose objects are validated allows privileged containers.
_privileged_allowed: Final[ContextVar[bool]] = ContextVar("privileged containers are allowed", default=True)


def unprivileged(validate: Callable[..., _Result], *objects: Any) -> _Result:
    """Run a validation function for a server without privileged containers."""
    before = _privileged_allowed.set(False)
    try:
        return validate(*objects)
    finally:
        _privileged_allowed.reset(before)


def privileged_allowed() -> bool:
    """Return whether containers may be privileged."""
    return _privileged_allowed.get()
