"""Updates of objects: PUT and PATCH of the main resource and its subresources."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from time import perf_counter
from typing import Final, NamedTuple

import orjson
from attrs import frozen

from ...api import objectmeta
from ...api.admission import AdmissionAttributes
from ...api.changes import ReadOnlyChange
from ...api.errors import APIStatusError, FieldError, RatchetedError, errors_in_release, invalid
from ...api.jsonequality import same_json
from ...api.options import WriteOptions
from ...api.record import Record
from ...api.requestscope import RequestScope
from ...api.resource import GroupKind, GroupVersionKind, JSONObject
from ...cel.allowance import compute_rules
from ...metrics.registry import Histogram
from ...storage.errors import KeyExists, KeyNotFound, RevisionConflict
from .allocation import NO_ALLOCATION, AllocationConflict
from .creation import try_create
from .empties import as_sent, remove_empties, restore_empties
from .fieldmanager.manager import ignore_managed_fields_timestamps
from .floats import remove_floats, restore_floats
from .objects import StoreBase
from .owners import drop_repeated_owners

#: Maximum number of attempts of an update without a resourceVersion, which is repeated after conflicts.
ATTEMPTS = 50
#: Seconds of the comparisons of new and stored objects in this process, by outcome as the reference names it.
TIMESTAMP_COMPARISONS: Final = {
    outcome: Histogram((0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 5.0))
    for outcome in ("unequal_objects_fast", "unequal_objects_slow", "equal_objects")
}


@frozen
class AdmittedView:
    """
    The object that admission gets if clients write another kind than the stored one: C{Scale}.

    @ivar kind: The kind that clients write.
    @ivar from_stored: Makes an object of that kind from a stored object.
    @ivar apply_to_stored: Called with a stored object, which it modifies, and the admitted object of that kind; raises
        an L{APIStatusError} if the admitted object is invalid.
    """

    kind: GroupVersionKind
    from_stored: Callable[[JSONObject], JSONObject]
    apply_to_stored: Callable[[JSONObject, JSONObject], object]


class UpdateRules(NamedTuple):
    """
    The part of an object that an endpoint may write: the main resource, its status, or another subresource.

    @ivar subresource: The name of the subresource; C{""} for the main resource.
    @ivar prepare: Called with the new and the old object; modifies the new one.
    @ivar validate: Called with the new and the old object; returns the validation errors outside of the metadata.
    @ivar main: Whether the rules of the main resource apply, such as the increment of the generation.
    @ivar creates: Whether an object that does not exist may be created.
    @ivar view: The object that admission gets; L{None} for the object itself.
    """

    subresource: str
    prepare: Callable[[JSONObject, JSONObject], object]
    validate: Callable[[JSONObject, JSONObject], Sequence[FieldError]]
    main: bool = False
    creates: bool = False
    view: AdmittedView | None = None


async def update(
    store: StoreBase,
    scope: RequestScope,
    name: str,
    change: Callable[[JSONObject | None], JSONObject],
    options: WriteOptions,
    rules: UpdateRules | None = None,
    *,
    patching: bool = False,
    creating: bool = False,
    may_create: Callable[[], Awaitable[None]] | None = None,
) -> tuple[Record | JSONObject, bool]:
    """
    See L{kubetwist.interfaces.IUpdater.update}; objects are in the stored version.

    @param name: The name in the request.
    @param change: Returns the new object for the current one; called with L{None} if the object does not exist and may
        be created.
    @param options: The options of the request.
    @param rules: The part of the object that may be written; the main resource by default.
    @param patching: Whether the change is a patch of the current state, so that its resourceVersion is no precondition.
    @param creating: Whether a patch may create the object, as apply does.
    @param may_create: Raises an L{APIStatusError} if the client must not create the object.
    @return: The record, or the object in the dry run of a creation; and whether it was created.
    @raise APIStatusError: The object is rejected, invalid, does not exist, or conflicts with a concurrent write.
    """
    strategy = store.strategy
    if rules is None:
        rules = UpdateRules("", strategy.prepare_for_update, strategy.validate_update, main=True, creates=True)
    key = store.requested_key(scope, name)
    for _ in range(ATTEMPTS):
        record = store.cache.get(key)
        if record is None:
            if not (rules.creates and (creating if patching else strategy.allow_create_on_update)):
                raise store.not_found(name)
            if may_create is not None:
                await may_create()
            try:
                return await create_by_update(store, scope, key, change, options, patching), True
            except KeyExists:
                continue
        await store.ensure_converted((record,))
        # Small objects are computed directly, which is faster.
        size = len(record.item)
        if scope.is_large(size):
            old, obj = await scope.compute(size, apply_change, store, record, change)
        else:
            old, obj = apply_change(store, record, change)
        drop_repeated_owners(scope, obj["metadata"], patched=patching)
        named_version = check_resource_version(store, obj, record, patching)
        try:
            return await try_update(store, scope, key, record, obj, old, options, rules), False
        except AllocationConflict:
            continue
        except (RevisionConflict, KeyNotFound):
            if named_version:
                raise APIStatusError.modified(store.group_resource, name) from None
    raise APIStatusError.modified(store.group_resource, name)


def apply_change(
    store: StoreBase, record: Record, change: Callable[[JSONObject], JSONObject]
) -> tuple[JSONObject, JSONObject]:
    """Return the stored object and the changed object of an update."""
    old = store.decode_record(record)
    return old, change(old if isinstance(change, ReadOnlyChange) else store.decode_record(record))


async def create_by_update(
    store: StoreBase,
    scope: RequestScope,
    key: str,
    change: Callable[[JSONObject | None], JSONObject],
    options: WriteOptions,
    patching: bool,
) -> Record | JSONObject:
    """
    Create an object by PUT or apply. The resourceVersion is ignored; a uid is a conflict.

    @param key: The key of the object in the cache.
    @param change: Returns the object when it is called with L{None}.
    @param options: The options of the request.
    @param patching: Whether the request is a PATCH.
    @return: The record of the object; in a dry run, the object.
    @raise APIStatusError: The object is rejected or invalid, or names a uid (409).
    @raise KeyExists: The object exists.
    """
    obj = await scope.compute(0, change, None)
    meta = obj["metadata"]
    store.check_namespace(scope, meta)
    if meta.get("uid"):
        if patching:
            reason = f"uid mismatch: the provided object specified uid {meta['uid']}, and no existing object was found"
            raise APIStatusError.conflict(store.group_resource, meta["name"], reason)
        raise uid_mismatch_error(store, key, meta, {}, dry_run=options.dry_run)
    attributes = store.attributes("CREATE", scope, meta.get("name", ""), obj, None, options)
    await store.admit_whole(scope, attributes)
    obj["metadata"].pop("resourceVersion", None)
    drop_repeated_owners(scope, obj["metadata"], patched=True)
    return await try_create(store, scope, obj, options, attributes)


def try_update(
    store: StoreBase,
    scope: RequestScope,
    key: str,
    record: Record,
    obj: JSONObject,
    old: JSONObject,
    options: WriteOptions,
    rules: UpdateRules,
) -> Awaitable[Record]:
    """
    Admit, validate and write one new state of an object.

    @param key: The key of the object in the cache.
    @param record: The record that is replaced.
    @param obj: The new object; modified.
    @param old: The stored object, decoded from C{record}.
    @param options: The options of the request.
    @param rules: The part of the object that may be written.
    @return: The record of the new state.
    @raise RevisionConflict: C{record} is not the newest state any more; also L{KeyNotFound} after a deletion.
    @raise APIStatusError: The object is rejected or invalid.
    """
    guard = store.guard(scope, obj, old, options) if rules.main else None
    if guard is None:
        return _update(store, scope, key, record, obj, old, options, rules)
    return _update_guarded(guard, store, key, record, obj, old, options, rules)


async def _update_guarded(
    guard: AbstractContextManager[RequestScope],
    store: StoreBase,
    key: str,
    record: Record,
    obj: JSONObject,
    old: JSONObject,
    options: WriteOptions,
    rules: UpdateRules,
) -> Record:
    with guard as scope:
        return await _update(store, scope, key, record, obj, old, options, rules)


async def _update(
    store: StoreBase,
    scope: RequestScope,
    key: str,
    record: Record,
    obj: JSONObject,
    old: JSONObject,
    options: WriteOptions,
    rules: UpdateRules,
) -> Record:
    store.check_namespace(scope, obj["metadata"])
    attributes = await admit_update(store, scope, record, obj, options, rules)
    meta, before = obj["metadata"], old["metadata"]
    if rules.main:
        await store.check_escalation(scope, obj, old, options)
    size = len(record.item)
    large = scope.is_large(size)
    errors = await compute_rules(scope, size, _prepare_and_validate, store, obj, old, rules, scope)
    if errors:
        errors = warn_ratcheted_errors(errors, scope)
        if errors:
            raise await scope.compute(size, store.invalid, meta.get("name", ""), errors)
    if rules.main:
        warnings = store.strategy.warnings
        for text in await scope.compute(size, warnings, obj, old) if large else warnings(obj, old):
            scope.warn(text)
    if attributes is not None:
        if rules.view is not None:
            attributes.object = rules.view.from_stored(obj)
        await store.admission.validate(attributes)
    meta["resourceVersion"] = before["resourceVersion"]
    if store.should_delete_during_update(obj, old):
        if not options.dry_run:
            await store.commit(key, None, record.revision)
            store.deleted(old)
        return Record.from_draft(key, record.revision, await store.convert_and_encode(obj, scope))
    allocation = NO_ALLOCATION
    if rules.main:
        allocation = store.reserve(obj, old, options.dry_run)
    try:
        if large:
            unchanged = await scope.compute(size, _default_and_compare, store, obj, old)
        else:
            unchanged = _default_and_compare(store, obj, old)
        if unchanged and (options.dry_run or not await store.needs_rewrite(key, obj, scope)):
            allocation.cancel()
            return record
        draft = await store.convert_and_encode(obj, scope)
        if options.dry_run:
            allocation.cancel()
            return Record.from_draft(key, record.revision, draft)
        if store.stored_as is not None:
            await store.encode_before_write(draft, scope)
        charges = () if attributes is None else attributes.charges
        revision = await store.commit(key, draft, record.revision, allocation, charges)
    except BaseException:
        allocation.cancel()
        raise
    allocation.commit()
    return store.committed_record(key, revision, draft)


def _prepare_and_validate(
    store: StoreBase, obj: JSONObject, old: JSONObject, rules: UpdateRules, scope: RequestScope
) -> list[FieldError]:
    """
    Restore the fields of C{old} that updates may not change in an admitted C{obj}; return the validation errors.

    @param obj: The object; modified.
    @param old: The stored object.
    @param scope: Contains the body that C{obj} was decoded from, with its empty containers and floats.
    """
    if scope.floats is None:
        return _prepare_and_validate_as_sent(store, obj, old, rules, scope)
    undo = restore_floats(obj, scope.floats)
    try:
        return _prepare_and_validate_as_sent(store, obj, old, rules, scope)
    finally:
        # Also if a long validation is cancelled and repeated.
        remove_floats(undo)


def _prepare_and_validate_as_sent(
    store: StoreBase, obj: JSONObject, old: JSONObject, rules: UpdateRules, scope: RequestScope
) -> list[FieldError]:
    """Run L{_prepare_and_validate}, with the empty containers and floats of the request restored."""
    meta, before = obj["metadata"], old["metadata"]
    preserve_system_metadata(meta, before)
    rules.prepare(obj, old)
    if rules.main and store.strategy.has_generation and store.strategy.generation_changes(obj, old):
        meta["generation"] = (before.get("generation") or 0) + 1
    # For a view, the body of the request is not the object.
    sent = scope.sent if rules.view is None else None
    if sent is None:
        return validate_changed_object(store, obj, old, rules)
    if rules.main and store.strategy.compares_empties(old):
        undo = restore_empties(obj, sent)
        try:
            return validate_changed_object(store, obj, old, rules)
        finally:
            # Also if a long validation is cancelled and repeated.
            remove_empties(undo)
    errors = validate_changed_object(store, obj, old, rules)
    return as_sent(errors, obj, sent, lambda: validate_changed_object(store, obj, old, rules)) if errors else errors


def validate_changed_object(store: StoreBase, obj: JSONObject, old: JSONObject, rules: UpdateRules) -> list[FieldError]:
    """
    Return all validation errors of a changed and prepared object.

    @param obj: The new object.
    @param old: The stored object.
    @param rules: The part of the object that may be written.
    """
    errors = objectmeta.validate_metadata_on_update(
        obj["metadata"],
        old["metadata"],
        store.info.namespaced,
        store.strategy.name_validator(obj),
        rules=store.strategy.metadata_update_rules if rules.main else store.strategy.status_metadata_update_rules,
        standard_finalizers=store.strategy.standard_finalizers,
        found=store.run_validation(rules.validate, obj, old),
    )
    return errors_in_release(errors, store.strategy.features) if errors else errors


def _default_and_compare(store: StoreBase, obj: JSONObject, old: JSONObject) -> bool:
    """Set the defaults of a valid C{obj}; return whether it equals C{old}."""
    store.default_on_read(obj)
    obj.pop("kind", None)
    obj.pop("apiVersion", None)
    began = perf_counter()
    # Most updates change a field outside of the metadata.
    for name, value in obj.items():
        if name != "metadata" and value != old.get(name, obj):
            TIMESTAMP_COMPARISONS["unequal_objects_fast"].observe(perf_counter() - began)
            return False
    outcome = ignore_managed_fields_timestamps(old, obj)
    TIMESTAMP_COMPARISONS[outcome].observe(perf_counter() - began)
    return equal_objects(obj, old)


async def admit_update(
    store: StoreBase,
    scope: RequestScope,
    record: Record,
    obj: JSONObject,
    options: WriteOptions,
    rules: UpdateRules,
) -> AdmissionAttributes | None:
    """
    Run the mutating plugins on the result of an update.

    @param record: The stored object.
    @param obj: The new object; modified.
    @param options: The options of the request.
    @param rules: The part of the object that may be written.
    @return: The attributes for the validating plugins; L{None} if admission is skipped.
    @raise APIStatusError: A plugin rejects the request, or the object that it leaves is invalid.
    """
    if scope.admitted:
        return None
    view = rules.view
    if view is None:
        version = obj["metadata"].get("resourceVersion")
        attributes = store.attributes("UPDATE", scope, record.name, obj, record, options, rules.subresource)
        await store.admit_whole(scope, attributes)
        if obj["metadata"].get("resourceVersion") != version:
            check_resource_version(store, obj, record, True)
    else:
        viewed = view.from_stored(obj)
        attributes = store.attributes(
            "UPDATE", scope, record.name, viewed, record, options, rules.subresource, view.kind, view.from_stored
        )
        await store.admit(attributes)
        view.apply_to_stored(obj, viewed)
    drop_repeated_owners(scope, obj["metadata"], patched=True)
    return attributes


def check_resource_version(store: StoreBase, obj: JSONObject, record: Record, patching: bool) -> bool:
    """
    Compare the resourceVersion of an update with the newest.

    @param obj: The new object. A patched object has the version of the current one, unless the patch sets another.
    @param record: The stored object.
    @param patching: Whether the request is a patch.
    @return: Whether the version is a precondition, so that the update must not be retried after a conflict.
    @raise APIStatusError: The version is not the newest (409), or is required and missing (422).
    """
    version = parse_version(obj["metadata"].get("resourceVersion", ""))
    if version:
        if version != record.revision:
            raise APIStatusError.modified(store.group_resource, record.name)
        return not patching
    if not store.strategy.allow_unconditional_update:
        field_error = invalid("metadata.resourceVersion", 0, "must be specified for an update", "uint64")
        kind = GroupKind(store.info.group, store.info.resource)  # the reference names the resource here
        raise APIStatusError.invalid(kind, record.name, [field_error])
    return False


def check_uid(store: StoreBase, scope: RequestScope, obj: JSONObject, old: JSONObject) -> None:
    """
    Compare the uid of an update with that of the stored object.

    @param obj: The new object.
    @param old: The stored object.
    @raise APIStatusError: The uid differs (409).
    """
    meta = obj["metadata"]
    uid = meta.get("uid")
    if uid and uid != old["metadata"].get("uid"):
        key = store.cache_key(scope.namespace, old["metadata"]["name"])
        raise uid_mismatch_error(store, key, meta, old["metadata"], dry_run=scope.dry_run)


def uid_mismatch_error(
    store: StoreBase, key: str, meta: JSONObject, before: JSONObject, *, dry_run: bool = False
) -> APIStatusError:
    """
    Return the 409 for a uid that differs from the uid of the stored object.

    @param key: The key of the object in the cache.
    @param meta: The metadata of the new object.
    @param before: The metadata of the stored object; empty if it does not exist.
    @param dry_run: See L{RequestScope.dry_run}.
    """
    name, actual = meta.get("name", ""), before.get("uid", "")
    return failed_precondition(store, key, name, "UID", meta["uid"], actual, dry_run=dry_run)


def failed_precondition(
    store: StoreBase, key: str, name: str, field: str, required: str, actual: str, *, dry_run: bool = False
) -> APIStatusError:
    """
    Return the 409 for an object whose preconditions are not met.

    @param key: The key of the object in the cache.
    @param field: C{"UID"} or C{"ResourceVersion"}.
    @param required: The value in the precondition.
    @param actual: The value in the stored object.
    @param dry_run: See L{RequestScope.dry_run}.
    """
    prefix = f"/{store.info.key_prefix}/" if dry_run else store.prefix
    reason = (
        f"StorageError: invalid object, Code: 4, Key: {prefix}{key}, ResourceVersion: 0, "
        f"AdditionalErrorMsg: Precondition failed: {field} in precondition: {required}, "
        f"{field} in object meta: {actual}"
    )
    return APIStatusError.conflict(store.group_resource, name, reason)


def preserve_system_metadata(meta: JSONObject, before: JSONObject) -> None:
    """Restore the metadata that no update may change; clients may omit it or send other values without an error."""
    for name in ("generation", "creationTimestamp"):
        if name in before:
            meta[name] = before[name]
        else:
            meta.pop(name, None)
    if not meta.get("uid"):
        meta["uid"] = before["uid"]
    if "deletionTimestamp" in before:
        meta["deletionTimestamp"] = before["deletionTimestamp"]
    if "deletionGracePeriodSeconds" in before and "deletionGracePeriodSeconds" not in meta:
        meta["deletionGracePeriodSeconds"] = before["deletionGracePeriodSeconds"]
    meta.pop("selfLink", None)


def warn_ratcheted_errors(errors: Sequence[FieldError], scope: RequestScope) -> list[FieldError]:
    """Send the errors that the stored object already had as warnings, and return the remaining errors."""
    for field_error in errors:
        if isinstance(field_error, RatchetedError):
            scope.warn(str(field_error))
    ignores_error = scope.ignores_error
    return [
        field_error
        for field_error in errors
        if not isinstance(field_error, RatchetedError) and (ignores_error is None or not ignores_error(field_error))
    ]


def equal_objects(obj: JSONObject, old: JSONObject) -> bool:
    """Return whether two objects have the same JSON, except for the order of keys, their kind and their apiVersion."""
    obj.pop("kind", None)
    obj.pop("apiVersion", None)
    return same_json(obj, old)


def parse_version(text: str) -> int:
    """
    Return the revision of the resourceVersion of an object; 0 if it is empty.

    @raise APIStatusError: The text is not a number (500 without a reason, since it is from a body).
    """
    if not text:
        return 0
    if text.isascii() and text.isdigit() and len(text) <= 20 and int(text) < 1 << 64:
        return int(text)
    problem = "value out of range" if text.isascii() and text.isdigit() else "invalid syntax"
    quoted_text = orjson.dumps(text).decode()
    raise APIStatusError.unknown(f"strconv.ParseUint: parsing {quoted_text}: {problem}")
