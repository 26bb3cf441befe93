"""
Warnings about pods and pod templates, for C{Warning} headers.

@see: kubernetes, C{pkg/api/pod/warnings.go}.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from ....api.featuregates import FeatureGates
from ....api.jsontypes import JSONValue
from ....api.names import validate_dns1123_label
from ....api.podspecs import containers
from ....api.quantity import Quantity
from ....api.resource import JSONObject
from ...generic.validation.addresses import address_warnings
from ...generic.validation.fields import STRICT_ADDRESSES, quote
from ..node.labels import DEPRECATED_LABELS, term_warnings

APP_ARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
SECCOMP_POD: Final = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP: Final = "container.seccomp.security.alpha.kubernetes.io/"
_OLD_ANNOTATIONS: Final = {
    "scheduler.alpha.kubernetes.io/critical-pod": 'non-functional in v1.16+; use the "priorityClassName" field instead',
    "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
    "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
}
_OLD_VOLUMES: Final = {
    "photonPersistentDisk": "photonPersistentDisk: deprecated in v1.11, non-functional in v1.16+",
    "scaleIO": "scaleIO: deprecated in v1.16, non-functional in v1.22+",
    "flocker": "flocker: deprecated in v1.22, non-functional in v1.25+",
    "storageos": "storageOS: deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "quobyte: deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "glusterfs: deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "cephfs: deprecated in v1.28, non-functional in v1.31+",
    "rbd": "rbd: deprecated in v1.28, non-functional in v1.31+",
}
_NO_SELECTOR: Final = "a null labelSelector results in matching no pod"
_OLD_SECCOMP: Final = 'non-functional in v1.27+; use the "seccompProfile" field instead'
OLD_APP_ARMOR: Final = 'deprecated since v1.30; use the "appArmorProfile" field instead'
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def pod_warnings(spec: JSONObject, metadata: JSONObject, features: FeatureGates, path: str = "") -> list[str]:
    """
    Return the warnings about a pod or pod template.

    @param spec: The spec.
    @param metadata: The metadata of the pod or the template.
    @param features: The feature gates of the server.
    @param path: The field path of the template in its object; C{""} for a pod.
    """
    prefix = f"{path}." if path else ""
    item_path = f"{prefix}spec"
    annotations = metadata.get("annotations") or {}
    texts = [
        f"{item_path}.nodeSelector[{name}]: {DEPRECATED_LABELS[name]}"
        for name in spec.get("nodeSelector") or ()
        if name in DEPRECATED_LABELS
    ]
    # Rare fields are checked first, since this runs for each new pod.
    affinity = spec.get("affinity")
    if affinity:
        texts += _node_affinity(affinity, f"{item_path}.affinity")
    if spec.get("topologySpreadConstraints"):
        texts += _spreading(spec, item_path)
    if annotations:
        texts += [
            f"{prefix}metadata.annotations[{name}]: {text}"
            for name, text in _OLD_ANNOTATIONS.items()
            if name in annotations
        ]
    texts += _volumes(spec, item_path, features)
    if spec.get("hostAliases"):
        texts += _repeated(spec["hostAliases"], "ip", f"{item_path}.hostAliases", "ip")
    texts += _pull_secrets(spec, item_path)
    if spec.get("overhead"):
        texts += _fractions(spec["overhead"], f"{item_path}.overhead")
    if SECCOMP_POD in annotations and (spec.get("securityContext") or {}).get("seccompProfile") is None:
        texts.append(f"{prefix}metadata.annotations[{SECCOMP_POD}]: {_OLD_SECCOMP}")
    for container, container_path, _ in containers(spec, item_path):
        if annotations:
            texts += _profiles(container, spec, annotations, prefix)
        resources = container.get("resources") or {}
        for part in ("limits", "requests") if resources else ():
            texts += _fractions(resources.get(part), f"{container_path}.resources.{part}")
        if len(container.get("env") or ()) > 1:
            texts += _variables(container, container_path)
    texts += _ports(spec, item_path)
    texts += _port_names(spec, item_path)
    period = spec.get("terminationGracePeriodSeconds")
    if period is not None and period < 0:
        texts.append(
            f"{item_path}.terminationGracePeriodSeconds: must be >= 0; "
            "negative values are invalid and will be treated as 1"
        )
    if affinity:
        texts += _pod_affinity(affinity, f"{item_path}.affinity")
    for index, server in enumerate((spec.get("dnsConfig") or {}).get("nameservers") or ()):
        server_path = f"{item_path}.dnsConfig.nameservers[{index}]"
        texts += address_warnings(server, server_path, strict=features.enabled(STRICT_ADDRESSES))
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        alias_path = f"{item_path}.hostAliases[{index}].ip"
        texts += address_warnings(alias.get("ip") or "", alias_path, strict=features.enabled(STRICT_ADDRESSES))
    return texts


def template_warnings(template: JSONObject | None, path: str, features: FeatureGates) -> list[str]:
    """Return the warnings about a template; empty without one."""
    if template is None:
        return []
    return pod_warnings(template.get("spec") or {}, template.get("metadata") or {}, features, path)


def unchanged(obj: JSONObject, old: JSONObject | None) -> bool:
    """Return whether an update leaves the generation unchanged, so that its warnings are not repeated."""
    return old is not None and obj["metadata"].get("generation") == old["metadata"].get("generation")


def name_warnings(name: str) -> list[str]:
    """Return warnings for the name of an object that creates pods."""
    problems = validate_dns1123_label(name)
    if not problems:
        return []
    return [
        "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; "
        f"a DNS label is recommended: [{' '.join(problems)}]"
    ]


def pod_name_warnings(name: str) -> list[str]:
    """Return the warnings about the name of a pod."""
    problems = validate_dns1123_label(name)
    if not problems:
        return []
    return [
        "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; "
        f"a DNS label is recommended: [{' '.join(problems)}]"
    ]


def claim_warnings(spec: JSONObject, path: str) -> list[str]:
    """Return warnings for the spec of a PersistentVolumeClaim."""
    texts = []
    for part in ("requests", "limits"):
        amounts = (spec.get("resources") or {}).get(part) or {}
        storage = {name: amounts[name] for name in amounts if name == "storage"}
        texts += _fractions(storage, f"{path}.resources.{part}")
    return texts


def _node_affinity(every: JSONObject, path: str) -> Iterator[str]:
    affinity = every.get("nodeAffinity") or {}
    item_path = f"{path}.nodeAffinity"
    for index, term in enumerate((affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ()):
        yield from term_warnings(term, f"{item_path}.{_REQUIRED}.nodeSelectorTerms[{index}]", values=False)
    for index, one in enumerate(affinity.get(_PREFERRED) or ()):
        yield from term_warnings(
            one.get("preference") or {}, f"{item_path}.{_PREFERRED}[{index}].preference", values=True
        )


def _spreading(spec: JSONObject, path: str) -> Iterator[str]:
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        item_path, key = f"{path}.topologySpreadConstraints[{index}]", constraint.get("topologyKey") or ""
        if key in DEPRECATED_LABELS:
            yield f"{item_path}.topologyKey: {key} is {DEPRECATED_LABELS[key]}"
        if constraint.get("labelSelector") is None:
            yield f"{item_path}.labelSelector: {_NO_SELECTOR}"


def _pod_affinity(every: JSONObject, path: str) -> Iterator[str]:
    for kind in ("podAffinity", "podAntiAffinity"):
        affinity = every.get(kind) or {}
        item_path = f"{path}.{kind}"
        for index, term in enumerate(affinity.get(_REQUIRED) or ()):
            if term.get("labelSelector") is None:
                yield f"{item_path}.{_REQUIRED}[{index}].labelSelector: {_NO_SELECTOR}"
        for index, one in enumerate(affinity.get(_PREFERRED) or ()):
            if (one.get("podAffinityTerm") or {}).get("labelSelector") is None:
                yield f"{item_path}.{_PREFERRED}[{index}].podAffinityTerm.labelSelector: {_NO_SELECTOR}"


def _volumes(spec: JSONObject, path: str, features: FeatureGates) -> Iterator[str]:
    volumes = spec.get("volumes") or ()
    for index, volume in enumerate(volumes):
        item_path = f"{path}.volumes[{index}]"
        for kind in _OLD_VOLUMES.keys() & volume.keys():
            if volume[kind] is not None:
                yield f"{item_path}.{_OLD_VOLUMES[kind]}"
        if volume.get("gitRepo") is not None:
            disabled = "" if features.enabled("GitRepoVolumeDriver") else ", and disabled by default in v1.33+"
            yield f"{item_path}.gitRepo: deprecated in v1.11{disabled}"
        claim = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
        if claim is not None:
            yield from claim_warnings(claim.get("spec") or {}, f"{item_path}.ephemeral.volumeClaimTemplate.spec")
    for volume in volumes:
        yield from _overlaps(volume)


def _pull_secrets(spec: JSONObject, path: str) -> Iterator[str]:
    pulled = spec.get("imagePullSecrets") or ()
    yield from _repeated(pulled, "name", f"{path}.imagePullSecrets", "name")
    for index, secret in enumerate(pulled):
        if not secret.get("name"):
            yield f'{path}.imagePullSecrets[{index}].name: invalid empty name ""'


def _overlaps(volume: JSONObject) -> Iterator[str]:
    """Return warnings about equal paths in a volume, and files at the path of a directory."""
    start = f"volume {quote(volume.get('name') or '')}"
    for kind, named in (("configMap", "name"), ("secret", "secretName"), ("downwardAPI", "")):
        source = volume.get(kind)
        if source is not None:
            source_name = _SOURCE_NAMES[kind] + (f" {quote(source.get(named) or '')}" if named else "")
            for text in _overlapping((_cleaned(item), "") for item in source.get("items") or ()):
                yield f"{start} ({source_name}): overlapping paths: {text}"
    projected = volume.get("projected")
    if projected is None:
        return
    paths: list[tuple[str, str]] = []
    for source in projected.get("sources") or ():
        if not any(value is not None for value in source.values()):
            yield f"{start} (Projected) has no sources provided"
        paths += _projected(source)
    for text in _overlapping(paths):
        yield f"{start} (Projected): overlapping paths: {text}"


#: Maximum number of warnings about overlapping paths of a volume: a client receives some kilobytes of warnings.
MAX_OVERLAPS: Final = 100
_SOURCE_NAMES: Final = {"configMap": "ConfigMap", "secret": "Secret", "downwardAPI": "DownwardAPI"}


def _cleaned(item: JSONObject) -> str:
    path: str = item.get("path") or ""
    return path.rstrip("/")


def _projected(source: JSONObject) -> list[tuple[str, str]]:
    """Return the paths of one source of a projected volume, each with a description of the source."""
    for kind, source_name in _SOURCE_NAMES.items():
        projection = source.get(kind)
        if projection is not None and projection.get("items") is not None:
            origin = source_name if kind == "downwardAPI" else f"{source_name} {quote(projection.get('name') or '')}"
            return [(_cleaned(item), origin) for item in projection["items"]]
    if source.get("serviceAccountToken") is not None:
        return [(_cleaned(source["serviceAccountToken"]), "ServiceAccountToken")]
    bundle = source.get("clusterTrustBundle")
    if bundle is not None:
        name = bundle.get("name") if bundle.get("name") is not None else bundle.get("signerName") or ""
        return [(_cleaned(bundle), f"ClusterTrustBundle {quote(name)}")]
    certificate = source.get("podCertificate") or {}
    kinds = (("certificateChainPath", "chain"), ("keyPath", "key"), ("credentialBundlePath", "credential bundle"))
    return [
        (certificate[field].rstrip("/"), f"PodCertificate {kind}") for field, kind in kinds if certificate.get(field)
    ]


class _Directory:
    """
    A directory or file of a volume.

    @ivar ends: The numbers of the paths that end at it.
    @ivar below: The numbers of the paths that continue below.
    """

    __slots__ = ("below", "ends", "inner")

    def __init__(self) -> None:
        self.ends: list[int] = []
        self.below: list[int] = []
        self.inner: dict[str, _Directory] = {}


def _overlapping(paths: Iterable[tuple[str, str]]) -> Iterator[str]:
    """
    Return each path with the earlier equal, parent or child paths; at most L{MAX_OVERLAPS}.

    As C{checkForOverlap} in kubernetes, C{pkg/api/pod/warnings.go}, which compares all pairs of paths.
    """
    root, earlier_paths, remaining = _Directory(), [], MAX_OVERLAPS
    for number, (path, origin) in enumerate(paths):
        earlier_paths.append((path, origin))
        if not path:
            continue
        directory, overlaps = root, []
        *above, last = path.split("/")
        for name in above:
            directory = directory.inner.setdefault(name, _Directory())
            overlaps += directory.ends
            directory.below.append(number)
        directory = directory.inner.setdefault(last, _Directory())
        overlaps += directory.ends + directory.below
        directory.ends.append(number)
        for other in sorted(overlaps)[:remaining]:
            yield f"{_format_path(path, origin)} with {_format_path(*earlier_paths[other])}"
        remaining -= min(len(overlaps), remaining)
        if not remaining:
            return


def _format_path(path: str, origin: str) -> str:
    return f"{quote(path)} ({origin})" if origin else quote(path)


def _repeated(items: JSONValue, field: str, path: str, word: str) -> Iterator[str]:
    seen: set[str] = set()
    for index, item in enumerate(items or ()):
        value = item.get(field) or ""
        if value in seen:
            yield f"{path}[{index}].{field}: duplicate {word} {quote(value)}"
        seen.add(value)


def _fractions(amounts: JSONObject | None, path: str) -> list[str]:
    texts = []
    for name in ("memory", "ephemeral-storage", "storage"):
        value = None if amounts is None else amounts.get(name)
        # Only quantities with a suffix below one, a point or an exponent can be fractions.
        if value is None or (type(value) is str and value.isalnum() and value[-1] not in "mun"):
            continue
        try:
            amount = Quantity.parse(value)
        except ValueError:
            continue
        if amount.value.denominator != 1:
            texts.append(f"{path}[{name}]: fractional byte value {quote(str(amount))} is invalid, must be an integer")
    return texts


def _profiles(container: JSONObject, spec: JSONObject, annotations: JSONObject, prefix: str) -> Iterator[str]:
    """Return warnings about annotations of a container that have become fields."""
    name, context = container.get("name") or "", container.get("securityContext") or {}
    if f"{SECCOMP}{name}" in annotations and context.get("seccompProfile") is None:
        yield f"{prefix}metadata.annotations[{SECCOMP}{name}]: {_OLD_SECCOMP}"
    # For pods, the warning is sent when the field is set from the annotation.
    if not prefix or f"{APP_ARMOR}{name}" not in annotations or context.get("appArmorProfile") is not None:
        return
    whole = (spec.get("securityContext") or {}).get("appArmorProfile")
    if whole is None or whole != app_armor_profile(annotations[f"{APP_ARMOR}{name}"]):
        yield f"{prefix}metadata.annotations[{APP_ARMOR}{name}]: {OLD_APP_ARMOR}"


def app_armor_profile(text: str) -> JSONObject | None:
    """Return the profile in a deprecated annotation; L{None} if it is invalid."""
    if text == "runtime/default":
        return {"type": "RuntimeDefault"}
    if text == "unconfined":
        return {"type": "Unconfined"}
    if text.startswith("localhost/"):
        return {"type": "Localhost", "localhostProfile": text.removeprefix("localhost/")}
    return None


def _variables(container: JSONObject, path: str) -> Iterator[str]:
    seen: set[str] = set()
    for index, variable in enumerate(container.get("env") or ()):
        name, value = variable.get("name") or "", variable.get("value") or ""
        # A value that contains a reference to the previous value extends it.
        extends = variable.get("valueFrom") is None and f"$({name})" in value and value != f"$({name})"
        if name in seen and not extends:
            yield (
                f"{path}.env[{index}]: hides previous definition of {quote(name)}, "
                "which may be dropped when using apply"
            )
        seen.add(name)


def _all_ports(spec: JSONObject, path: str, *, serving: bool) -> Iterator[tuple[JSONObject, str]]:
    """
    Return all ports with their field paths.

    @param serving: Whether containers that end before the pod serves are omitted.
    """
    for container, container_path, kind in containers(spec, path):
        if serving and kind == "init container" and container.get("restartPolicy") != "Always":
            continue
        for index, port in enumerate(container.get("ports") or ()):
            yield port, f"{container_path}.ports[{index}]"


def _ports(spec: JSONObject, path: str) -> Iterator[str]:
    seen: dict[tuple[int, str], list[tuple[str, int, str]]] = {}
    for port, item_path in _all_ports(spec, path, serving=False):
        address, number = port.get("hostIP") or "", port.get("hostPort") or 0
        container_port, protocol = port.get("containerPort") or 0, port.get("protocol") or ""
        if address and not number:
            note = (
                f"{{Name:{port.get('name') or ''} HostPort:0 ContainerPort:{container_port} Protocol:{protocol} "
                f"HostIP:{address}}}"
            )
            yield f"{item_path}: hostIP set without hostPort: {note}"
        others = seen.setdefault((container_port, protocol), [])
        for other_address, other_number, other in others:
            if (address, number) == (other_address, other_number):
                yield f"{item_path}: duplicate port definition with {other}"
            elif not number or not other_number:
                yield f"{item_path}: overlapping port definition with {other}"
            elif number == other_number and bool(address) != bool(other_address):
                yield f"{item_path}: dangerously ambiguous port definition with {other}"
        others.append((address, number, item_path))


def _port_names(spec: JSONObject, path: str) -> Iterator[str]:
    seen: dict[str, str] = {}
    for port, item_path in _all_ports(spec, path, serving=True):
        name = port.get("name")
        if not name:
            continue
        first = seen.setdefault(name, item_path)
        if first != item_path:
            yield (
                f"{item_path}: duplicate port name {quote(name)} with {first}, services and probes that select ports "
                f"by name will use {first}"
            )
