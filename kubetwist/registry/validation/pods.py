"""Pods as they are created, and what their users are warned of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ...api.errors import Cause, forbidden, invalid, required
from ...api.resource import JSONObject
from .containers import trimmed_image
from .fields import Causes, quote, unsupported
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


def pod_warnings(spec: JSONObject, path: str, metadata: JSONObject) -> Sequence[str]:
    """
    What is accepted, but hardly meant; see C{pkg/api/pod/warnings.go}.

    @param metadata: Of the pod or the template.
    """
    texts: list[str] = []
    for name in spec.get("nodeSelector") or ():
        _deprecated_label(name, f"{path}.nodeSelector[{name}]", texts)
    for index, volume in enumerate(spec.get("volumes") or ()):
        here = f"{path}.volumes[{index}]"
        if volume.get("gitRepo") is not None:
            texts.append(f"{here}.gitRepo: deprecated in v1.11, and disabled by default in v1.33+")
        projected = volume.get("projected")
        if projected is not None and not projected.get("sources"):
            texts.append(f"volume {quote(volume.get('name') or '')} (Projected) has no sources provided")
        for kind, text in _OLD_VOLUMES.items():
            if volume.get(kind) is not None:
                texts.append(f"{here}.{kind}: {text}")
    secrets: set[str] = set()
    for index, secret in enumerate(spec.get("imagePullSecrets") or ()):
        name = secret.get("name") or ""
        if not name:
            texts.append(f"{path}.imagePullSecrets[{index}].name: invalid empty name {quote('')}")
        elif name in secrets:
            texts.append(f"{path}.imagePullSecrets: duplicate entry for name {quote(name)}")
        secrets.add(name)
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        if any(alias.get("ip") == other.get("ip") for other in spec["hostAliases"][:index]):
            texts.append(f"{path}.hostAliases[{index}].ip: duplicate ip {quote(alias.get('ip') or '')}")
    _profile_warnings(spec, metadata, texts)
    for container, here in with_paths(spec, path):
        _container_warnings(container, here, texts)
    _port_warnings(spec, path, texts)
    return texts


#: Precedes the name of a container.
APP_ARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
_OLD_VOLUMES: Final = {
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
_OLD_LABELS: Final = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
}


def _profile_warnings(spec: JSONObject, metadata: JSONObject, texts: list[str]) -> None:
    """Annotations that have become fields, where the field is not there."""
    annotations = metadata.get("annotations") or {}
    if not any(name.startswith(APP_ARMOR) for name in annotations):
        return
    if (spec.get("securityContext") or {}).get("appArmorProfile") is not None:
        return
    for container, _ in with_paths(spec, ""):
        name = f"{APP_ARMOR}{container.get('name') or ''}"
        if name in annotations and (container.get("securityContext") or {}).get("appArmorProfile") is None:
            text = 'deprecated since v1.30; use the "appArmorProfile" field instead'
            texts.append(f"metadata.annotations[{name}]: {text}")


def _deprecated_label(name: str, path: str, texts: list[str]) -> None:
    if name in _OLD_LABELS:
        texts.append(f"{path}: {_OLD_LABELS[name]}")


def _container_warnings(container: JSONObject, path: str, texts: list[str]) -> None:
    variables = container.get("env") or ()
    if len(variables) > 1:
        seen: dict[str, int] = {}
        for index, variable in enumerate(variables):
            name = variable.get("name") or ""
            # A value that uses the one before it extends it.
            if name in seen and f"$({name})" not in (variable.get("value") or ""):
                texts.append(
                    f"{path}.env[{index}]: hides previous definition of {quote(name)}, "
                    "which may be dropped when using apply"
                )
            seen[name] = index
    resources = container.get("resources") or {}
    for part in ("limits", "requests"):
        for name, value in sorted((resources.get(part) or {}).items()):
            if name in ("memory", "ephemeral-storage") and str(value).endswith("m"):
                where, shown = f"{path}.resources.{part}[{name}]", quote(str(value))
                texts.append(f"{where}: fractional byte value {shown} is invalid, must be an integer")


def _port_warnings(spec: JSONObject, path: str, texts: list[str]) -> None:
    """
    The same port, or the same name of a port, twice.

    See C{pkg/api/pod/warnings.go}.
    """
    ports: dict[tuple[int, str], list[tuple[JSONObject, str]]] = {}
    names: dict[str, str] = {}
    for kind, index, container in _serving(spec):
        for place, port in enumerate(container.get("ports") or ()):
            here = f"{path}.{kind}[{index}].ports[{place}]"
            key = (port.get("containerPort") or 0, port.get("protocol") or "")
            for other, where in ports.get(key, ()):
                if other.get("hostPort") == port.get("hostPort") and other.get("hostIP") == port.get("hostIP"):
                    texts.append(f"{here}: duplicate port definition with {where}")
            ports.setdefault(key, []).append((port, here))
            name = port.get("name") or ""
            if name and name in names:
                texts.append(
                    f"{here}: duplicate port name {quote(name)} with {names[name]}, services and probes that select "
                    f"ports by name will use {names[name]}"
                )
            elif name:
                names[name] = here


def _serving(spec: JSONObject) -> Iterator[tuple[str, int, JSONObject]]:
    """The containers that run together."""
    for index, container in enumerate(spec.get("initContainers") or ()):
        if container.get("restartPolicy") == "Always":
            yield "initContainers", index, container
    for index, container in enumerate(spec.get("containers") or ()):
        yield "containers", index, container
