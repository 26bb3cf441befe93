"""EndpointSlices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...api.errors import FieldError
from ...api.objectmeta import Rule
from ...api.resource import JSONObject
from ..generic.strategy import Strategy
from . import validation

_MANAGED_BY: Final = "endpointslice.kubernetes.io/managed-by"
_CONTROLLERS: Final = ("endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io")


class EndpointSliceStrategy(Strategy):
    """discovery.k8s.io/v1 EndpointSlice."""

    metadata_update_rules: Sequence[Rule] = ("whole",)
    has_generation = True

    def default(self, obj: JSONObject) -> None:
        """Ports are TCP and have a name, if only an empty one."""
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
        """Drop what only older versions wrote."""
        _drop_old_topology(obj)

    def prepare_for_update(self, obj: JSONObject, old: JSONObject) -> None:
        """Drop what only older versions wrote, where anything changes."""
        if obj.get("endpoints") != old.get("endpoints"):
            _drop_old_topology(obj)

    def generation_changes(self, obj: JSONObject, old: JSONObject) -> bool:
        """Labels count too: they say whose the slice is."""
        return super().generation_changes(obj, old) or (
            (obj["metadata"].get("labels") or {}) != (old["metadata"].get("labels") or {})
        )

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Addresses, ports, topology."""
        return validation.validate_slice(obj)

    def warnings(self, obj: JSONObject, old: JSONObject | None) -> Sequence[str]:
        """Names instead of addresses are on their way out, and so are odd forms of addresses."""
        texts: list[str] = []
        if old is None and obj.get("addressType") == "FQDN":
            texts.append("spec.addressType: FQDN endpoints are deprecated")
        # Controllers write addresses as they should be.
        if (obj["metadata"].get("labels") or {}).get(_MANAGED_BY) not in _CONTROLLERS:
            texts += validation.address_form_warnings(obj)
        return texts

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """The type of address stays; endpoints that were let in may stay, too."""
        return validation.validate_slice_update(obj, old)


def _drop_old_topology(obj: JSONObject) -> None:
    for endpoint in obj.get("endpoints") or ():
        endpoint.pop("deprecatedTopology", None)


STRATEGIES: Final[Mapping[str, Strategy]] = {"EndpointSlice": EndpointSliceStrategy()}
