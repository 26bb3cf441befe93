"""Changes to new pods besides defaults."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ....api.podspecs import containers
from ....api.resource import JSONObject
from .warnings import APP_ARMOR, OLD_APP_ARMOR, app_armor_profile


def merge_affinity_keys(spec: JSONObject, labels: JSONObject) -> None:
    """
    Add the labels of the pod for C{matchLabelKeys} and C{mismatchLabelKeys} to the label selectors of pod affinity.

    See kubernetes, C{pkg/registry/core/pod/strategy.go}.
    """
    affinity = spec.get("affinity")
    if affinity:
        for term in _affinity_terms(affinity):
            _merge(term, term.get("matchLabelKeys"), "In", labels)
            _merge(term, term.get("mismatchLabelKeys"), "NotIn", labels)


def merge_spread_keys(spec: JSONObject, labels: JSONObject) -> None:
    """Add the labels of the pod for C{matchLabelKeys} to the label selectors of topology spread constraints."""
    for constraint in spec.get("topologySpreadConstraints") or ():
        _merge(constraint, constraint.get("matchLabelKeys"), "In", labels)


def _affinity_terms(affinity: JSONObject) -> Iterator[JSONObject]:
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(kind) or {}
        yield from terms.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        for weighted in terms.get("preferredDuringSchedulingIgnoredDuringExecution") or ():
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


def app_armor_warnings(metadata: JSONObject, spec: JSONObject) -> list[str]:
    """Return warnings for deprecated annotations: those of a field, and those without one."""
    return [
        f"metadata.annotations[{APP_ARMOR}{container.get('name') or ''}]: {OLD_APP_ARMOR}"
        for container, profile in _annotated(metadata, spec)
        if profile is None or profile != _whole_profile(spec)
    ]


def apply_app_armor_annotations(metadata: JSONObject, spec: JSONObject) -> None:
    """Set missing AppArmor fields of containers from deprecated annotations."""
    for container, profile in _annotated(metadata, spec):
        if profile is not None and profile != _whole_profile(spec):
            context = container.get("securityContext") or {}
            container["securityContext"] = {**context, "appArmorProfile": profile}


def annotate_app_armor_profiles(metadata: JSONObject, spec: JSONObject) -> None:
    """Set missing deprecated annotations from AppArmor fields, for the kubelets of older releases; until 1.33."""
    if (spec.get("os") or {}).get("name") == "windows":
        return
    annotations = metadata.get("annotations") or {}
    added = {}
    for container, _, _ in containers(spec):
        key = APP_ARMOR + (container.get("name") or "")
        profile = (container.get("securityContext") or {}).get("appArmorProfile") or _whole_profile(spec)
        text = None if profile is None else _annotation(profile)
        if text and key not in annotations:
            added[key] = text
    if added:
        metadata["annotations"] = {**annotations, **added}


def _annotation(profile: JSONObject) -> str | None:
    """Return the deprecated annotation for a profile; L{None} if it is invalid."""
    if profile.get("type") == "Localhost":
        local = profile.get("localhostProfile")
        return None if local is None else f"localhost/{local}"
    return {"RuntimeDefault": "runtime/default", "Unconfined": "unconfined"}.get(profile.get("type") or "")


def _whole_profile(spec: JSONObject) -> JSONObject | None:
    profile: JSONObject | None = (spec.get("securityContext") or {}).get("appArmorProfile")
    return profile


def _annotated(metadata: JSONObject, spec: JSONObject) -> Iterator[tuple[JSONObject, JSONObject | None]]:
    """Return containers with an annotation but no field, and the profile in it; L{None} if it is invalid."""
    annotations = metadata.get("annotations")
    if not annotations or not any(key.startswith(APP_ARMOR) for key in annotations):
        return
    if (spec.get("os") or {}).get("name") == "windows":
        return
    for container, _, _ in containers(spec):
        text = annotations.get(APP_ARMOR + (container.get("name") or ""))
        if text is None or (container.get("securityContext") or {}).get("appArmorProfile") is not None:
            continue
        profile = app_armor_profile(text)
        local = None if profile is None else profile.get("localhostProfile")
        bad = local is not None and (not local or local != local.strip() or len(local.encode()) > _MAX_PROFILE_LENGTH)
        yield container, None if bad else profile


#: Maximum length of a profile name in bytes.
_MAX_PROFILE_LENGTH: Final = 4095
