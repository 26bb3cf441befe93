"""Strategy of Nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ....api.errors import FieldError
from ....api.objectmeta import Rule, UpdateErrors
from ....api.resource import JSONObject
from ...generic.gates import DisabledFields, GatedField, field_at
from ...generic.strategy import Strategy
from ...generic.validation.fields import STRICT_ADDRESSES
from ..pod.defaults import round_up
from . import validation

#: The features of runtimes: for recursive read-only mounts, and for user namespaces.
_HANDLERS: Final = GatedField(gate="RecursiveReadOnlyMounts", find=field_at("status", "runtimeHandlers"))
_PREEMPTION: Final = GatedField(
    gate="InPlacePodVerticalScalingSchedulerPreemption", find=field_at("spec", "podPreemptionPolicy")
)
_FIELDS: Final = (
    _PREEMPTION,
    GatedField(gate="SupplementalGroupsPolicy", find=field_at("status", "features")),
    GatedField(gate="NodeDeclaredFeatures", find=field_at("status", "declaredFeatures")),
)


class NodeStrategy(Strategy):
    """Strategy of v1 Node; a client that creates a node may set its status."""

    metadata_update_rules: Sequence[Rule] = ("whole", "compare")
    has_status = True
    status_protects = ()

    def configure(self) -> None:
        """Select the fields to drop, and decide how to validate CIDRs."""
        mounts_of_users = self.features.enabled("UserNamespacesSupport")
        self._disabled_spec = DisabledFields((_PREEMPTION,), self.features)
        self._disabled = DisabledFields(_FIELDS if mounts_of_users else (_HANDLERS, *_FIELDS), self.features)
        self._strict = self.features.enabled(STRICT_ADDRESSES)

    def default(self, obj: JSONObject) -> None:
        """Set defaults: C{allocatable} is C{capacity}."""
        obj.setdefault("spec", {})
        self._sync_cidrs(obj["spec"])
        status = obj.setdefault("status", {})
        for name in ("capacity", "allocatable"):
            round_up(status.get(name))
        if status.get("allocatable") is None and status.get("capacity"):
            status["allocatable"] = dict(status["capacity"])
        status.setdefault("daemonEndpoints", {}).setdefault("kubeletEndpoint", {"Port": 0})
        status.setdefault(
            "nodeInfo",
            {
                "machineID": "",
                "systemUUID": "",
                "bootID": "",
                "kernelVersion": "",
                "osImage": "",
                "containerRuntimeVersion": "",
                "kubeletVersion": "",
                "kubeProxyVersion": "",
                "operatingSystem": "",
                "architecture": "",
            },
        )

    @staticmethod
    def _sync_cidrs(spec: JSONObject) -> None:
        one, many = spec.get("podCIDR"), spec.get("podCIDRs")
        if one and (not many or many[0] != one):
            spec["podCIDRs"] = [one]
        elif many and not one:
            spec["podCIDR"] = many[0]

    def prepare_for_create(self, obj: JSONObject) -> None:
        """Remove fields of removed features; the status is kept."""
        _drop_config(obj, {})
        self._disabled.drop(obj)

    def prepare_for_update(self, obj: JSONObject, old: JSONObject) -> None:
        """Restore the fields of removed features, which can only be removed."""
        super().prepare_for_update(obj, old)
        _drop_config(obj, old)
        self._disabled_spec.drop(obj, old)

    def prepare_for_status_update(self, obj: JSONObject, old: JSONObject) -> None:
        """Prepare as for the main resource."""
        super().prepare_for_status_update(obj, old)
        _drop_config(obj, old)

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Validate a new node."""
        return validation.validate_node(obj, strict=self._strict)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate immutable fields, and the new node, as in the reference."""
        errors = validation.validate_node(obj, strict=self._strict)
        return UpdateErrors(errors, validation.validate_node_update(obj, old))

    def validate_status_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate immutable fields."""
        return validation.validate_node_update(obj, old)

    def warnings(self, obj: JSONObject, old: JSONObject | None) -> Sequence[str]:
        """Return warnings about fields without effect."""
        return validation.node_warnings(obj)


def _drop_config(obj: JSONObject, old: JSONObject) -> None:
    """Remove C{configSource}, a removed feature, unless the old node has it."""
    if (old.get("status") or {}).get("config") is None:
        (obj.get("status") or {}).pop("config", None)
    if (old.get("spec") or {}).get("configSource") is None:
        (obj.get("spec") or {}).pop("configSource", None)


STRATEGIES: Final[Mapping[str, Strategy]] = {
    "Node": NodeStrategy(),
}
