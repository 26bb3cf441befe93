"""Changes of stored objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .resource import JSONObject


class ReadOnlyChange:
    """
    A change that does not modify its argument, for which the store needs no second copy of the object.

    The new object may share the entries of C{managedFields} with the old one, which are replaced, never modified.
    """

    __slots__ = ("_change",)

    def __init__(self, change: Callable[[Any], JSONObject]) -> None:
        """
        @param change: Returns the new object for the current one, as in
            L{kubetwist.interfaces.IUpdater.update}.
        """
        self._change = change

    def __call__(self, obj: JSONObject | None) -> JSONObject:
        """Return the new object."""
        return self._change(obj)
