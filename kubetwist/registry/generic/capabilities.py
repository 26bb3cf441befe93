"""The capabilities of built-in and custom resources that follow from their descriptions: scope, names, versions."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import define

from zope.interface import implementer

from ...api.resource import GroupVersionKind
from ...interfaces import (
    ICategoriesProvider,
    IScoper,
    IShortNamesProvider,
    ISingularNameProvider,
    IStorageVersionProvider,
)
from .resourceinfo import ResourceInfo


@implementer(IScoper, ISingularNameProvider, IShortNamesProvider, ICategoriesProvider)
class NamedResource:
    """
    The scope and the names of a resource.

    @ivar info: Its description.
    """

    info: ResourceInfo

    @property
    def namespace_scoped(self) -> bool:
        """See L{IScoper.namespace_scoped}."""
        return self.info.namespaced

    @property
    def singular_name(self) -> str:
        """See L{ISingularNameProvider.singular_name}."""
        return self.info.singular

    @property
    def short_names(self) -> Sequence[str]:
        """See L{IShortNamesProvider.short_names}."""
        return self.info.short_names

    @property
    def categories(self) -> Sequence[str]:
        """See L{ICategoriesProvider.categories}."""
        return self.info.categories


@implementer(IStorageVersionProvider)
class PersistedResource(NamedResource):
    """The same of a resource with stored objects."""

    @property
    def storage_version(self) -> GroupVersionKind:
        """See L{IStorageVersionProvider.storage_version}."""
        info = self.info
        return GroupVersionKind(info.storage_group, info.hash_version, info.kind)


@define(eq=False)
class UnopenedResource(PersistedResource):
    """The same of a resource whose store is not needed yet."""

    info: ResourceInfo
