"""Strategies of StorageClasses, CSI objects, VolumeAttachments and VolumeAttributesClasses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...api.errors import FieldError
from ...api.objectmeta import Rule
from ...api.resource import JSONObject
from ..core.node.labels import selector_warnings, topology_warnings
from ..core.pod.defaults import VOLUME_SOURCE_DEFAULTS
from ..generic.gatedstrategy import GatedStrategy
from ..generic.gates import GatedField, field_at, fields_of
from ..generic.strategy import Strategy
from . import validation

_DRIVER_FIELDS: Final = (
    GatedField(gate="VolumeLimitScaling", find=field_at("spec", "preventPodSchedulingIfMissing")),
    GatedField(gate="MutableCSINodeAllocatableCount", find=field_at("spec", "nodeAllocatableUpdatePeriodSeconds")),
    GatedField(gate="SELinuxMountReadWriteOncePod", find=field_at("spec", "seLinuxMount")),
    GatedField(gate="CSIServiceAccountTokenSecrets", find=field_at("spec", "serviceAccountTokenInSecrets")),
)
_ATTACHMENT_STATUS: Final = (
    GatedField(
        gate="MutableCSINodeAllocatableCount",
        find=fields_of(field_at("status", "attachError", "errorCode"), field_at("status", "detachError", "errorCode")),
    ),
)


class StorageClassStrategy(Strategy):
    """storage.k8s.io/v1 StorageClass."""

    metadata_update_rules: Sequence[Rule] = ("whole", "compare")
    delete_returns_object = True

    def default(self, obj: JSONObject) -> None:
        """Add the defaults C{Delete} and C{Immediate}."""
        obj.setdefault("provisioner", "")
        if obj.get("reclaimPolicy") is None:
            obj["reclaimPolicy"] = "Delete"
        if obj.get("volumeBindingMode") is None:
            obj["volumeBindingMode"] = "Immediate"

    def warnings(self, obj: JSONObject, old: JSONObject | None) -> Sequence[str]:
        """Return warnings about deprecated labels in the topologies."""
        return list(topology_warnings(obj.get("allowedTopologies"), "allowedTopologies"))

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Validate provisioner, parameters, policies and topologies."""
        return validation.validate_storage_class(obj)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate that the immutable fields are unchanged."""
        return validation.validate_storage_class_update(obj, old)


class CSIDriverStrategy(GatedStrategy):
    """storage.k8s.io/v1 CSIDriver; its generation starts at 0."""

    allow_unconditional_update = False
    has_generation = True
    first_generation = 0
    delete_returns_object = True
    gated_fields = _DRIVER_FIELDS

    def configure(self) -> None:
        """Select the fields to drop, the default of SELinux mounts, and whether to warn about tokens."""
        super().configure()
        self._selinux_mount = (
            (("seLinuxMount", False),) if self.features.enabled("SELinuxMountReadWriteOncePod") else ()
        )
        self._warns_about_tokens = self.features.enabled("CSIServiceAccountTokenSecrets")

    def default(self, obj: JSONObject) -> None:
        """See C{pkg/apis/storage/v1/defaults.go}."""
        spec = obj.setdefault("spec", {})
        for name, value in (
            ("attachRequired", True),
            ("podInfoOnMount", False),
            ("storageCapacity", False),
            ("fsGroupPolicy", "ReadWriteOnceWithFSType"),
            ("requiresRepublish", False),
            *self._selinux_mount,
        ):
            if spec.get(name) is None:
                spec[name] = value
        if not spec.get("volumeLifecycleModes"):
            spec["volumeLifecycleModes"] = ["Persistent"]

    def generation_changes(self, obj: JSONObject, old: JSONObject) -> bool:
        """Return whether the spec changed."""
        changed: bool = obj["spec"] != old["spec"]
        return changed

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Validate the name and the modes."""
        return validation.validate_csi_driver(obj)

    def warnings(self, obj: JSONObject, old: JSONObject | None) -> Sequence[str]:
        """Return a warning about tokens in volume attributes, which may be logged."""
        spec = obj["spec"]
        if not self._warns_about_tokens:
            return ()
        if old is not None and spec.get("tokenRequests") == old["spec"].get("tokenRequests"):
            return ()
        if spec.get("tokenRequests") and spec.get("serviceAccountTokenInSecrets") is None:
            return (
                "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent "
                "possible logging of tokens in volume attributes",
            )
        return ()

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate that the immutable fields are unchanged."""
        return validation.validate_csi_driver_update(obj, old)


class CSINodeStrategy(Strategy):
    """storage.k8s.io/v1 CSINode."""

    metadata_update_rules: Sequence[Rule] = ("whole",)
    delete_returns_object = True
    allow_unconditional_update = False

    def configure(self) -> None:
        """Decide whether drivers can change the number of their volumes."""
        self._counts_change = self.features.enabled("MutableCSINodeAllocatableCount")

    def default(self, obj: JSONObject) -> None:
        """Add C{drivers}, which is encoded even when empty."""
        obj.setdefault("spec", {}).setdefault("drivers", None)

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Validate the drivers, whose names must be unique."""
        return validation.validate_csi_node(obj)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate that registered drivers are unchanged."""
        return validation.validate_csi_node_update(obj, old, counts_change=self._counts_change)


class CSIStorageCapacityStrategy(Strategy):
    """storage.k8s.io/v1 CSIStorageCapacity."""

    metadata_update_rules: Sequence[Rule] = ("whole", "compare")
    allow_unconditional_update = False

    def warnings(self, obj: JSONObject, old: JSONObject | None) -> Sequence[str]:
        """Return warnings about deprecated labels in the topology."""
        return list(selector_warnings(obj.get("nodeTopology"), "nodeTopology"))

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Validate the storage class and the quantities."""
        return validation.validate_csi_capacity(obj)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate that topology and storage class are unchanged."""
        return validation.validate_csi_capacity_update(obj, old)


class VolumeAttachmentStrategy(GatedStrategy):
    """storage.k8s.io/v1 VolumeAttachment."""

    metadata_update_rules: Sequence[Rule] = ("whole",)
    status_metadata_update_rules: Sequence[Rule] = ("whole",)
    has_status = True
    allow_unconditional_update = False
    delete_returns_object = True
    gated_status_fields = _ATTACHMENT_STATUS

    def default(self, obj: JSONObject) -> None:
        """Add C{spec} and C{status}, structs in Go that are always encoded."""
        spec = obj.setdefault("spec", {})
        for name in ("attacher", "nodeName"):
            spec.setdefault(name, "")
        volume = spec.setdefault("source", {}).get("inlineVolumeSpec") or {}
        for name, fill in VOLUME_SOURCE_DEFAULTS.items():
            if volume.get(name) is not None:
                fill(volume[name])
        obj.setdefault("status", {}).setdefault("attached", False)

    def reset_status(self, obj: JSONObject) -> None:
        """Clear the status: not attached."""
        obj["status"] = {"attached": False}

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Validate attacher, node and exactly one source."""
        return validation.validate_attachment(obj)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate that the spec is unchanged."""
        return validation.validate_attachment_update(obj, old)

    def validate_status_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate the attachment metadata and errors."""
        return validation.validate_attachment_update(obj, old)


class VolumeAttributesClassStrategy(Strategy):
    """storage.k8s.io/v1 VolumeAttributesClass."""

    metadata_update_rules: Sequence[Rule] = ("compare", "whole")
    delete_returns_object = True

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Validate driver and parameters."""
        return validation.validate_attributes_class(obj)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate that driver and parameters are unchanged."""
        return validation.validate_attributes_class_update(obj, old)


STRATEGIES: Final[Mapping[str, Strategy]] = {
    "StorageClass": StorageClassStrategy(),
    "CSIDriver": CSIDriverStrategy(),
    "CSINode": CSINodeStrategy(),
    "CSIStorageCapacity": CSIStorageCapacityStrategy(),
    "VolumeAttachment": VolumeAttachmentStrategy(),
    "VolumeAttributesClass": VolumeAttributesClassStrategy(),
}
