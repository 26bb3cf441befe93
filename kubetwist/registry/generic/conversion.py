"""
Objects of one kind in another of its versions.

Most versions of a kind have the same schema, so that only C{apiVersion} changes. Those that differ are in
L{kubetwist.registry.conversions}, one module per group.
"""

from __future__ import annotations

from collections.abc import Callable

from ...api.resource import GroupVersionKind, JSONObject
from ..autoscaling import conversion as autoscaling
from ..core.event import conversion as events
from ..flowcontrol import conversion as flowcontrol
from ..resource import conversion as resource

#: Makes of an object's fields those of another version; C{kind} and C{apiVersion} are not its business.
Converter = Callable[[JSONObject], JSONObject]

_CONVERTERS: dict[tuple[GroupVersionKind, GroupVersionKind], Converter] = {
    **autoscaling.CONVERTERS,
    **events.CONVERTERS,
    **flowcontrol.CONVERTERS,
    **resource.CONVERTERS,
}


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
