"""Store of PriorityClasses: system classes cannot be deleted."""

from __future__ import annotations

from ...api.errors import APIStatusError
from ..generic.store import Store
from .validation import SYSTEM_PRIORITIES


class PriorityClassStore(Store):
    """A store that rejects the deletion of system classes."""

    def check_delete(self, name: str) -> None:
        """See L{StoreHooks.check_delete}; system classes cannot be deleted."""
        if name in SYSTEM_PRIORITIES:
            reason = "this is a system priority class and cannot be deleted"
            raise APIStatusError.forbidden(self.group_resource, name, reason)
