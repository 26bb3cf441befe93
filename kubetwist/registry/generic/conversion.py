"""
Objects of one kind in another of its versions.

Most versions of a kind have the same schema, so that only C{apiVersion} changes. The packages of groups register the
converters of versions that differ when they are imported, which L{kubetwist.registry.kindtable} does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...api.resource import GroupVersionKind, JSONObject

#: Makes of an object's fields those of another version; C{kind} and C{apiVersion} are not its business.
Converter = Callable[[JSONObject], JSONObject]

#: Converters, by the source and the target of the conversion.
Converters = Mapping[tuple[GroupVersionKind, GroupVersionKind], Converter]

_CONVERTERS: dict[tuple[GroupVersionKind, GroupVersionKind], Converter] = {}


def register_converters(converters: Converters) -> None:
    """Add the converters of a group."""
    _CONVERTERS.update(converters)


def convert(obj: JSONObject, source: GroupVersionKind, target: GroupVersionKind) -> JSONObject:
    """
    The object in another version of its kind.

    C{obj} is not changed, but the result may share parts with it.
    """
    if source == target:
        return obj
    converter = _CONVERTERS.get((source, target))
    converted = obj if converter is None else converter(obj)
    return {**converted, "kind": target.kind, "apiVersion": target.api_version}


def convertible(source: GroupVersionKind, target: GroupVersionKind) -> bool:
    """Return whether two kinds are versions of one; events have two groups."""
    same = source.kind == target.kind and source.group == target.group
    return same or (source, target) in _CONVERTERS


def only_renames(source: GroupVersionKind, target: GroupVersionKind) -> bool:
    """Whether the two versions differ in nothing but their name, so that the bytes of fields can be shared."""
    return (source, target) not in _CONVERTERS
