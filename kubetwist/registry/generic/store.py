"""
The generic store: the verbs of all stored resources (Go: C{pkg/registry/generic/registry}).

Reads are answered from the watch cache. A write is decoded, admitted by mutating plugins, validated by the rules of the
kind and by validating plugins, and committed with one compare-and-swap; it is retried after a conflicting write. Each
verb has a module with functions of the store: L{kubetwist.registry.generic.reading},
L{kubetwist.registry.generic.creation}, L{kubetwist.registry.generic.updates} and
L{kubetwist.registry.generic.removal}. They use L{kubetwist.registry.generic.objects} and call the hooks of
L{kubetwist.registry.generic.hooks}.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from zope.interface import implementer

from ...api.errors import APIStatusError
from ...api.options import CreateOptions, DeleteOptions, GetOptions, ListOptions, WriteOptions
from ...api.record import Listing, Record
from ...api.requestscope import RequestScope
from ...api.resource import GroupVersionKind, JSONObject
from ...api.tables import Describe, TableDefinition
from ...interfaces import (
    ICollectionDeleter,
    ICreator,
    IGetter,
    IGracefulDeleter,
    ILister,
    IPatcher,
    IResetFieldsProvider,
    ITableConvertor,
    IWatch,
    IWatcher,
    IWatchSink,
)
from ...schema.merge.ownership import Filters
from . import creation, reading, removal, updates
from .capabilities import PersistedResource
from .fieldmanager.resetfields import reset_fields
from .hooks import hook
from .objects import StoreBase
from .updates import UpdateRules

#: Maximum number of interruptions of one update, such as for conversions of managed fields: a few for each version of
#: the object.
MAX_INTERRUPTIONS: Final = 100


@implementer(
    ICreator,
    IGetter,
    ILister,
    IWatcher,
    IPatcher,
    IGracefulDeleter,
    ICollectionDeleter,
    ITableConvertor,
    IResetFieldsProvider,
)
class Store(PersistedResource, StoreBase):
    """The storage of one resource with all verbs."""

    @hook
    def table(self, kind: GroupVersionKind, describe: Describe) -> TableDefinition:
        """
        See L{ITableConvertor.table}.

        @param kind: The kind of responses, which is C{Scale} for a C{scale} subresource.
        @param describe: Returns the description of a field.
        """
        return self.tables(kind, describe)

    @property
    def reset_fields(self) -> Filters:
        """See L{IResetFieldsProvider.reset_fields}."""
        return self.reset_fields_of("")

    @hook
    def reset_fields_of(self, subresource: str) -> Filters:
        """
        Return the fields that clients of a subresource may own, as L{IResetFieldsProvider.reset_fields}.

        @param subresource: A subresource that is a part of the object; C{""} for the main resource.
        """
        return reset_fields(self.info, subresource)

    def get(self, scope: RequestScope, name: str, options: GetOptions) -> Any:
        """See L{IGetter.get}; returns a record, or an awaitable of one."""
        result: Any
        if self.cache.on_demand.pending:
            result = reading.get_before_fill(self, scope, name, options)
        elif options.resource_version:
            result = reading.get_when_fresh(self, scope, name, options)
        elif scope.from_storage or not self.cached:
            result = reading.get_from_storage(self, scope, name)
        else:
            result = self.existing(scope, name)
        return self.converted(result) if self.converts else result

    def list(self, scope: RequestScope, options: ListOptions) -> Any:
        """See L{ILister.list}; returns a listing, or an awaitable of one."""
        pending = self.cache.on_demand.pending
        result: Any = (reading.list_after_fill if pending else reading.read_list)(self, scope, options)
        return self.converted(result) if self.converts else result

    async def watch(self, scope: RequestScope, options: ListOptions, sink: IWatchSink) -> IWatch:
        """See L{IWatcher.watch}."""
        if self.cache.on_demand.pending:
            await self.wait_for_fill()
        await reading.wait_for_initial_state(self, options)
        if self.converts:
            return await self.watch_converted(scope, options, sink)
        return reading.begin_watch(self, scope, options, sink)

    async def create(self, scope: RequestScope, obj: JSONObject, options: CreateOptions) -> Any:
        """See L{ICreator.create}."""
        self.begin_create(obj)
        if self.cache.on_demand.pending:
            await self.wait_for_fill()
        created = await creation.create(self, scope, obj, options)
        return await self.converted(created) if self.converts else created

    async def update(
        self,
        scope: RequestScope,
        name: str,
        change: Callable[[JSONObject | None], JSONObject],
        options: WriteOptions,
        rules: UpdateRules | None = None,
        *,
        patching: bool = False,
        creating: bool = False,
        may_create: Callable[[], Awaitable[None]] | None = None,
    ) -> tuple[Any, bool]:
        """
        See L{kubetwist.interfaces.IUpdater.update}; objects are in the stored version.

        The parameters are those of L{kubetwist.registry.generic.updates.update}.
        """
        if self.cache.on_demand.pending:
            await self.wait_for_fill()
        for _ in range(MAX_INTERRUPTIONS):
            try:
                result, created = await updates.update(
                    self,
                    scope,
                    name,
                    change,
                    options,
                    rules,
                    patching=patching,
                    creating=creating,
                    may_create=may_create,
                )
            except self.interruptions as interruption:
                await self.resume(interruption)
            else:
                return (await self.converted(result) if self.converts else result), created
        raise APIStatusError.internal("the object's owners use too many versions of it")

    def check_uid(self, scope: RequestScope, obj: JSONObject, old: JSONObject) -> None:
        """
        Compare the uid of an update with that of the stored object.

        @raise APIStatusError: The uid differs (409).
        """
        updates.check_uid(self, scope, obj, old)

    async def delete(self, scope: RequestScope, name: str, options: DeleteOptions) -> tuple[Record, bool]:
        """See L{IGracefulDeleter.delete}; returns the state of the object, and whether it is removed."""
        if self.cache.on_demand.pending:
            await self.wait_for_fill()
        result, removed = await removal.delete(self, scope, name, options)
        return (await self.converted(result) if self.converts else result), removed

    async def delete_corrupt(self, scope: RequestScope, name: str) -> None:
        """See L{kubetwist.interfaces.ICorruptObjectDeleter.delete_corrupt}."""
        if self.cache.on_demand.pending:
            await self.wait_for_fill()
        await removal.delete_corrupt(self, scope, name)

    async def delete_collection(self, scope: RequestScope, options: DeleteOptions, selection: ListOptions) -> Listing:
        """See L{ICollectionDeleter.delete_collection}."""
        if self.cache.on_demand.pending:
            await self.wait_for_fill()
        listing = await removal.delete_collection(self, scope, options, selection)
        if self.converts:
            await self.ensure_converted(listing.records)
        return listing
