"""Creation of objects: POST, and PUT of a name that does not exist."""

from __future__ import annotations

from collections.abc import Awaitable
from contextlib import AbstractContextManager

import orjson

from ...api import objectmeta, times
from ...api.admission import AdmissionAttributes
from ...api.errors import APIStatusError, FieldError, errors_in_release, invalid
from ...api.names import generate_name, validate_path_segment_name
from ...api.options import CreateOptions, WriteOptions
from ...api.record import Record
from ...api.requestscope import RequestScope
from ...api.resource import JSONObject
from ...api.uuids import random_uuid
from ...cel.allowance import compute_rules
from ...storage.errors import KeyExists
from .allocation import AllocationConflict
from .empties import as_sent
from .floats import remove_floats, restore_floats
from .objects import StoreBase
from .owners import drop_repeated_owners

#: Maximum number of names that are generated from generateName until one is free.
NAME_ATTEMPTS = 8
#: Maximum number of allocations that may conflict with concurrent allocations of other servers.
ALLOCATION_ATTEMPTS = 32


async def create(store: StoreBase, scope: RequestScope, obj: JSONObject, options: CreateOptions) -> Record | JSONObject:
    """
    Create an object; see L{ICreator.create}.

    @param obj: The object in the stored version, with defaults; modified.
    @return: The record of the object; in a dry run, the object.
    @raise APIStatusError: The object is rejected, invalid, or exists already.
    """
    meta = obj["metadata"]
    store.check_namespace(scope, meta)
    drop_repeated_owners(scope, meta)
    attributes = store.attributes("CREATE", scope, meta.get("name", ""), obj, None, options)
    await store.admit_whole(scope, attributes)
    meta = obj["metadata"]
    drop_repeated_owners(scope, meta, patched=True)
    base = meta.get("generateName") if not meta.get("name") else None
    if not base:
        try:
            return await try_create(store, scope, obj, options, attributes)
        except KeyExists as error:
            raise already_exists_error(store, error, meta) from None
    # Each attempt uses a copy, since values that are derived from the name, such as labels, are derived again.
    original = orjson.dumps(obj)
    attempts = NAME_ATTEMPTS if store.strategy.features.enabled("RetryGenerateName") else 1
    for attempt in range(attempts):
        obj = attributes.object = orjson.loads(original)
        meta = obj["metadata"]
        meta["name"] = generate_name(base)
        try:
            return await try_create(store, scope, obj, options, attributes)
        except KeyExists as error:
            if attempt < attempts - 1:
                continue
            raise already_exists_error(store, error, meta) from None
    raise AssertionError("the last attempt either returns or raises")


def try_create(
    store: StoreBase, scope: RequestScope, obj: JSONObject, options: WriteOptions, attributes: AdmissionAttributes
) -> Awaitable[Record | JSONObject]:
    """
    Validate and write an object after mutating admission.

    @param obj: The object, which has a name; modified.
    @param attributes: The attributes for validating admission.
    @raise KeyExists: The name exists.
    @raise APIStatusError: The object is rejected or invalid.
    """
    guard = store.guard(scope, obj, None, options)
    if guard is None:
        return _create(store, scope, obj, options, attributes)
    return _create_guarded(guard, store, obj, options, attributes)


async def _create_guarded(
    guard: AbstractContextManager[RequestScope],
    store: StoreBase,
    obj: JSONObject,
    options: WriteOptions,
    attributes: AdmissionAttributes,
) -> Record | JSONObject:
    with guard as scope:
        return await _create(store, scope, obj, options, attributes)


async def _create(
    store: StoreBase, scope: RequestScope, obj: JSONObject, options: WriteOptions, attributes: AdmissionAttributes
) -> Record | JSONObject:
    meta = obj["metadata"]
    await store.check_escalation(scope, obj, None, options)
    for name in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"):
        meta.pop(name, None)
    version = meta.pop("resourceVersion", "")
    if store.strategy.has_generation:
        meta.pop("generation", None)
        if store.strategy.first_generation:
            meta["generation"] = store.strategy.first_generation
    elif not meta.get("generation"):
        # Kinds without generations keep the value of the client.
        meta.pop("generation", None)
    meta["uid"] = random_uuid()
    meta["creationTimestamp"] = times.now()
    # Small objects are computed directly, which is faster.
    large, strategy = scope.is_large(), store.strategy
    for text in await scope.compute(0, strategy.early_warnings, obj) if large else strategy.early_warnings(obj):
        scope.warn(text)
    errors = await compute_rules(scope, 0, _prepared_creation, store, obj, scope)
    if errors:
        raise await scope.compute(0, store.invalid, meta.get("name", ""), errors)
    for text in await scope.compute(0, strategy.warnings, obj, None) if large else strategy.warnings(obj, None):
        scope.warn(text)
    attributes.charges.clear()  # those of a previous generated name
    await store.admission.validate(attributes)
    # A malformed resourceVersion is ignored, as in the reference.
    if version.isdigit() and version.strip("0") and not options.dry_run:
        raise APIStatusError.unknown("resourceVersion should not be set on objects to be created")
    key = store.cache_key(meta.get("namespace", ""), meta["name"])
    for attempt in range(ALLOCATION_ATTEMPTS):
        allocation = store.reserve(obj, None, options.dry_run)
        try:
            if large:
                await scope.compute(0, store.default_on_read, obj)
            else:
                store.default_on_read(obj)
            if options.dry_run:
                if store.cache.get(key) is not None:
                    raise KeyExists(key)
                allocation.cancel()
                return await store.dry_run_result(obj, scope)
            draft = await store.convert_and_encode(obj, scope)
            if store.stored_as is not None:
                await store.encode_before_write(draft, scope)
            revision = await store.commit(key, draft, 0, allocation, attributes.charges)
        except AllocationConflict:
            allocation.cancel()
            if attempt == ALLOCATION_ATTEMPTS - 1:
                raise APIStatusError.modified(store.group_resource, meta["name"]) from None
            allocation.undo(obj)
        except BaseException:
            allocation.cancel()
            raise
        else:
            allocation.commit()
            return store.committed_record(key, revision, draft)
    raise AssertionError("the last attempt either returns or raises")


def _prepared_creation(store: StoreBase, obj: JSONObject, scope: RequestScope) -> list[FieldError]:
    """Set the fields that creation sets in a new C{obj}; return the validation errors of the result."""
    store.strategy.prepare_for_create(obj)
    store.strategy.prepare_for_creator(obj, scope.user)
    undo = restore_floats(obj, scope.floats)
    try:
        errors = validate_new_object(store, obj)
    finally:
        remove_floats(undo)
    if errors and scope.sent is not None:
        errors = as_sent(errors, obj, scope.sent, lambda: validate_new_object(store, obj))
    if errors and scope.ignores_error is not None:
        errors = [field_error for field_error in errors if not scope.ignores_error(field_error)]
    return errors


def validate_new_object(store: StoreBase, obj: JSONObject) -> list[FieldError]:
    """Return the validation errors of a new object."""
    meta = obj["metadata"]
    strategy_errors = store.run_validation(store.strategy.validate, obj)
    if strategy_errors and not store.strategy.checks_metadata:
        return list(strategy_errors)
    errors = objectmeta.validate_metadata_on_create(
        meta,
        store.info.namespaced,
        store.strategy.name_validator(obj),
        # The validation of metadata by the registry accepts any finalizer.
        standard_finalizers=store.strategy.standard_finalizers and store.strategy.checks_metadata,
    )
    if errors:
        errors = errors_in_release(errors, store.strategy.features)
    errors += strategy_errors
    if not errors and meta.get("generateName"):
        # The registry repeats these errors of the kind's validation, except for kinds with long names.
        errors += [
            invalid("metadata.generateName", meta["generateName"], text)
            for text in validate_path_segment_name(meta["generateName"], True)
        ]
    return errors


def already_exists_error(store: StoreBase, conflict: KeyExists, meta: JSONObject) -> APIStatusError:
    """Return the 409 AlreadyExists; its message says if the existing object is being deleted."""
    error = APIStatusError.already_exists(store.group_resource, meta["name"])
    if meta.get("generateName"):
        error.message += ", the server was not able to generate a unique name for the object"
        error.details = {**(error.details or {}), "retryAfterSeconds": 1}
        error.retry_after = 1
    try:
        record = store.cache.get(conflict.key.removeprefix(store.prefix))
    except APIStatusError:
        record = None  # The object exists, but its state is unknown.
    if record is not None and "deletionTimestamp" in orjson.loads(record.item)["metadata"]:
        error.message = f"object is being deleted: {error.message}"
    return error
