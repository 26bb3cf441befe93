"""
Conversion of PriorityLevelConfigurations: concurrency shares were renamed, and zero changed its meaning.

Before v1, zero shares meant the default. In v1beta3 an annotation marks an explicit zero.
"""

from __future__ import annotations

from collections.abc import Callable

from ...api.resource import GroupVersionKind, JSONObject

#: Annotation of v1beta3 objects with an explicit zero.
PRESERVE_ZERO = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares"
#: Versions with the old name of the field.
_ASSURED = ("v1beta1", "v1beta2")


def _level(version: str) -> GroupVersionKind:
    return GroupVersionKind("flowcontrol.apiserver.k8s.io", version, "PriorityLevelConfiguration")


def _rename(old: str, new: str) -> Callable[[JSONObject], JSONObject]:
    def converted(obj: JSONObject) -> JSONObject:
        spec = obj.get("spec") or {}
        limited = spec.get("limited")
        if not limited or old not in limited:
            return obj
        renamed = {new if name == old else name: value for name, value in limited.items()}
        return {**obj, "spec": {**spec, "limited": renamed}}

    return converted


def _drop_mark(obj: JSONObject) -> JSONObject:
    annotations = (obj.get("metadata") or {}).get("annotations") or {}
    if PRESERVE_ZERO not in annotations:
        return obj
    return _with_annotations(obj, {key: text for key, text in annotations.items() if key != PRESERVE_ZERO})


def _mark_zero(obj: JSONObject) -> JSONObject:
    limited = (obj.get("spec") or {}).get("limited") or {}
    if limited.get("nominalConcurrencyShares") != 0:
        return _drop_mark(obj)
    annotations = (obj.get("metadata") or {}).get("annotations") or {}
    return _with_annotations(obj, {**annotations, PRESERVE_ZERO: ""})


def _with_annotations(obj: JSONObject, annotations: dict[str, str]) -> JSONObject:
    metadata = {**obj["metadata"], "annotations": annotations}
    if not annotations:
        del metadata["annotations"]
    return {**obj, "metadata": metadata}


_ASSURED_TO_NOMINAL = _rename("assuredConcurrencyShares", "nominalConcurrencyShares")
_NOMINAL_TO_ASSURED = _rename("nominalConcurrencyShares", "assuredConcurrencyShares")

CONVERTERS: dict[tuple[GroupVersionKind, GroupVersionKind], Callable[[JSONObject], JSONObject]] = {
    **{(_level(old), _level(new)): _ASSURED_TO_NOMINAL for old in _ASSURED for new in ("v1beta3", "v1")},
    **{(_level(new), _level(old)): _NOMINAL_TO_ASSURED for old in _ASSURED for new in ("v1beta3", "v1")},
    (_level("v1beta3"), _level("v1")): _drop_mark,
    (_level("v1"), _level("v1beta3")): _mark_zero,
}
