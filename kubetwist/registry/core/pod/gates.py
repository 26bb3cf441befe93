"""
The fields of pods and pod templates that have feature gates.

See kubernetes, C{pkg/api/pod/util.go}.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ....api.featuregates import FeatureGates
from ....api.podspecs import containers, declared_containers
from ....api.resource import JSONObject
from ...generic.gates import (
    ITEMS,
    DisabledFields,
    Find,
    GatedField,
    InUse,
    field_at,
    fields_of,
    never,
    not_empty,
)

_CONTAINER_LISTS: Final = ("initContainers", "containers", "ephemeralContainers")
_STATUS_LISTS: Final = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
_AFFINITIES: Final = ("podAffinity", "podAntiAffinity")
_HANDLERS: Final = ("preStop", "postStart")


def disabled_pod_fields(features: FeatureGates) -> DisabledFields:
    """Return the fields of the spec of pods and templates that a server drops."""
    return DisabledFields(_SPEC, features)


def disabled_status_fields(features: FeatureGates) -> DisabledFields:
    """Return the fields of the status that a server drops; they are found in pods, since some depend on the spec."""
    return DisabledFields(_STATUS, features)


def drop_of_template(template: JSONObject | None, old: JSONObject | None, disabled: DisabledFields) -> None:
    """
    Drop the fields of disabled feature gates from a template.

    @param template: The template; modified.
    @param old: The template of the stored object, whose fields are kept; L{None} when it is created.
    @param disabled: The result of L{disabled_pod_fields}.
    """
    if template and template.get("spec"):
        disabled.drop(template["spec"], (old or {}).get("spec"))


def _in_containers(*path: str) -> Find:
    """Return a function that finds a field in all containers of a spec."""
    return fields_of(*(field_at(name, ITEMS, *path) for name in _CONTAINER_LISTS))


def _in_statuses(*path: str) -> Find:
    """Return a function that finds a field in the statuses of all containers of a pod."""
    return fields_of(*(field_at("status", name, ITEMS, *path) for name in _STATUS_LISTS))


def _spec_uses(in_use: InUse) -> InUse:
    """Return a function that returns whether the spec of a pod uses a field."""

    def pod_uses(pod: JSONObject) -> bool:
        return in_use(pod["spec"])

    return pod_uses


def _projections(kind: str) -> Find:
    return field_at("volumes", ITEMS, "projected", "sources", ITEMS, kind)


def _affinity_keys() -> Iterator[Find]:
    """Yield functions that find the label keys of pod affinity terms."""
    for affinity in _AFFINITIES:
        for keys in ("matchLabelKeys", "mismatchLabelKeys"):
            yield field_at("affinity", affinity, "requiredDuringSchedulingIgnoredDuringExecution", ITEMS, keys)
            preferred = "preferredDuringSchedulingIgnoredDuringExecution"
            yield field_at("affinity", affinity, preferred, ITEMS, "podAffinityTerm", keys)


def _has(*path: str) -> InUse:
    """Return a function that returns whether a field at one path is in use: it is not empty."""
    return not_empty(field_at(*path))


def _has_pod_resources(spec: JSONObject) -> bool:
    resources = spec.get("resources") or {}
    return bool(resources.get("requests") or resources.get("limits"))


# --- fields with special rules ---------------------------------------------------------------------------------

_PROC_MOUNT: Final = _in_containers("securityContext", "procMount")


def _has_proc_mount(spec: JSONObject) -> bool:
    return any(holder[name] != "Default" for holder, name in _PROC_MOUNT(spec))


def _reset_proc_mount(spec: JSONObject) -> None:
    """Set the default: old releases stored it in all pods."""
    for holder, name in _PROC_MOUNT(spec):
        holder[name] = "Default"


def _has_resize_policy(spec: JSONObject) -> bool:
    return any(container.get("resizePolicy") for container, _, _ in declared_containers(spec))


def _has_sidecars(spec: JSONObject) -> bool:
    return any(container.get("restartPolicy") == "Always" for container in spec.get("initContainers") or ())


def _restart_rules(spec: JSONObject) -> Iterator[tuple[JSONObject, str]]:
    """Find restart policies and their rules, except for the policies of sidecars."""
    for container, _, kind in containers(spec):
        policy = container.get("restartPolicy")
        if policy is not None and (kind != "init container" or policy != "Always"):
            yield container, "restartPolicy"
        if container.get("restartPolicyRules") is not None:
            yield container, "restartPolicyRules"


def has_restart_rules(spec: JSONObject) -> bool:
    """Return whether a spec has restart policies or rules of containers, except for sidecars without rules."""
    return any(
        name == "restartPolicy" or (kind == "init container" and holder[name])
        for kind, names in (("init container", "initContainers"), ("container", "containers"))
        for holder, name in _restart_rules({names: spec.get(names)})
    )


_STOP_SIGNALS: Final = _in_containers("lifecycle", "stopSignal")


def _drop_stop_signals(spec: JSONObject) -> None:
    for container, _, _ in containers(spec):
        lifecycle = container.get("lifecycle") or {}
        if lifecycle.get("stopSignal") is not None:
            del lifecycle["stopSignal"]
            _drop_empty_lifecycle(container)


def _drop_empty_lifecycle(container: JSONObject) -> None:
    if all(part is None for part in container["lifecycle"].values()):
        del container["lifecycle"]


_SLEEP: Final = fields_of(*(_in_containers("lifecycle", handler, "sleep") for handler in _HANDLERS))


def has_zero_sleep(spec: JSONObject) -> bool:
    """Return whether a lifecycle handler of a spec sleeps for 0 seconds."""
    return any(not holder[name].get("seconds") for holder, name in _SLEEP(spec))


def _drop_sleep(spec: JSONObject) -> None:
    """Drop the actions, and handlers and lifecycles that become empty."""
    for container, _, _ in containers(spec):
        lifecycle = container.get("lifecycle")
        if lifecycle is None:
            continue
        for name in _HANDLERS:
            handler = lifecycle.get(name)
            if handler is not None and handler.get("sleep") is not None:
                del handler["sleep"]
                if all(action is None for action in handler.values()):
                    del lifecycle[name]
        _drop_empty_lifecycle(container)


_IMAGE_VOLUMES: Final = field_at("volumes", ITEMS, "image")


def _drop_image_volumes(spec: JSONObject) -> None:
    """Drop the volumes, and their mounts."""
    images = {volume.get("name") for volume, _ in _IMAGE_VOLUMES(spec)}
    if not images:
        return
    spec["volumes"] = [volume for volume in spec["volumes"] if volume.get("image") is None]
    if not spec["volumes"]:
        del spec["volumes"]
    for container, _, _ in containers(spec):
        if container.get("volumeMounts"):
            mounts = [mount for mount in container["volumeMounts"] if mount.get("name") not in images]
            if mounts:
                container["volumeMounts"] = mounts
            else:
                del container["volumeMounts"]


def _resource_claims(spec: JSONObject) -> Iterator[tuple[JSONObject, str]]:
    yield from _in_containers("resources", "claims")(spec)
    yield from field_at("resourceClaims")(spec)


_ENV_FILES: Final = _in_containers("env", ITEMS, "valueFrom", "fileKeyRef")


def has_env_files(spec: JSONObject) -> bool:
    """Return whether an environment variable of a spec is in a file."""
    return any(_ENV_FILES(spec))


_RECURSIVE: Final = _in_containers("volumeMounts", ITEMS, "recursiveReadOnly")
_GROUPS_POLICY: Final = field_at("securityContext", "supplementalGroupsPolicy")
_SPREAD: Final = ("topologySpreadConstraints", ITEMS)


def _file_owners() -> Iterator[Find]:
    """Yield functions that find the owners of files in volumes."""
    volume = ("volumes", ITEMS)
    source = (*volume, "projected", "sources", ITEMS)
    for kind in ("configMap", "secret", "downwardAPI"):
        yield field_at(*volume, kind, "defaultUser")
        yield field_at(*volume, kind, "items", ITEMS, "user")
        yield field_at(*source, kind, "items", ITEMS, "user")
    yield field_at(*volume, "projected", "defaultUser")
    for kind in ("serviceAccountToken", "clusterTrustBundle", "podCertificate"):
        yield field_at(*source, kind, "user")


def _in_probes(*path: str) -> Find:
    """Return a function that finds a field in the probes of all containers."""
    return fields_of(*(_in_containers(probe, *path) for probe in ("livenessProbe", "readinessProbe", "startupProbe")))


def _occurs(find: Find) -> InUse:
    def in_use(obj: JSONObject) -> bool:
        return any(find(obj))

    return in_use


#: The fields of specs, in the order of the reference.
_SPEC: Final = (
    GatedField(gate="UserNamespacesSupport", find=field_at("hostUsers")),
    GatedField(gate="SupplementalGroupsPolicy", find=_GROUPS_POLICY),
    GatedField(gate="PodLevelResources", find=field_at("resources"), in_use=_has_pod_resources),
    GatedField(gate="ProcMountType", find=_PROC_MOUNT, in_use=_has_proc_mount, drop=_reset_proc_mount),
    GatedField(gate="NodeInclusionPolicyInPodTopologySpread", find=field_at(*_SPREAD, "nodeTaintsPolicy")),
    GatedField(gate="NodeInclusionPolicyInPodTopologySpread", find=field_at(*_SPREAD, "nodeAffinityPolicy")),
    GatedField(
        gate="MatchLabelKeysInPodTopologySpread",
        find=field_at(*_SPREAD, "matchLabelKeys"),
        in_use=_has(*_SPREAD, "matchLabelKeys"),
    ),
    GatedField(
        gate="MatchLabelKeysInPodAffinity",
        find=fields_of(*_affinity_keys()),
        in_use=not_empty(fields_of(*_affinity_keys())),
    ),
    GatedField(gate="DynamicResourceAllocation", find=_resource_claims, in_use=_has("resourceClaims")),
    GatedField(gate="ClusterTrustBundleProjection", find=_projections("clusterTrustBundle")),
    GatedField(gate="PodCertificateRequest", find=_projections("podCertificate")),
    GatedField(gate="GenericWorkload", find=field_at("workloadRef"), until=(1, 35)),
    GatedField(gate="GenericWorkload", find=field_at("schedulingGroup"), since=(1, 36)),
    GatedField(gate="InPlacePodVerticalScaling", find=_in_containers("resizePolicy"), in_use=_has_resize_policy),
    GatedField(gate="SidecarContainers", find=field_at("initContainers", ITEMS, "restartPolicy"), in_use=_has_sidecars),
    GatedField(gate="ContainerRestartRules", find=_restart_rules, in_use=has_restart_rules),
    GatedField(gate="RecursiveReadOnlyMounts", find=_RECURSIVE),
    GatedField(gate="HostnameOverride", find=field_at("hostnameOverride")),
    GatedField(gate="EnvFiles", find=_ENV_FILES),
    GatedField(gate="PodLifecycleSleepAction", find=_SLEEP, drop=_drop_sleep),
    GatedField(gate="ImageVolume", find=_IMAGE_VOLUMES, drop=_drop_image_volumes),
    GatedField(gate="SELinuxChangePolicy", find=field_at("securityContext", "seLinuxChangePolicy")),
    GatedField(gate="ContainerStopSignals", find=_STOP_SIGNALS, drop=_drop_stop_signals),
    # Since 1.37.
    GatedField(gate="AtomicWriteVolumeUserFields", find=fields_of(*_file_owners())),
    GatedField(gate="EmptyDirVolumeMode", find=field_at("volumes", ITEMS, "emptyDir", "mode")),
    GatedField(gate="VolumeBindMountOptions", find=_in_containers("volumeMounts", ITEMS, "bindMountOptions")),
    GatedField(gate="GRPCContainerProbeTLS", find=_in_probes("grpc", "mode")),
    GatedField(gate="H2CContainerProbe", find=_in_probes("httpGet", "protocol")),
    GatedField(gate="EvictionRequestAPI", find=field_at("evictionResponders")),
)

_HEALTH: Final = "allocatedResourcesStatus"
_OBSERVED: Final = fields_of(
    field_at("status", "observedGeneration"), field_at("status", "conditions", ITEMS, "observedGeneration")
)

#: The fields of the status, in the order of the reference. Updates of the status drop fields since 1.33.
_STATUS_SINCE: Final = (1, 33)
_STATUS: Final = (
    GatedField(
        gate="InPlacePodLevelResourcesVerticalScaling",
        find=fields_of(field_at("status", "resources"), field_at("status", "allocatedResources")),
    ),
    GatedField(
        gate="InPlacePodVerticalScaling",
        find=fields_of(_in_statuses("resources"), _in_statuses("allocatedResources")),
        in_use=_spec_uses(_has_resize_policy),
        since=_STATUS_SINCE,
    ),
    GatedField(
        gate="DynamicResourceAllocation",
        find=field_at("status", "resourceClaimStatuses"),
        in_use=_spec_uses(_has("resourceClaims")),
        since=_STATUS_SINCE,
    ),
    GatedField(gate="DRAExtendedResource", find=field_at("status", "extendedResourceClaimStatus")),
    GatedField(
        gate="RecursiveReadOnlyMounts",
        find=_in_statuses("volumeMounts"),
        in_use=_spec_uses(_occurs(_RECURSIVE)),
        since=_STATUS_SINCE,
    ),
    GatedField(
        gate="ResourceHealthStatus", find=_in_statuses(_HEALTH), in_use=never, since=_STATUS_SINCE, until=(1, 35)
    ),
    GatedField(
        gate="ResourceHealthStatus",
        find=_in_statuses(_HEALTH),
        in_use=not_empty(_in_statuses(_HEALTH)),
        since=(1, 36),
    ),
    GatedField(gate="ResourceHealthStatusMessage", find=_in_statuses(_HEALTH, ITEMS, "resources", ITEMS, "message")),
    GatedField(
        gate="SupplementalGroupsPolicy",
        find=_in_statuses("user"),
        in_use=_spec_uses(_occurs(_GROUPS_POLICY)),
        since=_STATUS_SINCE,
    ),
    GatedField(gate="PodObservedGenerationTracking", find=_OBSERVED, in_use=not_empty(_OBSERVED)),
    GatedField(gate="ImageVolumeWithDigest", find=_in_statuses("volumeMounts", ITEMS, "volumeStatus")),
    GatedField(
        gate="DRANodeAllocatableResources",
        find=field_at("status", "nodeAllocatableResourceClaimStatuses"),
        in_use=_has("status", "nodeAllocatableResourceClaimStatuses"),
    ),
)
