"""Strategy of EndpointSlices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...api.errors import FieldError
from ...api.objectmeta import Rule
from ...api.resource import JSONObject
from ..generic.gatedstrategy import GatedStrategy
from ..generic.gates import ITEMS, GatedField, field_at
from ..generic.strategy import Strategy
from ..generic.validation.fields import STRICT_ADDRESSES
from . import validation

_MANAGED_BY: Final = "endpointslice.kubernetes.io/managed-by"
_FIELDS: Final = (
    GatedField(gate="TopologyAwareHints", find=field_at("endpoints", ITEMS, "hints")),
    GatedField(gate="PreferSameTrafficDistribution", find=field_at("endpoints", ITEMS, "hints", "forNodes")),
)
_CONTROLLERS: Final = ("endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io")


class EndpointSliceStrategy(GatedStrategy):
    """discovery.k8s.io/v1 EndpointSlice."""

    metadata_update_rules: Sequence[Rule] = ("whole",)
    has_generation = True
    gated_fields = _FIELDS

    def configure(self) -> None:
        """Decide how to validate addresses, and select the fields to drop."""
        self._strict = self.features.enabled(STRICT_ADDRESSES)
        super().configure()

    def default(self, obj: JSONObject) -> None:
        """Add the default protocol TCP and empty names to ports."""
        obj.setdefault("ports", None)
        obj.setdefault("endpoints", None)
        for port in obj["ports"] or ():
            if port.get("name") is None:
                port["name"] = ""
            if port.get("protocol") is None:
                port["protocol"] = "TCP"
        for endpoint in obj["endpoints"] or ():
            endpoint.setdefault("conditions", {})

    def prepare_for_create(self, obj: JSONObject) -> None:
        """Drop deprecated topology, and the fields of disabled feature gates."""
        super().prepare_for_create(obj)
        _drop_old_topology(obj)

    def prepare_for_update(self, obj: JSONObject, old: JSONObject) -> None:
        """
        Drop deprecated topology, unless the object is unchanged, and the fields of disabled feature gates that the
        stored object does not use.
        """
        super().prepare_for_update(obj, old)
        if obj.get("endpoints") != old.get("endpoints"):
            _drop_old_topology(obj)

    def generation_changes(self, obj: JSONObject, old: JSONObject) -> bool:
        """Return whether anything but metadata changed; labels count, since they name the service."""
        return super().generation_changes(obj, old) or (
            (obj["metadata"].get("labels") or {}) != (old["metadata"].get("labels") or {})
        )

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Validate addresses, ports and topology."""
        return validation.validate_slice(obj, strict=self._strict)

    def warnings(self, obj: JSONObject, old: JSONObject | None) -> Sequence[str]:
        """Return warnings about the deprecated address type FQDN and non-canonical addresses."""
        texts: list[str] = []
        if old is None and obj.get("addressType") == "FQDN":
            texts.append("spec.addressType: FQDN endpoints are deprecated")
        # Controllers write canonical addresses.
        if (obj["metadata"].get("labels") or {}).get(_MANAGED_BY) not in _CONTROLLERS:
            texts += validation.address_form_warnings(obj, strict=self._strict)
        return texts

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate a change: the address type is immutable; errors of stored endpoints are ignored."""
        return validation.validate_slice_update(obj, old, strict=self._strict)


def _drop_old_topology(obj: JSONObject) -> None:
    for endpoint in obj.get("endpoints") or ():
        endpoint.pop("deprecatedTopology", None)


STRATEGIES: Final[Mapping[str, Strategy]] = {"EndpointSlice": EndpointSliceStrategy()}
