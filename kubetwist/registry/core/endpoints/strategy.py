"""Strategy of Endpoints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ....api.errors import FieldError
from ....api.objectmeta import Rule
from ....api.resource import JSONObject
from ...generic.strategy import Strategy
from ...generic.validation.fields import STRICT_ADDRESSES
from . import validation


class EndpointsStrategy(Strategy):
    """Strategy of v1 Endpoints."""

    metadata_update_rules: Sequence[Rule] = ("compare", "whole")
    allow_create_on_update = True

    def configure(self) -> None:
        """Decide how to validate addresses."""
        self._strict = self.features.enabled(STRICT_ADDRESSES)

    def default(self, obj: JSONObject) -> None:
        """Set defaults: the protocol of ports is TCP."""
        for subset in obj.get("subsets") or ():
            for port in subset.get("ports") or ():
                if not port.get("protocol"):
                    port["protocol"] = "TCP"

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Validate addresses and ports."""
        return validation.validate_endpoints(obj, strict=self._strict)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate addresses and ports, if they changed."""
        return validation.validate_endpoints_update(obj, old, strict=self._strict)


STRATEGIES: Final[Mapping[str, Strategy]] = {
    "Endpoints": EndpointsStrategy(),
}
