"""
The generic store: what every kind of stored resource does alike, between HTTP above and bytes below.

Reads are answered from the watch cache. Writes go decode -> admission (mutating) -> the kind's rules -> admission
(validating) -> one compare-and-swap; they are repeated when somebody else wrote in between. From the bottom up:
L{kubetwist.registry.generic.objects}, L{kubetwist.registry.generic.creation}, L{kubetwist.registry.generic.updates},
and here reading and deleting, whose rules are in L{kubetwist.registry.generic.reading} and
L{kubetwist.registry.generic.deletion}.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from twisted.internet.defer import Deferred, FirstError, gatherResults
from zope.interface import implementer

from ...api import times
from ...api.errors import APIStatusError
from ...api.listoptions import not_unreadable
from ...api.options import DeleteOptions, GetOptions, ListOptions
from ...api.requestscope import RequestScope
from ...api.resource import GroupKind, JSONObject
from ...interfaces import ICollectionDeleter, ICreator, IGetter, IGracefulDeleter, ILister, IPatcher, IWatcher
from ...storage.cache.listing import Listing
from ...storage.cache.record import Record
from ...storage.errors import KeyNotFound, RevisionConflict
from . import deletion, reading
from .updates import Updates


@implementer(ICreator, IGetter, ILister, IWatcher, IPatcher, IGracefulDeleter, ICollectionDeleter)
class Store(Updates):
    """The objects of one resource, and all that clients do with them."""

    # --- reading

    def get(self, scope: RequestScope, name: str, options: GetOptions) -> Any:
        """See L{IGetter.get}; a record, or an awaitable of one when it has to wait."""
        if options.resource_version:
            return reading.get_at(self, scope, name, options)
        if scope.from_storage or not self.cached:
            return reading.get_stored(self, scope, name)
        return self.existing(scope, name)

    def list(self, scope: RequestScope, options: ListOptions) -> Any:
        """See L{ILister.list}; a listing, or an awaitable of one when it has to wait."""
        return reading.read_list(self, scope, options)

    async def watch(self, scope: RequestScope, options: ListOptions, sink: Any) -> Any:
        """See L{IWatcher.watch}."""
        await reading.await_first_state(self, options)
        return reading.begin_watch(self, scope, options, sink)

    # --- deleting

    async def delete(self, scope: RequestScope, name: str, options: DeleteOptions) -> tuple[Any, bool]:
        """See L{IGracefulDeleter.delete}; the state is L{None} where the reference answers with a Status only."""
        key = self.requested_key(scope, name)
        for text in self.strategy.delete_warnings(options.propagation_policy, options.orphan_dependents):
            scope.warn(text)
        while True:
            record = self.existing(scope, name)
            await self.prepare((record,))
            try:
                return await self.delete_once(scope, key, record, options)
            except (RevisionConflict, KeyNotFound):
                continue

    async def discard(self, scope: RequestScope, name: str) -> None:
        """See L{kubetwist.interfaces.IUnreadableDeleter.discard}."""
        key = self.requested_key(scope, name)
        while True:
            found = self.cache.unreadable.get(key)
            if found is None:
                kind = GroupKind(self.info.group, self.info.resource)
                raise APIStatusError.invalid(kind, name, [not_unreadable()])
            try:
                await self.commit(key, None, found.revision)
            except KeyNotFound:
                return
            except RevisionConflict as error:
                # By now it may be readable.
                await self.cache.seen(error.revision)
            else:
                return

    async def delete_item(self, scope: RequestScope, name: str, options: DeleteOptions) -> None:
        """Delete one object of a collection."""
        await self.delete(scope, name, options)

    async def delete_once(
        self, scope: RequestScope, key: str, record: Record, options: DeleteOptions
    ) -> tuple[Any, bool]:
        """Take the next step of a deletion from the state in C{record}; fails when that is not the newest any more."""
        size = len(record.item)
        old, obj = await scope.compute(size, self._changed, record, _unchanged)
        meta = old["metadata"]
        deletion.check_preconditions(options, meta, self.group_kind, record.name)
        await self.admit_deletion(scope, record, options)
        meta = obj["metadata"]
        now = times.utc_now()
        graceful, pending, left = deletion.begin_grace(self.strategy, obj, options, now)
        if pending:
            return record, False
        finalizers = deletion.garbage_collection_finalizers(self.strategy, meta, options)
        if finalizers is not None:
            deletion.set_finalizers(meta, finalizers)
        waits = bool(meta.get("finalizers"))
        if waits and not graceful:
            deletion.mark_deleting(meta, now)
        if graceful or waits:
            record = await self.put_back(key, obj, old, record, options.dry_run)
            if waits or (graceful and left):
                return record, False
        if not options.dry_run:
            await self.commit(key, None, record.revision)
            self.deleted(obj)
        return record, True

    async def admit_deletion(self, scope: RequestScope, record: Record, options: DeleteOptions) -> None:
        """
        Ask all plugins about the end of an object: mutating ones, too, which have nothing to change here.

        @raise APIStatusError: One refuses.
        """
        if scope.admitted:
            return
        name = "" if scope.collection else record.name
        attributes = self.attributes("DELETE", scope, name, None, record, options)
        await self.admission.admit(attributes)
        await self.admission.validate(attributes)

    async def put_back(self, key: str, obj: JSONObject, old: JSONObject, record: Record, dry_run: bool) -> Record:
        """Write a changed object; when nothing changed, or in a dry run, just show what it would be."""
        if obj == old:
            return record
        draft = await self.drafted(obj)
        if dry_run:
            return Record.from_draft(key, record.revision, draft)
        return self.written(key, await self.commit(key, draft, record.revision), draft)

    async def delete_collection(self, scope: RequestScope, options: DeleteOptions, selection: ListOptions) -> Listing:
        """
        See L{ICollectionDeleter.delete_collection}.

        A resourceVersion means exactly that one, since the reference lists in pages here.
        """
        scope = scope.of_collection()
        if selection.resource_version not in ("", "0") and not selection.resource_version_match:
            selection.resource_version_match = "Exact"
        listing = reading.read_list(self, scope, selection)
        if not isinstance(listing, Listing):
            listing = await listing
        left = iter(listing.records)
        workers = min(self._delete_workers, len(listing.records))
        each = [Deferred.fromCoroutine(self._delete_each(scope, left, options)) for _ in range(workers)]
        try:
            await gatherResults(each, consumeErrors=True)
        except FirstError as error:
            error.subFailure.raiseException()
        return listing

    async def _delete_each(self, scope: RequestScope, records: Iterator[Record], options: DeleteOptions) -> None:
        """Delete the remaining C{records}, which other workers take from as well; all are in the scope's namespace."""
        for record in records:
            try:
                await self.delete_item(scope, record.name, options)
            except APIStatusError as error:
                if error.code != 404:
                    raise


def _unchanged(obj: JSONObject) -> JSONObject:
    return obj
