"""Deletions: DELETE of one object, of a collection, and of objects that cannot be decoded."""

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
    """
    Delete an object; see L{IGracefulDeleter.delete}.

    @param name: The name of the object.
    @param options: The options of the request.
    @return: The state of the object, and whether it is removed.
    @raise APIStatusError: The object does not exist, its preconditions are not met, or admission rejects the request.
    """
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


async def delete_corrupt(store: StoreBase, scope: RequestScope, name: str) -> None:
    """See L{kubetwist.interfaces.ICorruptObjectDeleter.delete_corrupt}."""
    key = store.requested_key(scope, name)
    while True:
        unreadable = store.cache.unreadable.get(key)
        if unreadable is None:
            kind = GroupKind(store.info.group, store.info.resource)
            raise APIStatusError.invalid(kind, name, [not_unreadable()])
        try:
            await store.commit(key, None, unreadable.revision)
        except KeyNotFound:
            return
        except RevisionConflict as error:
            # The new value may be readable.
            await store.cache.wait_until_fresh_or_timeout(error.revision)
        else:
            return


async def try_delete(
    store: StoreBase, scope: RequestScope, key: str, record: Record, options: DeleteOptions
) -> tuple[Record, bool]:
    """
    Perform the next step of a deletion.

    @param key: The key of the object in the cache.
    @param record: The current state of the object.
    @param options: The options of the request.
    @return: The new state of the object, and whether it is removed.
    @raise RevisionConflict: C{record} is not the newest state any more; also L{KeyNotFound} after a deletion.
    @raise APIStatusError: The preconditions are not met, or admission rejects the request.
    """
    result = await store.begin_deletion(scope, key, record, options)
    if result is not None:
        return result
    size = len(record.item)
    old, obj = await scope.compute(size, apply_change, store, record, _unchanged)
    meta = old["metadata"]
    check_preconditions(options, meta, store.group_kind, record.name)
    await admit_deletion(store, scope, record, options)
    meta = obj["metadata"]
    now = times.utc_now()
    graceful, pending, remaining_seconds = before_delete(store.strategy, obj, options, now)
    if pending:
        return record, False
    finalizers = deletion_finalizers_for_garbage_collection(store.strategy, meta, options)
    if finalizers is not None:
        set_finalizers(meta, finalizers)
    has_finalizers = bool(meta.get("finalizers"))
    if has_finalizers and not graceful:
        mark_as_deleting(meta, now)
    if graceful or has_finalizers:
        record = await commit_if_changed(store, key, obj, old, record, options.dry_run)
        if has_finalizers or (graceful and remaining_seconds):
            return record, False
    if not options.dry_run:
        await store.commit(key, None, record.revision)
        store.deleted(obj)
    return record, True


async def admit_deletion(store: StoreBase, scope: RequestScope, record: Record, options: DeleteOptions) -> None:
    """
    Run all admission plugins on the deletion of an object; mutating plugins run too, but have no object to change.

    @param record: The object.
    @param options: The options of the request.
    @raise APIStatusError: A plugin rejects the request.
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
    """
    Write an object if it changed and the request is not a dry run.

    @param key: The key of the object in the cache.
    @param obj: The new state.
    @param old: The stored state, decoded from C{record}.
    @param dry_run: Whether nothing is written.
    @return: The record of the new state.
    """
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

    A resourceVersion is matched exactly, since the reference lists the collection in pages.
    """
    scope = scope.of_collection()
    if selection.resource_version not in ("", "0") and not selection.resource_version_match:
        selection.resource_version_match = "Exact"
    listing = read_list(store, scope, selection)
    if not isinstance(listing, Listing):
        listing = await listing
    remaining = iter(listing.records)
    count = min(store.delete_workers, len(listing.records))
    workers = [Deferred.fromCoroutine(_delete_each(store, scope, remaining, options)) for _ in range(count)]
    try:
        await gatherResults(workers, consumeErrors=True)
    except FirstError as error:
        error.subFailure.raiseException()
    return listing


async def _delete_each(
    store: StoreBase, scope: RequestScope, records: Iterator[Record], options: DeleteOptions
) -> None:
    """Delete the remaining C{records}, which several workers share; all are in the namespace of the scope."""
    for record in records:
        try:
            await delete(store, scope, record.name, options)
        except APIStatusError as error:
            if error.code != 404:
                raise


def _unchanged(obj: JSONObject) -> JSONObject:
    return obj
