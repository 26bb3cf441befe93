"""PriorityClasses: those of the system stay."""

from __future__ import annotations

from typing import Any

from ...api.errors import APIStatusError
from ...api.options import DeleteOptions
from ...api.requestscope import RequestScope
from ..generic.store import Store
from .validation import SYSTEM_PRIORITIES


class PriorityClassStore(Store):
    """All of them."""

    async def delete(self, scope: RequestScope, name: str, options: DeleteOptions) -> tuple[Any, bool]:
        """See L{Store.delete}; the classes that the system needs are not deleted."""
        if name in SYSTEM_PRIORITIES:
            why = "this is a system priority class and cannot be deleted"
            raise APIStatusError.forbidden(self.group_resource, name, why)
        return await super().delete(scope, name, options)
