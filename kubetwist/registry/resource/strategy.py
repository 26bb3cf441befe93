"""Device classes, claims of devices, and the slices that offer them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...api.errors import FieldError
from ...api.go.quote import quoted
from ...api.names import validate_long_name
from ...api.objectmeta import Rule
from ...api.resource import JSONObject
from ...api.times import now
from ..generic.strategy import Strategy
from .validation import claims, deviceclasses, slices


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
            _default_tolerations(one)


def _default_tolerations(holder: JSONObject) -> None:
    for toleration in holder.get("tolerations") or ():
        if not toleration.get("operator"):
            toleration["operator"] = "Equal"


class DeviceClassStrategy(Strategy):
    """resource.k8s.io/v1 DeviceClass."""

    metadata_update_rules: Sequence[Rule] = ("whole", "compare")
    has_generation = True
    untyped = True
    delete_returns_object = True

    def validate_name(self, name: str, prefix: bool) -> Sequence[str]:
        """See L{validate_long_name}."""
        return validate_long_name(name, prefix)

    def default(self, obj: JSONObject) -> None:
        """C{spec} is a struct in Go: always there."""
        obj.setdefault("spec", {})

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Selectors and configuration."""
        return deviceclasses.validate_device_class(obj)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """As a new one; longer configuration may stay."""
        return deviceclasses.validate_device_class(obj, old)


class ResourceSliceStrategy(Strategy):
    """resource.k8s.io/v1 ResourceSlice."""

    has_generation = True
    delete_returns_object = True

    def default(self, obj: JSONObject) -> None:
        """Taints are from now on."""
        for device in obj.setdefault("spec", {}).get("devices") or ():
            for taint in device.get("taints") or ():
                if taint.get("timeAdded") is None:
                    taint["timeAdded"] = now()

    def prepare_for_create(self, obj: JSONObject) -> None:
        """Attributes with several values, and what devices take of nodes, are behind gates that are closed."""
        for device in obj["spec"].get("devices") or ():
            device.pop("nodeAllocatableResourceMappings", None)
            for attribute in (device.get("attributes") or {}).values():
                for name in ("bools", "ints", "strings", "versions"):
                    attribute.pop(name, None)

    def prepare_for_update(self, obj: JSONObject, old: JSONObject) -> None:
        """Likewise."""
        self.prepare_for_create(obj)

    def warnings(self, obj: JSONObject, old: JSONObject | None) -> Sequence[str]:
        """Drivers have names in small letters."""
        driver = obj["spec"].get("driver") or ""
        if driver == driver.lower():
            return ()
        return (f"spec.driver: driver names should be lowercase; {quoted(driver)} contains uppercase characters",)

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Devices and nodes."""
        return slices.validate_slice(obj)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Pool, driver and node stay."""
        return slices.validate_slice_update(obj, old)


class ResourceClaimStrategy(Strategy):
    """resource.k8s.io/v1 ResourceClaim."""

    metadata_update_rules: Sequence[Rule] = ("whole", "compare")
    has_status = True
    delete_returns_object = True

    def default(self, obj: JSONObject) -> None:
        """Requests are for one device each."""
        spec = obj.setdefault("spec", {})
        spec.setdefault("devices", {})
        _default_claim_spec(spec)
        allocation = (obj.get("status") or {}).get("allocation") or {}
        for result in (allocation.get("devices") or {}).get("results") or ():
            _default_tolerations(result)

    def reset_status(self, obj: JSONObject) -> None:
        """Nothing is allocated."""
        obj["status"] = {}

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Requests, constraints and configuration."""
        return claims.validate_claim(obj)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """What is claimed stays."""
        return claims.validate_claim_update(obj, old)

    def prepare_for_status_update(self, obj: JSONObject, old: JSONObject) -> None:
        """What drivers said of devices goes with the devices."""
        super().prepare_for_status_update(obj, old)
        status = obj.get("status") or {}
        gone = claims.allocated(old.get("status") or {}) - claims.allocated(status)
        if gone and status.get("devices"):
            status["devices"] = [one for one in status["devices"] if claims.device_key(one) not in gone]
            if not status["devices"]:
                del status["devices"]

    def validate_status_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Users and devices."""
        return claims.validate_claim_status_update(obj, old)


class ResourceClaimTemplateStrategy(Strategy):
    """resource.k8s.io/v1 ResourceClaimTemplate."""

    metadata_update_rules: Sequence[Rule] = ("whole", "compare")
    delete_returns_object = True

    def default(self, obj: JSONObject) -> None:
        """As the claims that are made of it."""
        outer = obj.setdefault("spec", {})
        outer.setdefault("metadata", {})
        spec = outer.setdefault("spec", {})
        spec.setdefault("devices", {})
        _default_claim_spec(spec)

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """What its claims would be."""
        return claims.validate_claim_template(obj)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """What its claims are stays."""
        return claims.validate_claim_template_update(obj, old)


class ReturnedWhenDeletedStrategy(Strategy):
    """
    Strategy of alpha and beta kinds of resource.k8s.io that have a spec with a generation and a status, and that DELETE
    returns.
    """

    has_generation = True
    has_status = True
    delete_returns_object = True


STRATEGIES: Final[Mapping[str, Strategy]] = {
    "DeviceClass": DeviceClassStrategy(),
    "ResourceSlice": ResourceSliceStrategy(),
    "ResourceClaim": ResourceClaimStrategy(),
    "ResourceClaimTemplate": ResourceClaimTemplateStrategy(),
    "DeviceTaintRule": ReturnedWhenDeletedStrategy(),
    "ResourcePoolStatusRequest": ReturnedWhenDeletedStrategy(),
}
