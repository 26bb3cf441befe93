"""
The generic store: the verbs of all stored resources (Go: C{pkg/registry/generic/registry}).

Reads are answered from the watch cache. Writes go decode -> admission (mutating) -> the kind's rules -> admission
(validating) -> one compare-and-swap; they are repeated after a conflicting write. Each verb has a module with
functions of the store: L{kubetwist.registry.generic.reading}, L{kubetwist.registry.generic.creation},
L{kubetwist.registry.generic.updates} and L{kubetwist.registry.generic.removal}. They stand on
L{kubetwist.registry.generic.objects}, and call the hooks of L{kubetwist.registry.generic.hooks}.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from zope.interface import implementer

from ...api.errors import APIStatusError
from ...api.options import CreateOptions, DeleteOptions, GetOptions, ListOptions, WriteOptions
from ...api.record import Listing, Record
from ...api.requestscope import RequestScope
from ...api.resource import JSONObject
from ...interfaces import (
    ICollectionDeleter,
    ICreator,
    IGetter,
    IGracefulDeleter,
    ILister,
    IPatcher,
    IWatch,
    IWatcher,
    IWatchSink,
)
from . import creation, reading, removal, updates
from .objects import StoreBase
from .updates import UpdateRules

#: How often one update may be interrupted, such as for conversions that find out who owns what: two and a few more for
#: each other version.
MAX_INTERRUPTIONS: Final = 100


@implementer(ICreator, IGetter, ILister, IWatcher, IPatcher, IGracefulDeleter, ICollectionDeleter)
class Store(StoreBase):
    """The objects of one resource, and all that clients do with them."""

    def get(self, scope: RequestScope, name: str, options: GetOptions) -> Any:
        """See L{IGetter.get}; a record, or an awaitable of one when it has to wait."""
        found: Any
        if options.resource_version:
            found = reading.get_when_fresh(self, scope, name, options)
        elif scope.from_storage or not self.cached:
            found = reading.get_from_storage(self, scope, name)
        else:
            found = self.existing(scope, name)
        return self.converted(found) if self.converts else found

    def list(self, scope: RequestScope, options: ListOptions) -> Any:
        """See L{ILister.list}; a listing, or an awaitable of one when it has to wait."""
        found = reading.read_list(self, scope, options)
        return self.converted(found) if self.converts else found

    async def watch(self, scope: RequestScope, options: ListOptions, sink: IWatchSink) -> IWatch:
        """See L{IWatcher.watch}."""
        await reading.wait_for_initial_state(self, options)
        if self.converts:
            return await self.watch_converted(scope, options, sink)
        return reading.begin_watch(self, scope, options, sink)

    async def create(self, scope: RequestScope, obj: JSONObject, options: CreateOptions) -> Any:
        """See L{ICreator.create}."""
        self.begin_create(obj)
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

        @param change: Given L{None} when there is nothing and the kind may be created by PUT.
        @param rules: What may be written; the whole main resource by default.
        @param patching: The change starts from the current state, so that naming no resourceVersion is no mistake
            (C{change} leaves the current one in place), and nothing is created unless C{creating}.
        @param may_create: Raises an L{APIStatusError} if the client must not create what is not there.
        """
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
        Compare the uid that a PUT names with the one that is there.

        @raise APIStatusError: It is another (409).
        """
        updates.check_uid(self, scope, obj, old)

    async def delete(self, scope: RequestScope, name: str, options: DeleteOptions) -> tuple[Record, bool]:
        """See L{IGracefulDeleter.delete}; the state is L{None} where the reference answers with a Status only."""
        result, gone = await removal.delete(self, scope, name, options)
        return (await self.converted(result) if self.converts else result), gone

    async def discard(self, scope: RequestScope, name: str) -> None:
        """See L{kubetwist.interfaces.IUnreadableDeleter.discard}."""
        await removal.discard(self, scope, name)

    async def delete_collection(self, scope: RequestScope, options: DeleteOptions, selection: ListOptions) -> Listing:
        """See L{ICollectionDeleter.delete_collection}."""
        listing = await removal.delete_collection(self, scope, options, selection)
        if self.converts:
            await self.ensure_converted(listing.records)
        return listing
