"""Strategy of Leases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...api.errors import FieldError
from ...api.resource import JSONObject
from ..generic.strategy import Strategy
from . import validation

#: Fields of coordinated leader election.
_ELECTION: Final = ("strategy", "preferredHolder")


class LeaseStrategy(Strategy):
    """coordination.k8s.io/v1 Lease: updates require a C{resourceVersion}."""

    allow_create_on_update = True
    allow_unconditional_update = False
    standard_finalizers = False

    def default(self, obj: JSONObject) -> None:
        """Add C{spec}, a struct in Go that is always encoded."""
        obj.setdefault("spec", {})

    def prepare_for_create(self, obj: JSONObject) -> None:
        """Drop the fields of coordinated leader election, whose feature gate is disabled."""
        for name in _ELECTION:
            obj["spec"].pop(name, None)

    def prepare_for_update(self, obj: JSONObject, old: JSONObject) -> None:
        """Drop the same fields, unless the stored object has them."""
        for name in _ELECTION:
            if old["spec"].get(name) is None:
                obj["spec"].pop(name, None)

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Validate durations and counts."""
        return validation.validate_lease(obj)


STRATEGIES: Final[Mapping[str, Strategy]] = {"Lease": LeaseStrategy()}
