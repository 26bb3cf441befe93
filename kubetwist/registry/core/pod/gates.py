"""What is dropped of pods and of templates since it is behind a feature gate that is closed; what is there stays."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Final

from ....api.podspecs import containers
from ....api.resource import JSONObject

#: Finds, in a spec, what has a field, and which: the object that the field is in, and its name.
_Find = Callable[[JSONObject], Iterator[tuple[JSONObject, str]]]


def drop_disabled_fields(spec: JSONObject, old: JSONObject | None, open_gates: Collection[str]) -> None:
    """
    Drop from the spec of a pod what is behind gates that are closed.

    @param old: The spec as it was, when this is a change: what it has, it keeps.
    """
    for gate, find in _GATES.items():
        if gate in open_gates or (old is not None and any(find(old))):
            continue
        for holder, name in list(find(spec)):
            del holder[name]
            if name == "stopSignal":
                _drop_empty_lifecycle(spec, holder)


def drop_disabled_status(status: JSONObject, old: JSONObject, open_gates: Collection[str]) -> None:
    """Drop from the status of a pod what is behind gates that are closed, unless C{old} has it."""
    name = "nodeAllocatableResourceClaimStatuses"
    if "DRANodeAllocatableResources" not in open_gates and not old.get(name):
        status.pop(name, None)
    if "ImageVolumeWithDigest" not in open_gates and not any(_mounts(old)):
        for mount in list(_mounts(status)):
            del mount["volumeStatus"]


def drop_of_template(template: JSONObject | None, old: JSONObject | None, open_gates: Collection[str]) -> None:
    """L{drop_disabled_fields} for a template."""
    if template and template.get("spec"):
        drop_disabled_fields(template["spec"], (old or {}).get("spec"), open_gates)


def _stop_signals(spec: JSONObject) -> Iterator[tuple[JSONObject, str]]:
    """The containers that say how they are stopped."""
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
    """Sources of volumes of one kind."""

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
    """Volumes of containers that tell of themselves."""
    for kind in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        for one in status.get(kind) or ():
            for mount in one.get("volumeMounts") or ():
                if mount.get("volumeStatus") is not None:
                    yield mount


#: See kubernetes, C{pkg/api/pod/util.go}.
_GATES: Final[dict[str, _Find]] = {
    "ClusterTrustBundleProjection": _projections("clusterTrustBundle"),
    "PodCertificateRequest": _projections("podCertificate"),
    "GenericWorkload": _scheduling_group,
    "ContainerStopSignals": _stop_signals,
}
