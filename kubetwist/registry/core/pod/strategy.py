"""Strategies of Pods and Bindings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from ....api.errors import FieldError
from ....api.objectmeta import Rule
from ....api.resource import JSONObject
from ....api.times import now
from ...generic.strategy import Strategy
from .creation import (
    annotate_app_armor_profiles,
    app_armor_warnings,
    apply_app_armor_annotations,
    merge_affinity_keys,
    merge_spread_keys,
)
from .defaults import complete_pod_resources, default_pod, keep_pod_resources, round_up, round_up_resources
from .gates import disabled_pod_fields, disabled_status_fields
from .qos import qos_class
from .validation import pod as pods
from .validation import updates as podupdates
from .validation.options import PodValidationOptions
from .warnings import pod_name_warnings, pod_warnings

if TYPE_CHECKING:
    from ....api.options import DeleteOptions

#: Fields of a container that a resize changes.
_SIZES: Final = ("resources", "resizePolicy")
#: Final phases of pods.
FINISHED: Final = ("Succeeded", "Failed")


class PodStrategy(Strategy):
    """Strategy of v1 Pod."""

    metadata_update_rules: Sequence[Rule] = ("compare", "whole")
    has_generation = True
    has_status = True
    status_protects = ("ownerReferences",)
    delete_returns_object = True

    def configure(self) -> None:
        """Select the fields to drop, and the changes to new pods."""
        features = self.features
        self._disabled = disabled_pod_fields(features)
        self._disabled_status = disabled_status_fields(features)
        self._options = PodValidationOptions(features)
        self._merges_affinity = features.enabled("MatchLabelKeysInPodAffinity")
        self.has_generation = features.since(1, 33)
        self._annotates_profiles = features.enabled("AppArmorFields") and not features.since(1, 34)
        self._completes_resources = features.enabled("PodLevelResourcesFixDefaulting")
        self._pod_level = features.enabled("PodLevelResources")
        self._resized = ["containers"]
        if features.enabled("SidecarContainers") and features.since(1, 33):
            self._resized.append("initContainers")
        self._resizes_whole = features.enabled("InPlacePodLevelResourcesVerticalScaling")
        self._merges_spread = features.enabled("MatchLabelKeysInPodTopologySpread") and features.enabled(
            "MatchLabelKeysInPodTopologySpreadSelectorMerge"
        )

    def default(self, obj: JSONObject) -> None:
        """Set the defaults of the spec, and C{podIPs} from C{podIP}, which has precedence."""
        default_pod(obj, self.features)
        status = obj.get("status")
        if status:
            _default_status(status)

    def prepare_for_create(self, obj: JSONObject) -> None:
        """Prepare a new pod: set derived fields, drop fields of disabled gates, and set the status."""
        spec = obj["spec"]
        self._disabled.drop(spec)
        if self._completes_resources:
            complete_pod_resources(spec, self.features)
        labels = obj["metadata"].get("labels") or {}
        if self._merges_affinity:
            merge_affinity_keys(spec, labels)
        if self._merges_spread:
            merge_spread_keys(spec, labels)
        apply_app_armor_annotations(obj["metadata"], spec)
        if self._annotates_profiles:
            annotate_app_armor_profiles(obj["metadata"], spec)
        qos_class = (obj.get("status") or {}).get("qosClass")
        super().prepare_for_create(obj)
        if qos_class:
            obj["status"]["qosClass"] = qos_class

    def prepare_for_update(self, obj: JSONObject, old: JSONObject) -> None:
        """Restore the status, and drop fields of disabled gates unless the old pod has them."""
        super().prepare_for_update(obj, old)
        self._disabled.drop(obj["spec"], old["spec"])
        if self._completes_resources:
            keep_pod_resources(obj["spec"], old["spec"])

    def reset_status(self, obj: JSONObject) -> None:
        """Set the phase Pending, the QoS class, and the condition of scheduling gates."""
        status: JSONObject = {"phase": "Pending"}
        if obj["spec"].get("schedulingGates"):
            status["conditions"] = [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "reason": "SchedulingGated",
                    "message": "Scheduling is blocked due to non-empty scheduling gates",
                    "lastProbeTime": None,
                    "lastTransitionTime": now(),
                }
            ]
        status["qosClass"] = qos_class(obj["spec"], self._pod_level)
        obj["status"] = status

    def prepare_for_status_update(self, obj: JSONObject, old: JSONObject) -> None:
        """Restore the QoS class and observed generations if they are omitted."""
        super().prepare_for_status_update(obj, old)
        status, before = obj.get("status"), old.get("status") or {}
        if status is None:
            status = obj["status"] = {}
        for name, since in (("qosClass", (1, 32)), ("observedGeneration", (1, 33))):
            if before.get(name) and not status.get(name) and self.features.since(*since):
                status[name] = before[name]
        if self.features.since(1, 33):
            _keep_observed(status.get("conditions") or (), before.get("conditions") or ())
        self._disabled_status.drop(obj, old)

    def prepare_for_ephemeral_update(self, obj: JSONObject, old: JSONObject) -> None:
        """Restore everything in C{obj} except the ephemeral containers."""
        requested = obj["spec"].get("ephemeralContainers")
        _take(obj, old)
        if requested:
            obj["spec"]["ephemeralContainers"] = requested
        else:
            obj["spec"].pop("ephemeralContainers", None)
        self._disabled.drop(obj["spec"], old["spec"])

    def prepare_for_resize(self, obj: JSONObject, old: JSONObject) -> None:
        """Restore everything in C{obj} except the resources and resize policies of containers."""
        requested, before = obj["spec"], old["spec"]
        kinds = ("containers", "initContainers")
        if any(len(requested.get(name) or ()) != len(before.get(name) or ()) for name in kinds):
            return  # Validation rejects the object.
        _take(obj, old)
        for name in self._resized:
            if requested.get(name):
                obj["spec"][name] = _resized(requested[name], before[name])
        if self._resizes_whole:
            if "resources" in requested:
                obj["spec"]["resources"] = requested["resources"]
            else:
                obj["spec"].pop("resources", None)
        self._disabled.drop(obj["spec"], before)

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Validate a new pod."""
        return pods.validate_pod_create(obj, self._options)

    def validate_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate that only mutable fields change."""
        return podupdates.validate_pod_update(obj, old, self._options)

    def validate_status_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate container states, whose transitions are restricted, and addresses."""
        return podupdates.validate_pod_status_update(obj, old, self._options)

    def validate_ephemeral_update(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate that ephemeral containers are only added."""
        return podupdates.validate_ephemeral_update(obj, old, self._options)

    def validate_resize(self, obj: JSONObject, old: JSONObject) -> Sequence[FieldError]:
        """Validate that the QoS class does not change."""
        return podupdates.validate_resize(obj, old, self._options)

    def warnings(self, obj: JSONObject, old: JSONObject | None) -> Sequence[str]:
        """Return warnings for new pods; updates are mostly by controllers and get none."""
        if old is not None:
            return ()
        return pod_name_warnings(obj["metadata"].get("name", "")) + pod_warnings(
            obj["spec"], obj["metadata"], self.features
        )

    def early_warnings(self, obj: JSONObject) -> Sequence[str]:
        """Return warnings about deprecated annotations."""
        return app_armor_warnings(obj["metadata"], obj["spec"])

    def grace_period(self, obj: JSONObject, options: DeleteOptions) -> int | None:
        """
        Return the grace period of the options or of the spec; 0 if no kubelet must stop containers.

        See C{pkg/registry/core/pod/strategy.go}, CheckGracefulDelete.
        """
        spec, status = obj.get("spec") or {}, obj.get("status") or {}
        period = options.grace_period_seconds
        if period is None:
            period = spec.get("terminationGracePeriodSeconds")
            if period is None:
                period = 0
        if period < 0:
            period = 1
        if not spec.get("nodeName") or status.get("phase") in FINISHED:
            period = 0
        return int(period)


def _default_status(status: JSONObject) -> None:
    address, addresses = status.get("podIP"), status.get("podIPs")
    if address and (not addresses or (addresses[0].get("ip") or "") != address):
        status["podIPs"] = [{"ip": address}]
    elif addresses and addresses[0].get("ip"):
        status["podIP"] = addresses[0]["ip"]
    for holder in (status, *_container_statuses(status)):
        round_up(holder.get("allocatedResources"))
        round_up_resources(holder.get("resources"))


def _container_statuses(status: JSONObject) -> Iterator[JSONObject]:
    for kind in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        yield from status.get(kind) or ()


def _keep_observed(conditions: Sequence[JSONObject], before: Sequence[JSONObject]) -> None:
    """Set missing observed generations of conditions to those of the last old condition of the type."""
    observed: dict[str | None, list[int]] = {}
    for condition in reversed(before):
        observed.setdefault(condition.get("type"), []).append(condition.get("observedGeneration") or 0)
    for condition in conditions:
        generations = observed.get(condition.get("type"))
        generation = generations.pop() if generations else 0
        if generation and not condition.get("observedGeneration"):
            condition["observedGeneration"] = generation


def _resized(requested: Sequence[JSONObject], before: Sequence[JSONObject]) -> list[JSONObject]:
    """
    Return the containers of C{before} with the resources of C{requested}; C{requested} if names differ.

    Validation rejects different names.
    """
    containers = []
    for new, old in zip(requested, before, strict=True):
        if new.get("name") != old.get("name"):
            return list(requested)
        container: JSONObject = {name: value for name, value in old.items() if name not in _SIZES}
        container.update((name, new[name]) for name in _SIZES if name in new)
        containers.append(container)
    return containers


def _take(obj: JSONObject, old: JSONObject) -> None:
    """Make C{obj} equal to C{old}, except for the uid and resourceVersion of preconditions."""
    metadata = obj["metadata"]
    sent = {name: metadata[name] for name in ("resourceVersion", "managedFields") if name in metadata}
    # Modified in place: the store refers to this dictionary.
    metadata.clear()
    metadata.update(old["metadata"], **sent)
    obj.clear()
    obj.update(old)
    obj["metadata"] = metadata
    spec: JSONObject = {**old["spec"]}
    for name in ("containers", "initContainers"):
        if name in spec:
            spec[name] = [{**container} for container in spec[name]]
    obj["spec"] = spec


class BindingStrategy(Strategy):
    """Strategy of v1 Binding, which is validated but not stored."""

    def validate(self, obj: JSONObject) -> Sequence[FieldError]:
        """Validate that the target is a node."""
        return pods.validate_binding(obj)


STRATEGIES: Final[Mapping[str, Strategy]] = {"Pod": PodStrategy(), "Binding": BindingStrategy()}
