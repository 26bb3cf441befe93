"""Removal of the fields of pods and templates whose feature gates are disabled; existing values are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from ....api.featuregates import FeatureGates
from ....api.podspecs import containers
from ....api.resource import JSONObject

#: Returns the occurrences of a field in a spec: the object that contains it, and its name.
_Find = Callable[[JSONObject], Iterator[tuple[JSONObject, str]]]


def drop_disabled_fields(spec: JSONObject, old: JSONObject | None, features: FeatureGates) -> None:
    """
    Drop the fields of disabled feature gates from the spec of a pod.

    @param spec: The spec; modified.
    @param old: The spec of the old object, whose fields are kept; L{None} when it is created.
    @param features: The feature gates of the server.
    """
    for gate, find in _GATES.items():
        if features.enabled(gate) or (old is not None and any(find(old))):
            continue
        for holder, name in list(find(spec)):
            del holder[name]
            if name == "stopSignal":
                _drop_empty_lifecycle(spec, holder)


def drop_disabled_status(status: JSONObject, old: JSONObject, features: FeatureGates) -> None:
    """Drop the fields of disabled feature gates from the status of a pod, unless C{old} has them."""
    name = "nodeAllocatableResourceClaimStatuses"
    if not features.enabled("DRANodeAllocatableResources") and not old.get(name):
        status.pop(name, None)
    if not features.enabled("ImageVolumeWithDigest") and not any(_mounts(old)):
        for mount in list(_mounts(status)):
            del mount["volumeStatus"]


def drop_of_template(template: JSONObject | None, old: JSONObject | None, features: FeatureGates) -> None:
    """Drop the fields of disabled feature gates from a template; see L{drop_disabled_fields}."""
    if template and template.get("spec"):
        drop_disabled_fields(template["spec"], (old or {}).get("spec"), features)


def _stop_signals(spec: JSONObject) -> Iterator[tuple[JSONObject, str]]:
    """Return the lifecycles with stop signals."""
    for container, _, _ in containers(spec):
        lifecycle = container.get("lifecycle") or {}
        if lifecycle.get("stopSignal") is not None:
            yield lifecycle, "stopSignal"


def _drop_empty_lifecycle(spec: JSONObject, lifecycle: JSONObject) -> None:
    if any(part is not None for part in lifecycle.values()):
        return
    for container, _, _ in containers(spec):
        if container.get("lifecycle") is lifecycle:
            del container["lifecycle"]


def _projections(kind: str) -> _Find:
    """Return a function that finds the projected volume sources of one kind."""

    def find(spec: JSONObject) -> Iterator[tuple[JSONObject, str]]:
        for volume in spec.get("volumes") or ():
            for source in (volume.get("projected") or {}).get("sources") or ():
                if source.get(kind) is not None:
                    yield source, kind

    return find


def _scheduling_group(spec: JSONObject) -> Iterator[tuple[JSONObject, str]]:
    if spec.get("schedulingGroup") is not None:
        yield spec, "schedulingGroup"


def _mounts(status: JSONObject) -> Iterator[JSONObject]:
    """Return the statuses of volume mounts."""
    for kind in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        for container_status in status.get(kind) or ():
            for mount in container_status.get("volumeMounts") or ():
                if mount.get("volumeStatus") is not None:
                    yield mount


#: See kubernetes, C{pkg/api/pod/util.go}.
_GATES: Final[dict[str, _Find]] = {
    "ClusterTrustBundleProjection": _projections("clusterTrustBundle"),
    "PodCertificateRequest": _projections("podCertificate"),
    "GenericWorkload": _scheduling_group,
    "ContainerStopSignals": _stop_signals,
}
