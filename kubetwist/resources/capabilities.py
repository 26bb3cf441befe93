"""What a resource's storage object states about the resource, with the defaults of what it does not provide."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from attrs import frozen

from ..api.resource import GroupVersionKind
from ..api.tables import Describe, TableDefinition
from ..interfaces import (
    ICategoriesProvider,
    ILister,
    IScoper,
    IShortNamesProvider,
    ISingularNameProvider,
    IStorageMetadata,
    IStorageVersionProvider,
    ITableConvertor,
)
from ..registry.generic.printers.tables import default_table
from ..registry.generic.resourceinfo import storage_version_hash


@frozen
class DiscoveredNames:
    """
    The part of an entry of discovery that its storage object states.

    @ivar storage_version_hash: The hash of the version in which objects are stored; C{""} if that is not stated.
    """

    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    storage_version_hash: str = ""


@frozen
class ProducedResponse:
    """
    What the responses to a verb contain, if not only objects of the kind of the resource.

    @ivar media_types: Further media types.
    @ivar kind: The kind; L{None} for text.
    """

    media_types: tuple[str, ...]
    kind: GroupVersionKind | None


def produced_responses(storage: object, verbs: Iterable[str]) -> dict[str, ProducedResponse]:
    """Return what a storage object states about its responses, by verb; empty if it states nothing."""
    if not IStorageMetadata.providedBy(storage):
        return {}
    return {
        verb: ProducedResponse(tuple(storage.produced_media_types(verb)), storage.produced_kind(verb)) for verb in verbs
    }


def discovered_names(storage: object) -> DiscoveredNames:
    """Return what a storage object states for discovery."""
    return DiscoveredNames(
        storage.singular_name if ISingularNameProvider.providedBy(storage) else "",
        tuple(storage.short_names) if IShortNamesProvider.providedBy(storage) else (),
        tuple(storage.categories) if ICategoriesProvider.providedBy(storage) else (),
        storage_version_hash(*storage.storage_version) if IStorageVersionProvider.providedBy(storage) else "",
    )


def is_namespaced(storage: object, name: str) -> bool:
    """
    Return whether the objects of a resource are in namespaces.

    @param name: The name of the resource, for the error.
    @raise TypeError: The storage object does not state it.
    """
    if not IScoper.providedBy(storage):
        raise TypeError(f"the storage of {name} must provide IScoper")
    return bool(storage.namespace_scoped)


def has_tables(storage: object) -> bool:
    """Return whether responses can be Tables."""
    return ITableConvertor.providedBy(storage) or ILister.providedBy(storage)


def table_of(storage: Any, kind: GroupVersionKind, describe: Describe) -> TableDefinition:
    """
    Return the columns and rows of Tables.

    @param storage: A storage object that L{has_tables}.
    @param kind: The kind of responses.
    @param describe: Returns the description of a field.
    """
    if ITableConvertor.providedBy(storage):
        table: TableDefinition = storage.table(kind, describe)
        return table
    return default_table(describe)
