"""PriorityClasses: those of the system stay."""

from __future__ import annotations

from ...api.errors import APIStatusError
from ..generic.store import Store
from .validation import SYSTEM_PRIORITIES


class PriorityClassStore(Store):
    """All of them."""

    def check_delete(self, name: str) -> None:
        """See L{StoreHooks.check_delete}; the classes that the system needs are not deleted."""
        if name in SYSTEM_PRIORITIES:
            why = "this is a system priority class and cannot be deleted"
            raise APIStatusError.forbidden(self.group_resource, name, why)
