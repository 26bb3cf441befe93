"""
Annotations that represent fields of the reference's internal types.

kube-apiserver parses such an annotation into a field when it decodes an object, and writes the field as the annotation
when it encodes one (C{pkg/apis/apps/v1/conversion.go}, C{pkg/apis/autoscaling/v2/conversion.go}). Therefore a value
that does not parse is a decoding error, a value that parses is returned in its canonical form, and answers that are
made from the internal type, such as rows of Tables, do not have the annotation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ...api.listoptions import parse_int64
from ...api.resource import GroupVersionKind, JSONObject
from ..autoscaling.conversion import drop_annotations_in_place

#: Generation of a DaemonSet's template.
TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"
#: Revision of a Deployment for a rollback.
ROLLBACK_TO: Final = "deprecated.deployment.rollback.to"

#: By group and kind, the annotations that objects of the internal type lack.
INTERNAL_ANNOTATIONS: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    ("apps", "DaemonSet"): (TEMPLATE_GENERATION,),
    ("apps", "Deployment"): (ROLLBACK_TO,),
}


def convert_zero(gvk: GroupVersionKind, zero: JSONObject) -> None:
    """Convert C{zero}, the zero value of a kind, to the conversion of its internal type's zero value."""
    if gvk.group != "apps":
        return
    if gvk.kind in ("Deployment", "ReplicaSet", "StatefulSet"):
        # A number in the internal type, a pointer in v1.
        zero["spec"] = {"replicas": 0, **zero["spec"]}
    elif gvk.kind == "DaemonSet":
        zero["metadata"] = {**zero["metadata"], "annotations": {TEMPLATE_GENERATION: "0"}}


class ConversionError(ValueError):
    """An object cannot be converted to the internal type; the text is the reference's."""


def read_annotations(gvk: GroupVersionKind, obj: JSONObject) -> None:
    """
    Check and normalize the annotations of a decoded C{obj} that represent fields.

    @raise ConversionError: One does not parse.
    """
    read = _READERS.get((gvk.group, gvk.kind))
    if read is not None and (obj.get("metadata") or {}).get("annotations"):
        read(gvk, obj)


def keep_internal(obj: JSONObject, old: JSONObject, names: tuple[str, ...]) -> None:
    """Restore the annotations C{names} of C{old} in C{obj}, for updates that may not change the spec."""
    meta = obj["metadata"]
    before = old["metadata"].get("annotations") or {}
    annotations = dict(meta.get("annotations") or {})
    for name in names:
        annotations.pop(name, None)
        if name in before:
            annotations[name] = before[name]
    _replace(meta, annotations)


def without_internal(group: str, kind: str, meta: JSONObject) -> JSONObject:
    """Return the metadata of the internal type; C{meta} itself if no annotation is removed."""
    names = INTERNAL_ANNOTATIONS.get((group, kind))
    annotations = meta.get("annotations")
    if names is None or not annotations or not any(name in annotations for name in names):
        return meta
    shown = {**meta}
    _replace(shown, {key: value for key, value in annotations.items() if key not in names})
    return shown


def _replace(meta: JSONObject, annotations: JSONObject) -> None:
    """Set the annotations at their position in the metadata, or remove the field if there are none."""
    if annotations:
        meta["annotations"] = annotations
    else:
        meta.pop("annotations", None)


def _template_generation(gvk: GroupVersionKind, obj: JSONObject) -> None:
    annotations = obj["metadata"]["annotations"]
    text = annotations.get(TEMPLATE_GENERATION)
    if text is not None:
        try:
            annotations[TEMPLATE_GENERATION] = str(parse_int64(text))
        except ValueError as error:
            raise ConversionError(str(error)) from None


def _rollback_to(gvk: GroupVersionKind, obj: JSONObject) -> None:
    annotations = obj["metadata"]["annotations"]
    text = annotations.get(ROLLBACK_TO)
    if text:
        try:
            annotations[ROLLBACK_TO] = str(parse_int64(text))
        except ValueError as error:
            raise ConversionError(f"failed to parse annotation[{ROLLBACK_TO}]={text} as int64: {error}") from None
    elif text is not None:
        del annotations[ROLLBACK_TO]
        _replace(obj["metadata"], annotations)


def _round_trip(gvk: GroupVersionKind, obj: JSONObject) -> None:
    # autoscaling/v1 represents newer fields by these annotations; later versions never have them.
    if gvk.version != "v1":
        drop_annotations_in_place(obj["metadata"])


_READERS: Final[dict[tuple[str, str], Callable[[GroupVersionKind, JSONObject], None]]] = {
    ("apps", "DaemonSet"): _template_generation,
    ("apps", "Deployment"): _rollback_to,
    ("autoscaling", "HorizontalPodAutoscaler"): _round_trip,
}
