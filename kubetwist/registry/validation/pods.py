"""Pods as they are created."""

from __future__ import annotations

from typing import Final

from ...api.errors import Cause, forbidden, invalid, required
from ...api.resource import JSONObject
from .containers import trimmed_image
from .fields import Causes, unsupported
from .podspec import validate_pod_spec, with_paths

_DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_APP_ARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
_MIRROR: Final = "kubernetes.io/config.mirror"


def validate_pod(obj: JSONObject, causes: Causes) -> None:
    """What holds for a pod at all times."""
    spec, metadata = obj["spec"], obj["metadata"]
    if metadata.get("annotations"):
        _annotations(metadata["annotations"], spec, causes)
    validate_pod_spec(spec, "spec", causes, pod=metadata)
    if not spec.get("serviceAccountName"):
        for index, volume in enumerate(spec.get("volumes") or ()):
            for place, source in enumerate((volume.get("projected") or {}).get("sources") or ()):
                if source.get("serviceAccountToken") is not None:
                    where = f"spec.volumes[{index}].projected.sources[{place}].serviceAccountToken"
                    causes.append(forbidden(where, "must not be specified when serviceAccountName is not set"))
    for kind in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(kind) or ()):
            trimmed_image(container, f"spec.{kind}[{index}]", causes)


def validate_pod_create(obj: JSONObject) -> list[Cause]:
    """A new pod."""
    causes: Causes = []
    validate_pod(obj, causes)
    spec = obj["spec"]
    if spec.get("ephemeralContainers"):
        causes.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
    if spec.get("nodeName") and spec.get("schedulingGates"):
        causes.append(forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared"))
    return causes


def _annotations(annotations: JSONObject, spec: JSONObject, causes: Causes) -> None:
    path = "metadata.annotations"
    if _MIRROR in annotations and not spec.get("nodeName"):
        causes.append(
            invalid(
                f"{path}[{_MIRROR}]", annotations[_MIRROR], "must set spec.nodeName if mirror pod annotation is set"
            )
        )
    cost = annotations.get(_DELETION_COST)
    if cost is not None:
        digits = cost.removeprefix("-")
        canonical = digits.isascii() and digits.isdigit() and (digits == "0" or digits[0] != "0") and cost != "-0"
        if not canonical or not -(2**31) <= int(cost) < 2**31:
            causes.append(invalid(f"{path}[{_DELETION_COST}]", cost, "must be a 32bit integer"))
    names = {container.get("name") for container, _ in with_paths(spec, "spec")}
    for key in sorted(annotations):
        if key.startswith(_APP_ARMOR):
            name, profile = key.removeprefix(_APP_ARMOR), annotations[key]
            if name not in names:
                causes.append(invalid(f"{path}[{key}]", name, "container not found"))
            if profile not in ("", "runtime/default", "unconfined") and not profile.startswith("localhost/"):
                causes.append(invalid(f"{path}[{key}]", profile, f'invalid AppArmor profile name: "{profile}"'))


def validate_binding(obj: JSONObject) -> list[Cause]:
    """The binding of a pod to a node."""
    causes: Causes = []
    target = obj.get("target") or {}
    if target.get("kind") and target["kind"] != "Node":
        causes.append(unsupported("target.kind", target["kind"], ("Node", "<empty>")))
    if not target.get("name"):
        causes.append(required("target.name"))
    return causes
