"""
Mapping of managedFields between a resource and its scale subresource (Go: C{managedfields.ScaleHandler}).

A C{Scale} gets the entries that own the replicas, with its field paths; after a write they are mapped back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ....api.resource import JSONObject
from ....schema.merge.fieldset import (
    FieldSet,
    difference,
    field_set_from_paths,
    has,
)
from ....schema.merge.managedfields import (
    Entry,
    Managers,
    decode_stored_entries,
    encode_entries,
)

SCALE_VERSION: Final = "autoscaling/v1"
_REPLICAS: Final = ("f:spec", "f:replicas")
_SCALE_FIELDS: Final[FieldSet] = field_set_from_paths([_REPLICAS])

#: For each version of the main resource, the path to the replicas.
ReplicasPaths = Mapping[str, Sequence[str]]


def replicas_path(dotted: str) -> tuple[str, ...]:
    """Return the path of a field that a CRD specifies as C{.spec.replicas}."""
    return tuple(f"f:{name}" for name in dotted.lstrip(".").split("."))


def replicas_paths(api_versions: Sequence[str]) -> ReplicasPaths:
    """Return the paths to the replicas of a built-in resource."""
    return dict.fromkeys(api_versions, _REPLICAS)


def to_subresource(entries: Sequence[JSONObject], paths: ReplicasPaths) -> list[JSONObject]:
    """Return the C{managedFields} of a C{Scale} from those of the main resource."""
    managers: Managers = {}
    for manager, entry in decode_stored_entries(entries).items():
        path = paths.get(entry.api_version)
        if path and has(entry.fields, path):
            managers[manager] = Entry(SCALE_VERSION, entry.time, _SCALE_FIELDS)
    return encode_entries(managers)


def to_parent(
    entries: Sequence[JSONObject], scale_entries: Sequence[JSONObject], api_version: str, paths: ReplicasPaths
) -> list[JSONObject]:
    """
    Return the C{managedFields} of the main resource after a write to its C{Scale}.

    As in the reference, new entries from the C{Scale} have no time, and updaters of the C{Scale} get a separate entry
    for the replicas.

    @param entries: The entries of the main resource before the write.
    @param scale_entries: The entries of the C{Scale} after the write.
    @param api_version: The version of the main resource in the path of the request.
    @param paths: The paths to the replicas.
    """
    managers: Managers = {}
    before, scaled = decode_stored_entries(entries), decode_stored_entries(scale_entries)
    for manager, entry in before.items():
        if entry.api_version not in paths:
            continue
        path = paths[entry.api_version]
        if not path or not has(entry.fields, path):
            managers[manager] = entry
        elif manager in scaled:
            managers[manager] = entry
            del scaled[manager]
        else:
            rest = difference(entry.fields, field_set_from_paths([path]))
            if rest:
                managers[manager] = Entry(entry.api_version, entry.time, rest)
    replicas = field_set_from_paths([paths[api_version]])
    for manager, entry in scaled.items():
        if has(entry.fields, _REPLICAS):
            old_entry = before.get(manager)
            managers[manager] = Entry(api_version, old_entry.time if old_entry is not None else "", replicas)
    return encode_entries(managers)
