"""Deletes objects of a store: DELETE of one object, of a collection, and of what cannot be read."""

from __future__ import annotations

from collections.abc import Iterator

from twisted.internet.defer import Deferred, FirstError, gatherResults

from ...api import times
from ...api.errors import APIStatusError
from ...api.listoptions import not_unreadable
from ...api.options import DeleteOptions, ListOptions
from ...api.record import (
    Listing,
    Record,
)
from ...api.requestscope import RequestScope
from ...api.resource import GroupKind, JSONObject
from ...storage.errors import KeyNotFound, RevisionConflict
from .deletion import (
    before_delete,
    check_preconditions,
    deletion_finalizers_for_garbage_collection,
    mark_as_deleting,
    set_finalizers,
)
from .objects import StoreBase
from .reading import read_list
from .updates import apply_change


async def delete(store: StoreBase, scope: RequestScope, name: str, options: DeleteOptions) -> tuple[Record, bool]:
    """See L{IGracefulDeleter.delete}; the state is L{None} where the reference answers with a Status only."""
    store.check_delete(name)
    key = store.requested_key(scope, name)
    for text in store.strategy.delete_warnings(options.propagation_policy, options.orphan_dependents):
        scope.warn(text)
    while True:
        record = store.existing(scope, name)
        await store.ensure_converted((record,))
        try:
            return await try_delete(store, scope, key, record, options)
        except (RevisionConflict, KeyNotFound):
            continue


async def discard(store: StoreBase, scope: RequestScope, name: str) -> None:
    """See L{kubetwist.interfaces.IUnreadableDeleter.discard}."""
    key = store.requested_key(scope, name)
    while True:
        found = store.cache.unreadable.get(key)
        if found is None:
            kind = GroupKind(store.info.group, store.info.resource)
            raise APIStatusError.invalid(kind, name, [not_unreadable()])
        try:
            await store.commit(key, None, found.revision)
        except KeyNotFound:
            return
        except RevisionConflict as error:
            # By now it may be readable.
            await store.cache.seen(error.revision)
        else:
            return


async def try_delete(
    store: StoreBase, scope: RequestScope, key: str, record: Record, options: DeleteOptions
) -> tuple[Record, bool]:
    """Take the next step of a deletion from the state in C{record}; fails when that is not the newest any more."""
    begun = await store.begin_deletion(scope, key, record, options)
    if begun is not None:
        return begun
    size = len(record.item)
    old, obj = await scope.compute(size, apply_change, store, record, _unchanged)
    meta = old["metadata"]
    check_preconditions(options, meta, store.group_kind, record.name)
    await admit_deletion(store, scope, record, options)
    meta = obj["metadata"]
    now = times.utc_now()
    graceful, pending, left = before_delete(store.strategy, obj, options, now)
    if pending:
        return record, False
    finalizers = deletion_finalizers_for_garbage_collection(store.strategy, meta, options)
    if finalizers is not None:
        set_finalizers(meta, finalizers)
    waits = bool(meta.get("finalizers"))
    if waits and not graceful:
        mark_as_deleting(meta, now)
    if graceful or waits:
        record = await commit_if_changed(store, key, obj, old, record, options.dry_run)
        if waits or (graceful and left):
            return record, False
    if not options.dry_run:
        await store.commit(key, None, record.revision)
        store.deleted(obj)
    return record, True


async def admit_deletion(store: StoreBase, scope: RequestScope, record: Record, options: DeleteOptions) -> None:
    """
    Ask all plugins about the end of an object: mutating ones, too, which have nothing to change here.

    @raise APIStatusError: One refuses.
    """
    if scope.admitted:
        return
    name = "" if scope.collection else record.name
    attributes = store.attributes("DELETE", scope, name, None, record, options)
    await store.admission.admit(attributes)
    await store.admission.validate(attributes)


async def commit_if_changed(
    store: StoreBase, key: str, obj: JSONObject, old: JSONObject, record: Record, dry_run: bool
) -> Record:
    """Write a changed object; when nothing changed, or in a dry run, just show what it would be."""
    if obj == old:
        return record
    draft = await store.convert_and_encode(obj)
    if dry_run:
        return Record.from_draft(key, record.revision, draft)
    return store.committed_record(key, await store.commit(key, draft, record.revision), draft)


async def delete_collection(
    store: StoreBase, scope: RequestScope, options: DeleteOptions, selection: ListOptions
) -> Listing:
    """
    See L{ICollectionDeleter.delete_collection}.

    A resourceVersion means exactly that one, since the reference lists in pages here.
    """
    scope = scope.of_collection()
    if selection.resource_version not in ("", "0") and not selection.resource_version_match:
        selection.resource_version_match = "Exact"
    listing = read_list(store, scope, selection)
    if not isinstance(listing, Listing):
        listing = await listing
    left = iter(listing.records)
    workers = min(store.delete_workers, len(listing.records))
    each = [Deferred.fromCoroutine(_delete_each(store, scope, left, options)) for _ in range(workers)]
    try:
        await gatherResults(each, consumeErrors=True)
    except FirstError as error:
        error.subFailure.raiseException()
    return listing


async def _delete_each(
    store: StoreBase, scope: RequestScope, records: Iterator[Record], options: DeleteOptions
) -> None:
    """Delete the remaining C{records}, which other workers take from as well; all are in the scope's namespace."""
    for record in records:
        try:
            await delete(store, scope, record.name, options)
        except APIStatusError as error:
            if error.code != 404:
                raise


def _unchanged(obj: JSONObject) -> JSONObject:
    return obj
