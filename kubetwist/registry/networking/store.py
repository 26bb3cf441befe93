"""The store of ServiceCIDRs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.service.allocator import added_ranges
from ..generic.store import Store

if TYPE_CHECKING:
    from ..stores import Stores


class ServiceCIDRStore(Store):
    """Further ranges that services have their addresses from."""

    context: Stores

    def loaded(self) -> None:
        """What stored ranges add can be had."""
        self.context.follow_holdings(self.cache, added_ranges)
