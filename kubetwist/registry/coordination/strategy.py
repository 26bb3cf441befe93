"""Strategy of Leases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...api.errors import FieldError
from ...api.resource import JSONObject
from ..generic.gates import DisabledFields, GatedField, field_at
from ..generic.strategy import Strategy
from . import validation

_FIELDS: Final = tuple(
    GatedField(gate="CoordinatedLeaderElection", find=field_at("spec", name))
    for name in ("strategy", "preferredHolder")
)


class LeaseStrategy(Strategy):
    """coordination.k8s.io/v1 Lease: updates require a C{resourceVersion}."""

    allow_create_on_update = True
    allow_unconditional_update = False
    standard_finalizers = False

    def default(self, obj: JSONObject) -> None:
        """Add C{spec}, a struct in Go that is always encoded."""
        obj.setdefault("spec", {})

    def configure(self) -> None:
        """Select the fields to drop."""
        self._disabled = DisabledFields(_FIELDS, self.features)

    def prepare_for_create(self, obj: JSONObject) -> None:
        """Drop the fields of disabled feature gates."""
        self._disabled.drop(obj)

    def prepare_for_update(self, obj: JSONObject, old: JSONObject) -> None:
        """Drop the fields of disabled feature gates that the stored object does not use."""
        self._disabled.drop(obj, old)

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Validate durations and counts."""
        return validation.validate_lease(obj)


STRATEGIES: Final[Mapping[str, Strategy]] = {"Lease": LeaseStrategy()}
