"""Device classes, claims of devices, and the slices that offer them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...api.resource import JSONObject
from ..strategy import Strategy


def _default_claim_spec(spec: JSONObject) -> None:
    """See C{pkg/apis/resource/v1/defaults.go}."""
    for request in (spec.get("devices") or {}).get("requests") or ():
        for one in [request.get("exactly"), *(request.get("firstAvailable") or ())]:
            if one is None:
                continue
            if not one.get("allocationMode"):
                one["allocationMode"] = "ExactCount"
            if one["allocationMode"] == "ExactCount" and not one.get("count"):
                one["count"] = 1
            for toleration in one.get("tolerations") or ():
                if not toleration.get("operator"):
                    toleration["operator"] = "Equal"


class DeviceClassStrategy(Strategy):
    """resource.k8s.io/v1 DeviceClass."""

    has_generation = True
    delete_returns_object = True

    def default(self, obj: JSONObject) -> None:
        """C{spec} is a struct in Go: always there."""
        obj.setdefault("spec", {})


class ResourceSliceStrategy(Strategy):
    """resource.k8s.io/v1 ResourceSlice."""

    has_generation = True
    delete_returns_object = True


class ResourceClaimStrategy(Strategy):
    """resource.k8s.io/v1 ResourceClaim."""

    has_status = True
    delete_returns_object = True

    def default(self, obj: JSONObject) -> None:
        """Requests are for one device each."""
        spec = obj.setdefault("spec", {})
        spec.setdefault("devices", {})
        _default_claim_spec(spec)

    def reset_status(self, obj: JSONObject) -> None:
        """Nothing is allocated."""
        obj["status"] = {}


class ResourceClaimTemplateStrategy(Strategy):
    """resource.k8s.io/v1 ResourceClaimTemplate."""

    delete_returns_object = True

    def default(self, obj: JSONObject) -> None:
        """As the claims that are made of it."""
        outer = obj.setdefault("spec", {})
        outer.setdefault("metadata", {})
        spec = outer.setdefault("spec", {})
        spec.setdefault("devices", {})
        _default_claim_spec(spec)


STRATEGIES: Final[Mapping[str, Strategy]] = {
    "DeviceClass": DeviceClassStrategy(),
    "ResourceSlice": ResourceSliceStrategy(),
    "ResourceClaim": ResourceClaimStrategy(),
    "ResourceClaimTemplate": ResourceClaimTemplateStrategy(),
}
