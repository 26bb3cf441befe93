"""
Annotations that represent fields of the reference's internal types.

kube-apiserver parses such an annotation into a field when it decodes an object, and writes the field as the annotation
when it encodes one (C{pkg/apis/apps/v1/conversion.go}, C{pkg/apis/autoscaling/v2/conversion.go}). Therefore a value
that does not parse is a decoding error, a value that parses is returned in its canonical form, and answers that are
made from the internal type, such as rows of Tables, do not have the annotation.

The packages of groups register their types when they are imported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import frozen

from ...api.resource import GroupVersionKind, JSONObject


class ConversionError(ValueError):
    """An object cannot be converted to the internal type; the text is the reference's."""


@frozen
class InternalType:
    """
    The differences between the internal type of a kind and the versions for clients.

    @ivar annotations: The annotations that objects of the internal type lack.
    @ivar read: Checks and normalizes the annotations of a decoded object that represent fields; raises
        L{ConversionError} for one that does not parse.
    @ivar convert_zero: Converts the zero value of a version to the conversion of the internal type's zero value.
    """

    annotations: tuple[str, ...] = ()
    read: Callable[[GroupVersionKind, JSONObject], None] | None = None
    convert_zero: Callable[[JSONObject], None] | None = None


_TYPES: dict[tuple[str, str], InternalType] = {}
_PLAIN = InternalType()


def register_internal_types(types: Mapping[tuple[str, str], InternalType]) -> None:
    """Add the types of a group, by group and kind."""
    _TYPES.update(types)


def internal_type(gvk: GroupVersionKind) -> InternalType:
    """Return the differences between the internal type of a kind and its versions."""
    return _TYPES.get((gvk.group, gvk.kind), _PLAIN)


def read_annotations(gvk: GroupVersionKind, obj: JSONObject) -> None:
    """
    Check and normalize the annotations of a decoded C{obj} that represent fields.

    @raise ConversionError: An annotation does not parse.
    """
    read = internal_type(gvk).read
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
    replace_annotations(meta, annotations)


def without_internal(annotations: tuple[str, ...], meta: JSONObject) -> JSONObject:
    """
    Return the metadata of the internal type; C{meta} itself if no annotation is removed.

    @param annotations: The names of the annotations that the internal type lacks.
    """
    existing = meta.get("annotations")
    if not existing or not any(name in existing for name in annotations):
        return meta
    result = {**meta}
    replace_annotations(result, {key: value for key, value in existing.items() if key not in annotations})
    return result


def replace_annotations(meta: JSONObject, annotations: JSONObject) -> None:
    """Set the annotations at their position in the metadata, or remove the field if there are none."""
    if annotations:
        meta["annotations"] = annotations
    else:
        meta.pop("annotations", None)
