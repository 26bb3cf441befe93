"""
Conversion of objects between the versions of their kind.

Most versions of a kind have the same schema, so that only C{apiVersion} changes. For versions that differ, the packages
of groups register converters when L{kubetwist.registry.kindtable} imports them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...api.resource import GroupVersionKind, JSONObject

#: Returns the fields of an object in another version; the caller sets C{kind} and C{apiVersion}.
Converter = Callable[[JSONObject], JSONObject]

#: Converters, by the source and the target of the conversion.
Converters = Mapping[tuple[GroupVersionKind, GroupVersionKind], Converter]

_CONVERTERS: dict[tuple[GroupVersionKind, GroupVersionKind], Converter] = {}


def register_converters(converters: Converters) -> None:
    """Add the converters of a group."""
    _CONVERTERS.update(converters)


def convert(obj: JSONObject, source: GroupVersionKind, target: GroupVersionKind) -> JSONObject:
    """
    Convert an object to another version of its kind.

    C{obj} is not modified, but the result may share values with it.
    """
    if source == target:
        return obj
    converter = _CONVERTERS.get((source, target))
    converted = obj if converter is None else converter(obj)
    return {**converted, "kind": target.kind, "apiVersion": target.api_version}


def convertible(source: GroupVersionKind, target: GroupVersionKind) -> bool:
    """Return whether two kinds are versions of the same kind; Events have two groups."""
    same = source.kind == target.kind and source.group == target.group
    return same or (source, target) in _CONVERTERS


def only_renames(source: GroupVersionKind, target: GroupVersionKind) -> bool:
    """Return whether two versions differ only in their names, so that they can share the encoded fields."""
    return (source, target) not in _CONVERTERS
