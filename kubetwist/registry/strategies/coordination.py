"""Leases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...api.errors import Cause
from ...api.resource import JSONObject
from ..strategy import Strategy
from ..validation import small


class LeaseStrategy(Strategy):
    """coordination.k8s.io/v1 Lease: who writes it must know what was there."""

    allow_create_on_update = True
    allow_unconditional_update = False

    def default(self, obj: JSONObject) -> None:
        """C{spec} is a struct in Go: always there."""
        obj.setdefault("spec", {})

    def validate(self, obj: JSONObject) -> Sequence[Cause]:
        """Durations and counts."""
        return small.validate_lease(obj)


STRATEGIES: Final[Mapping[str, Strategy]] = {"Lease": LeaseStrategy()}
