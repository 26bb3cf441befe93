"""Strategies of Deployments, ReplicaSets, DaemonSets, StatefulSets and ControllerRevisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...api.errors import FieldError
from ...api.names import validate_dns1123_label
from ...api.objectmeta import Rule
from ...api.resource import JSONObject
from ..core.pod.defaults import default_claim_spec, default_pod_template
from ..core.pod.gates import disabled_pod_fields, drop_of_template
from ..core.pod.validation.options import PodValidationOptions
from ..core.pod.warnings import claim_warnings, name_warnings, template_warnings, unchanged
from ..core.replicationcontroller.validation import validate_replica_set_status
from ..generic.gates import DisabledFields, GatedField, field_at
from ..generic.internaltypes import keep_internal
from ..generic.strategy import Strategy
from . import validation
from .conversion import ROLLBACK_TO, TEMPLATE_GENERATION


def _empty() -> JSONObject:
    return {}


_TERMINATING: Final = (
    GatedField(
        gate="DeploymentReplicaSetTerminatingReplicas",
        find=field_at("status", "terminatingReplicas"),
    ),
)


class WorkloadStrategy(Strategy):
    """
    Base class of strategies of kinds with a pod template.

    @cvar gated_fields: The fields with feature gates, outside of the template.
    @cvar gated_status_fields: The fields of the status with feature gates.
    """

    gated_fields: Sequence[GatedField] = ()
    gated_status_fields: Sequence[GatedField] = ()

    has_generation = True
    has_status = True
    status_protects: Sequence[str] = ()

    def configure(self) -> None:
        """Decide which fields are dropped, and what the validation of templates permits."""
        self._disabled = disabled_pod_fields(self.features)
        self._options = PodValidationOptions(self.features)
        self._disabled_own = DisabledFields(self.gated_fields, self.features)
        self._disabled_status = DisabledFields(self.gated_status_fields, self.features)

    def default(self, obj: JSONObject) -> None:
        """Add C{spec} and its template, which are structs in Go and always encoded."""
        spec = obj.setdefault("spec", {})
        template = spec.get("template")
        if template is None:
            template = spec["template"] = {}
        default_pod_template(template, self.features)
        self.default_spec(spec)

    def default_spec(self, spec: JSONObject) -> None:
        """Add the defaults of the spec that depend on the kind."""

    def prepare_for_create(self, obj: JSONObject) -> None:
        """Drop the fields of disabled feature gates."""
        super().prepare_for_create(obj)
        self._disabled_own.drop(obj)
        drop_of_template(obj["spec"].get("template"), None, self._disabled)

    def prepare_for_update(self, obj: JSONObject, old: JSONObject) -> None:
        """Drop the fields of disabled feature gates that the stored object does not use."""
        super().prepare_for_update(obj, old)
        self._disabled_own.drop(obj, old)
        drop_of_template(obj["spec"].get("template"), old["spec"].get("template"), self._disabled)

    def prepare_for_status_update(self, obj: JSONObject, old: JSONObject) -> None:
        """Drop the fields of disabled feature gates that the stored status does not use."""
        super().prepare_for_status_update(obj, old)
        self._disabled_status.drop(obj, old)

    def warnings(self, obj: JSONObject, old: JSONObject | None) -> Sequence[str]:
        """Return the warnings of the pod template, unless it is unchanged."""
        return (
            []
            if unchanged(obj, old)
            else template_warnings(obj["spec"].get("template"), "spec.template", self.features)
        )

    def reset_status(self, obj: JSONObject) -> None:
        """Set the status to the zero value of its Go type."""
        obj["status"] = {}

    def _for_update(self, old: JSONObject) -> PodValidationOptions:
        """Return what the validation of an update permits in the template."""
        return self._options.for_update(old["spec"].get("template"))


class DeploymentStrategy(WorkloadStrategy):
    """apps/v1 Deployment."""

    gated_status_fields = _TERMINATING

    def warnings(self, obj: JSONObject, old: JSONObject | None) -> Sequence[str]:
        """Return warnings about the name, which is part of the names of pods, and about the template."""
        return [*(() if old else name_warnings(obj["metadata"]["name"])), *super().warnings(obj, old)]

    status_protects = ("labels",)

    def prepare_for_status_update(self, obj: JSONObject, old: JSONObject) -> None:
        """Keep the rollback revision, which is a field of the spec in the internal type."""
        super().prepare_for_status_update(obj, old)
        keep_internal(obj, old, (ROLLBACK_TO,))

    def default_spec(self, spec: JSONObject) -> None:
        """See C{pkg/apis/apps/v1/defaults.go}."""
        if spec.get("replicas") is None:
            spec["replicas"] = 1
        strategy = spec.get("strategy")
        if strategy is None:
            spec["strategy"] = strategy = _empty()
        if not strategy.get("type"):
            strategy["type"] = "RollingUpdate"
        if strategy["type"] == "RollingUpdate":
            rolling = strategy.get("rollingUpdate")
            if rolling is None:
                strategy["rollingUpdate"] = rolling = _empty()
            if rolling.get("maxUnavailable") is None:
                rolling["maxUnavailable"] = "25%"
            if rolling.get("maxSurge") is None:
                rolling["maxSurge"] = "25%"
        if spec.get("revisionHistoryLimit") is None:
            spec["revisionHistoryLimit"] = 10
        if spec.get("progressDeadlineSeconds") is None:
            spec["progressDeadlineSeconds"] = 600

    def generation_changes(self, obj: JSONObject, old: JSONObject) -> bool:
        """Return whether the spec or the annotations changed: a rollout copies annotations to its ReplicaSets."""
        annotations = obj["metadata"].get("annotations") != old["metadata"].get("annotations")
        return annotations or super().generation_changes(obj, old)

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Validate the spec."""
        return validation.validate_deployment(obj, self._options)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate the spec and that the selector is unchanged."""
        return validation.validate_deployment_update(obj, old, self._for_update(old))

    def validate_status_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate the replica counts."""
        return validation.validate_deployment_status(obj, old)


class ReplicaSetStrategy(WorkloadStrategy):
    """apps/v1 ReplicaSet."""

    gated_status_fields = _TERMINATING

    def warnings(self, obj: JSONObject, old: JSONObject | None) -> Sequence[str]:
        """Return warnings about the name, which is part of the names of pods, and about the template."""
        return [*(() if old else name_warnings(obj["metadata"]["name"])), *super().warnings(obj, old)]

    def default_spec(self, spec: JSONObject) -> None:
        """Add the default of one replica."""
        if spec.get("replicas") is None:
            spec["replicas"] = 1

    def reset_status(self, obj: JSONObject) -> None:
        """Set the status to zero replicas."""
        obj["status"] = {"replicas": 0}

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Validate the spec."""
        return validation.validate_replica_set(obj, self._options)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate the spec and that the selector is unchanged."""
        return validation.validate_replica_set_update(obj, old, self._for_update(old))

    def validate_status_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate the replica counts."""
        return validate_replica_set_status(obj)


class DaemonSetStrategy(WorkloadStrategy):
    """apps/v1 DaemonSet."""

    def default_spec(self, spec: JSONObject) -> None:
        """Add the defaults of the update strategy: one unavailable pod at a time."""
        strategy = spec.get("updateStrategy")
        if strategy is None:
            spec["updateStrategy"] = strategy = _empty()
        if not strategy.get("type"):
            strategy["type"] = "RollingUpdate"
        if strategy["type"] == "RollingUpdate":
            rolling = strategy.get("rollingUpdate")
            if rolling is None:
                strategy["rollingUpdate"] = rolling = _empty()
            if rolling.get("maxUnavailable") is None:
                rolling["maxUnavailable"] = 1
            if rolling.get("maxSurge") is None:
                rolling["maxSurge"] = 0
        for name in ("maxUnavailable", "maxSurge") if strategy.get("rollingUpdate") is not None else ():
            # The zero value in Go: this field has no default.
            if strategy["rollingUpdate"].get(name) is None:
                strategy["rollingUpdate"][name] = 0
        if spec.get("revisionHistoryLimit") is None:
            spec["revisionHistoryLimit"] = 10

    def default(self, obj: JSONObject) -> None:
        """
        Add the annotation for the template generation, which the writer then owns.

        It represents a field of the internal type, so it is always present.
        """
        super().default(obj)
        annotations = obj["metadata"].setdefault("annotations", {})
        annotations.setdefault(TEMPLATE_GENERATION, "0")

    def prepare_for_create(self, obj: JSONObject) -> None:
        """Set the template generation, at least 1."""
        super().prepare_for_create(obj)
        _set_template_generation(obj, max(_template_generation(obj), 1))

    def prepare_for_update(self, obj: JSONObject, old: JSONObject) -> None:
        """Increment the template generation if the template changed."""
        super().prepare_for_update(obj, old)
        generation = _template_generation(old)
        if obj["spec"]["template"] != old["spec"].get("template"):
            generation += 1
        _set_template_generation(obj, generation)

    def prepare_for_status_update(self, obj: JSONObject, old: JSONObject) -> None:
        """Keep the template generation, which is a field of the spec in the internal type."""
        super().prepare_for_status_update(obj, old)
        keep_internal(obj, old, (TEMPLATE_GENERATION,))

    def reset_status(self, obj: JSONObject) -> None:
        """Set the status to zero pods."""
        obj["status"] = {
            "currentNumberScheduled": 0,
            "numberMisscheduled": 0,
            "desiredNumberScheduled": 0,
            "numberReady": 0,
        }

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Validate the spec."""
        return validation.validate_daemon_set(obj, self._options)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate the spec and that the selector is unchanged."""
        return validation.validate_daemon_set_update(obj, old, self._for_update(old))

    def validate_status_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate the pod counts."""
        return validation.validate_daemon_set_status(obj, old)


def _template_generation(obj: JSONObject) -> int:
    """Return the template's generation, which decoding has validated; 0 if absent."""
    return int((obj["metadata"].get("annotations") or {}).get(TEMPLATE_GENERATION, "0"))


def _set_template_generation(obj: JSONObject, generation: int) -> None:
    obj["metadata"].setdefault("annotations", {})[TEMPLATE_GENERATION] = str(generation)


class StatefulSetStrategy(WorkloadStrategy):
    """apps/v1 StatefulSet."""

    gated_fields = (
        GatedField(
            gate="StatefulSetAutoDeletePVC",
            find=field_at("spec", "persistentVolumeClaimRetentionPolicy"),
        ),
        GatedField(
            gate="MaxUnavailableStatefulSet",
            find=field_at("spec", "updateStrategy", "rollingUpdate", "maxUnavailable"),
        ),
        GatedField(gate="StatefulSetStartOrdinal", find=field_at("spec", "ordinals")),
    )

    def configure(self) -> None:
        """Decide which fields have defaults."""
        super().configure()
        self._limits_unavailable = self.features.enabled("MaxUnavailableStatefulSet")
        self._retains_claims = self.features.enabled("StatefulSetAutoDeletePVC")

    def validate_name(self, name: str, prefix: bool) -> Sequence[str]:
        """Check that the name is a DNS label, since pod names begin with it."""
        return validate_dns1123_label(name, prefix)

    def default_spec(self, spec: JSONObject) -> None:
        """Add defaults; see C{pkg/apis/apps/v1/defaults.go}. Conversion sets the kind of claims."""
        spec.setdefault("serviceName", "")
        if not spec.get("podManagementPolicy"):
            spec["podManagementPolicy"] = "OrderedReady"
        strategy = spec.get("updateStrategy")
        if strategy is None:
            spec["updateStrategy"] = strategy = _empty()
        if not strategy.get("type"):
            strategy["type"] = "RollingUpdate"
            rolling = strategy.setdefault("rollingUpdate", {})
        rolling = strategy.get("rollingUpdate")
        if strategy["type"] == "RollingUpdate" and rolling is not None:
            if rolling.get("partition") is None:
                rolling["partition"] = 0
            if self._limits_unavailable and rolling.get("maxUnavailable") is None:
                rolling["maxUnavailable"] = 1
        if self._retains_claims:
            policy = spec.get("persistentVolumeClaimRetentionPolicy")
            if policy is None:
                spec["persistentVolumeClaimRetentionPolicy"] = policy = _empty()
            for name in ("whenDeleted", "whenScaled"):
                if not policy.get(name):
                    policy[name] = "Retain"
        if spec.get("replicas") is None:
            spec["replicas"] = 1
        if spec.get("revisionHistoryLimit") is None:
            spec["revisionHistoryLimit"] = 10
        for claim in spec.get("volumeClaimTemplates") or ():
            claim["apiVersion"] = "v1"
            claim["kind"] = "PersistentVolumeClaim"
            claim.setdefault("metadata", {})
            default_claim_spec(claim.setdefault("spec", {}))
            status = claim.setdefault("status", {})
            if not status.get("phase"):
                status["phase"] = "Pending"

    def reset_status(self, obj: JSONObject) -> None:
        """Set the status to zero replicas."""
        obj["status"] = {"replicas": 0, "availableReplicas": 0}

    def warnings(self, obj: JSONObject, old: JSONObject | None) -> Sequence[str]:
        """Return warnings about the pod template, the claim templates and a negative history limit."""
        spec = obj["spec"]
        texts = list(super().warnings(obj, old))
        for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
            # The reference names a field that does not exist in the path of updates.
            texts += claim_warnings(claim["spec"], f"spec.volumeClaimTemplates[{index}]{'.Spec' if old else ''}")
        if (spec.get("revisionHistoryLimit") or 0) < 0:
            texts.append(
                "spec.revisionHistoryLimit: a negative value retains all historical revisions; "
                "a value >= 0 is recommended"
            )
        return texts

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Validate the spec."""
        return validation.validate_stateful_set(obj, self._options)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate the spec and that only mutable fields changed."""
        return validation.validate_stateful_set_update(obj, old, self._for_update(old))

    def validate_status_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate the replica counts."""
        return validation.validate_stateful_set_status(obj, old)


class ControllerRevisionStrategy(Strategy):
    """apps/v1 ControllerRevision: immutable data with a mutable revision number."""

    metadata_update_rules: Sequence[Rule] = ("compare", "whole")

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Validate that the object has data and a revision."""
        return validation.validate_controller_revision(obj)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate that the data is unchanged."""
        return validation.validate_controller_revision_update(obj, old)


STRATEGIES: Final[Mapping[str, Strategy]] = {
    "Deployment": DeploymentStrategy(),
    "ReplicaSet": ReplicaSetStrategy(),
    "DaemonSet": DaemonSetStrategy(),
    "StatefulSet": StatefulSetStrategy(),
    "ControllerRevision": ControllerRevisionStrategy(),
}
