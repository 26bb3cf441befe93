"""Strategies of DeviceClasses, ResourceClaims, their templates and ResourceSlices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...api.errors import FieldError
from ...api.go.quote import quoted
from ...api.names import validate_long_name
from ...api.objectmeta import Rule
from ...api.resource import JSONObject
from ...api.times import now
from ..generic.gatedstrategy import GatedStrategy
from ..generic.gates import DisabledFields
from ..generic.strategy import Strategy
from .gates import CLAIM_SPEC, CLAIM_STATUS, CLASS_SPEC, SLICE_SPEC
from .validation import claims, deviceclasses, slices


def _spec(obj: JSONObject) -> JSONObject:
    spec: JSONObject = obj["spec"]
    return spec


def _default_claim_spec(spec: JSONObject) -> None:
    """Add defaults; see C{pkg/apis/resource/v1/defaults.go}."""
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


class DeviceClassStrategy(GatedStrategy):
    """resource.k8s.io/v1 DeviceClass."""

    metadata_update_rules: Sequence[Rule] = ("whole", "compare")
    has_generation = True
    untyped = True
    delete_returns_object = True

    gated_fields = CLASS_SPEC

    def gated_part(self, obj: JSONObject) -> JSONObject:
        """Return the spec."""
        return _spec(obj)

    def validate_name(self, name: str, prefix: bool) -> Sequence[str]:
        """See L{validate_long_name}."""
        return validate_long_name(name, prefix)

    def default(self, obj: JSONObject) -> None:
        """Add C{spec}, a struct in Go that is always encoded."""
        obj.setdefault("spec", {})

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Validate selectors and configuration."""
        return deviceclasses.validate_device_class(obj)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate as on create; stored configuration may exceed the size limit."""
        return deviceclasses.validate_device_class(obj, old)


class ResourceSliceStrategy(GatedStrategy):
    """resource.k8s.io/v1 ResourceSlice."""

    has_generation = True
    delete_returns_object = True
    gated_fields = SLICE_SPEC

    def default(self, obj: JSONObject) -> None:
        """Set the time of new taints."""
        for device in obj.setdefault("spec", {}).get("devices") or ():
            for taint in device.get("taints") or ():
                if taint.get("timeAdded") is None:
                    taint["timeAdded"] = now()

    def gated_part(self, obj: JSONObject) -> JSONObject:
        """Return the spec."""
        return _spec(obj)

    def warnings(self, obj: JSONObject, old: JSONObject | None) -> Sequence[str]:
        """Return a warning about a driver name with capital letters."""
        driver = obj["spec"].get("driver") or ""
        if driver == driver.lower():
            return ()
        return (f"spec.driver: driver names should be lowercase; {quoted(driver)} contains uppercase characters",)

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Validate devices and nodes."""
        return slices.validate_slice(obj)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate that pool, driver and node are unchanged."""
        return slices.validate_slice_update(obj, old)


class ResourceClaimStrategy(GatedStrategy):
    """resource.k8s.io/v1 ResourceClaim."""

    metadata_update_rules: Sequence[Rule] = ("whole", "compare")
    has_status = True
    delete_returns_object = True

    gated_fields = CLAIM_SPEC

    def configure(self) -> None:
        """Select the fields to drop."""
        super().configure()
        self._disabled_results = DisabledFields(CLAIM_STATUS, self.features)

    def gated_part(self, obj: JSONObject) -> JSONObject:
        """Return the spec."""
        return _spec(obj)

    def default(self, obj: JSONObject) -> None:
        """Add the defaults: each request is for one device."""
        spec = obj.setdefault("spec", {})
        spec.setdefault("devices", {})
        _default_claim_spec(spec)
        allocation = (obj.get("status") or {}).get("allocation") or {}
        for result in (allocation.get("devices") or {}).get("results") or ():
            _default_tolerations(result)

    def reset_status(self, obj: JSONObject) -> None:
        """Clear the status: nothing is allocated."""
        obj["status"] = {}

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Validate requests, constraints and configuration."""
        return claims.validate_claim(obj)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate that the spec is unchanged."""
        return claims.validate_claim_update(obj, old)

    def prepare_for_status_update(self, obj: JSONObject, old: JSONObject) -> None:
        """Drop the status of devices that are deallocated, and the fields of disabled feature gates."""
        super().prepare_for_status_update(obj, old)
        status = obj.get("status") or {}
        deallocated = claims.allocated(old.get("status") or {}) - claims.allocated(status)
        if deallocated and status.get("devices"):
            status["devices"] = [one for one in status["devices"] if claims.device_key(one) not in deallocated]
            if not status["devices"]:
                del status["devices"]
        self._disabled_results.drop(status, old.get("status") or {})

    def validate_status_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate allocation, users and device status."""
        return claims.validate_claim_status_update(obj, old)


class ResourceClaimTemplateStrategy(GatedStrategy):
    """resource.k8s.io/v1 ResourceClaimTemplate."""

    metadata_update_rules: Sequence[Rule] = ("whole", "compare")
    delete_returns_object = True

    gated_fields = CLAIM_SPEC

    def gated_part(self, obj: JSONObject) -> JSONObject:
        """Return the spec of the claims."""
        return _spec(_spec(obj))

    def default(self, obj: JSONObject) -> None:
        """Add the defaults of claims."""
        outer = obj.setdefault("spec", {})
        outer.setdefault("metadata", {})
        spec = outer.setdefault("spec", {})
        spec.setdefault("devices", {})
        _default_claim_spec(spec)

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Validate the claim spec in the template."""
        return claims.validate_claim_template(obj)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate that the spec is unchanged."""
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
