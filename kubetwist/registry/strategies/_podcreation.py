"""What is written into a pod when it is created, beyond its defaults."""

from __future__ import annotations

from collections.abc import Iterator

from ...api.podspecs import containers, declared
from ...api.resource import JSONObject
from ..validation.podwarnings import APP_ARMOR, app_armor_profile


def merge_match_label_keys(spec: JSONObject, labels: JSONObject) -> None:
    """
    Write what C{matchLabelKeys} and C{mismatchLabelKeys} mean for this pod into the selectors beside them.

    See kubernetes, C{pkg/registry/core/pod/strategy.go}.
    """
    affinity = spec.get("affinity")
    if affinity:
        for term in _affinity_terms(affinity):
            _merge(term, term.get("matchLabelKeys"), "In", labels)
            _merge(term, term.get("mismatchLabelKeys"), "NotIn", labels)
    for constraint in spec.get("topologySpreadConstraints") or ():
        _merge(constraint, constraint.get("matchLabelKeys"), "In", labels)


def _affinity_terms(affinity: JSONObject) -> Iterator[JSONObject]:
    for kind in ("podAffinity", "podAntiAffinity"):
        found = affinity.get(kind) or {}
        yield from found.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        for weighted in found.get("preferredDuringSchedulingIgnoredDuringExecution") or ():
            if weighted.get("podAffinityTerm"):
                yield weighted["podAffinityTerm"]


def _merge(holder: JSONObject, keys: list[str] | None, operator: str, labels: JSONObject) -> None:
    selector = holder.get("labelSelector")
    if not keys or selector is None:
        return
    for key in keys:
        if key in labels:
            expressions = selector.setdefault("matchExpressions", [])
            expressions.append({"key": key, "operator": operator, "values": [labels[key]]})


def drop_disabled_fields(spec: JSONObject, old: JSONObject | None = None) -> None:
    """
    Drop what is behind a feature gate that is closed: C{ClusterTrustBundleProjection}, C{ContainerStopSignals}.

    @param old: The spec as it was, when this is a change: what it has, it keeps.
    """
    if old is None or not any(_stop_signals(old)):
        for container in list(_stop_signals(spec)):
            lifecycle = {name: part for name, part in container["lifecycle"].items() if name != "stopSignal"}
            container["lifecycle"] = lifecycle
            if not any(part is not None for part in lifecycle.values()):
                del container["lifecycle"]
    if old is None or not any(_trust_bundles(old)):
        for source in list(_trust_bundles(spec)):
            del source["clusterTrustBundle"]


def _stop_signals(spec: JSONObject) -> Iterator[JSONObject]:
    """The containers that say how they are stopped."""
    for container, _, _ in declared(spec):
        if (container.get("lifecycle") or {}).get("stopSignal") is not None:
            yield container


def _trust_bundles(spec: JSONObject) -> Iterator[JSONObject]:
    """The sources of volumes that are certificates to trust."""
    for volume in spec.get("volumes") or ():
        for source in (volume.get("projected") or {}).get("sources") or ():
            if source.get("clusterTrustBundle") is not None:
                yield source


def apply_app_armor_annotations(metadata: JSONObject, spec: JSONObject) -> None:
    """Let a container's annotation of old stand for the field, where the field is not set."""
    annotations = metadata.get("annotations")
    if not annotations or not any(key.startswith(APP_ARMOR) for key in annotations):
        return
    if (spec.get("os") or {}).get("name") == "windows":
        return
    whole = (spec.get("securityContext") or {}).get("appArmorProfile")
    for container, _, _ in containers(spec):
        text = annotations.get(APP_ARMOR + (container.get("name") or ""))
        context = container.get("securityContext") or {}
        if text is None or context.get("appArmorProfile") is not None:
            continue
        profile = app_armor_profile(text)
        if profile is not None and profile != whole:
            container["securityContext"] = {**context, "appArmorProfile": profile}
