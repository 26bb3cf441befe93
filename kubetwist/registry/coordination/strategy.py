"""Strategy of Leases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...api.errors import FieldError
from ...api.resource import JSONObject
from ..generic.gatedstrategy import GatedStrategy
from ..generic.gates import GatedField, field_at
from ..generic.strategy import Strategy
from . import validation


class LeaseStrategy(GatedStrategy):
    """coordination.k8s.io/v1 Lease: updates require a C{resourceVersion}."""

    allow_create_on_update = True
    allow_unconditional_update = False
    standard_finalizers = False
    gated_fields = tuple(
        GatedField(gate="CoordinatedLeaderElection", find=field_at("spec", name))
        for name in ("strategy", "preferredHolder")
    )

    def default(self, obj: JSONObject) -> None:
        """Add C{spec}, a struct in Go that is always encoded."""
        obj.setdefault("spec", {})

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Validate durations and counts."""
        return validation.validate_lease(obj)


STRATEGIES: Final[Mapping[str, Strategy]] = {"Lease": LeaseStrategy()}
