"""Reads of the generic store: resource versions, selectors, paging, and the start of watches."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache, partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, Protocol

import orjson
from attrs import frozen

from ...api.continuetokens import ContinueTokenError, decode_continue, encode_continue
from ...api.errors import APIStatusError, FieldError, named
from ...api.jsontypes import JSONValue
from ...api.options import GetOptions, ListOptions, Matcher
from ...api.record import (
    Listing,
    Record,
)
from ...api.selectors import Requirement
from ...interfaces import ICorruptObjectDeleter, IPacedSink, IWatch, IWatchSink
from ...storage.cache.corruptobjects import record_of
from ...storage.cache.indexes import Equality
from ...storage.errors import CorruptObjectError, FutureRevision, KeyNotFound, RevisionCompacted, StorageUnavailable

if TYPE_CHECKING:
    from ...api.requestscope import RequestScope
    from .objects import StoreBase
    from .resourceinfo import ResourceInfo

#: Seconds that a read waits until the cache has a requested revision.
FRESHNESS_TIMEOUT = 3.0
#: Maximum length of the selectors and the namespace of a cached selection, which limits the memory of the cache.
MAX_CACHED_SELECTOR_LENGTH: Final = 1024
#: Maximum number of corrupt objects in the error of a list.
MAX_REPORTED_CORRUPT_OBJECTS: Final = 100

#: Number of labels and fields that a list compares in one iteration of the reactor, which takes some milliseconds.
COMPARISONS_PER_SLICE: Final = 20_000
#: Number of records up to which a list is computed at once, for a selector of any length.
MAX_UNSLICED_RECORDS: Final = 16

_CONTINUE_WITH_RESOURCE_VERSION: Final = "specifying resource version is not allowed when using continue"

RecordMatcher = Callable[[Record], bool]


class HasInfo(Protocol):
    """The storage of one resource, such as a L{StoreBase}."""

    @property
    def info(self) -> ResourceInfo:
        """Return the resource."""


@frozen
class SelectionPredicate:
    """
    The selection of a list or watch.

    @ivar prefix: Prefix of the keys: C{""} for all namespaces, C{"default/"} for one.
    @ivar key: The only key that can match; L{None} if there may be several.
    @ivar match: Further condition on records; L{None} for none.
    @ivar nothing: Whether the terms contradict each other, or require an empty name or namespace.
    @ivar tests: Number of fields of a record that C{match} compares; all labels count as one.
    @ivar equalities: The values that C{match} requires.
    @ivar only_equalities: Whether it requires nothing else.
    """

    prefix: str
    key: str | None
    match: RecordMatcher | None
    nothing: bool = False
    tests: int = 0
    equalities: tuple[Equality, ...] = ()
    only_equalities: bool = False


def selection_predicate(store: HasInfo, scope: RequestScope, options: ListOptions) -> SelectionPredicate:
    """
    Split the selectors of a request into a key prefix or key, and a matcher of records.

    Equal selectors have the same matcher, so that a cache calls it once for all watches that share it.
    """
    length = len(scope.namespace) + len(options.label_selector) + sum(len(value) for _, value, _ in options.fields)
    find = _cached_selection_predicate if length <= MAX_CACHED_SELECTOR_LENGTH else _selection_predicate
    return find(store.info.namespaced, scope.namespace, options.fields, options.labels, options.requirements)


def _selection_predicate(
    namespaced: bool,
    request_namespace: str,
    fields: tuple[tuple[str, str, bool], ...],
    labels: Matcher | None,
    requirements: tuple[Requirement, ...],
) -> SelectionPredicate:
    namespace, name, nothing = request_namespace, "", False
    equalities: list[Equality] = []
    tests: list[RecordMatcher] = []
    excluded: dict[str, set[str]] = {}
    for field, value, equal in fields:
        if field == "metadata.name":
            if equal:
                nothing = nothing or not value or (name not in ("", value))
                name = value
            else:
                excluded.setdefault(field, set()).add(value)
        elif field == "metadata.namespace":
            if equal:
                nothing = nothing or (namespaced and not value) or (namespace not in ("", value))
                namespace = value
            else:
                excluded.setdefault(field, set()).add(value)
        elif equal:
            tests.append(_field_is(field, value))
            equalities.append(Equality(False, field, value))
        else:
            excluded.setdefault(field, set()).add(value)
    # A selector may exclude thousands of values of a field, hence the sets.
    tests += [_differs(field, frozenset(values)) for field, values in excluded.items()]
    weight = len(tests)
    only_equalities = len(tests) == len(equalities)
    if labels is not None:
        tests.append(_labels_match(labels))
        weight += 1
        required = [Equality(True, one.key, one.values[0]) for one in requirements if one.is_equality]
        only_equalities = only_equalities and 0 < len(required) == len(requirements)
        equalities += required
    if not namespaced and namespace and request_namespace != namespace:
        nothing = True
    prefix = f"{namespace}/" if namespace and namespaced else ""
    key = None
    if name:
        if prefix or not namespaced:
            key = prefix + name
        else:
            tests.append(_name_is(name))
            only_equalities = False
    return SelectionPredicate(prefix, key, _all_of(tests), nothing, weight, tuple(equalities), only_equalities)


_cached_selection_predicate = lru_cache(maxsize=4096)(_selection_predicate)


def _name_is(name: str) -> RecordMatcher:
    return lambda record: record.name == name


def _differs(field: str, excluded: frozenset[str]) -> RecordMatcher:
    if field == "metadata.name":
        return lambda record: record.name not in excluded
    if field == "metadata.namespace":
        return lambda record: record.namespace not in excluded
    return lambda record: record.fields.get(field, "") not in excluded


def _field_is(field: str, value: str) -> RecordMatcher:
    return lambda record: record.fields.get(field, "") == value


def _labels_match(labels: JSONValue) -> RecordMatcher:
    return lambda record: labels(record.labels)


def _all_of(tests: list[RecordMatcher]) -> RecordMatcher | None:
    if not tests:
        return None
    if len(tests) == 1:
        return tests[0]
    return lambda record: all(test(record) for test in tests)


def parse_revision(text: str) -> int:
    """
    Return the revision of the resourceVersion of a query; 0 if it is empty.

    @raise ValueError: The text is not a number; the message is the reference's.
    """
    if not text:
        return 0
    is_number = text.isascii() and text.isdigit()
    if is_number and int(text) < 1 << 64:
        return int(text)
    quoted_text = orjson.dumps(text).decode()
    problem = "value out of range" if is_number else "invalid syntax"
    raise ValueError(
        f"resourceVersion: Invalid value: {quoted_text}: strconv.ParseUint: parsing {quoted_text}: {problem}"
    )


def too_large_resource_version(error: FutureRevision) -> APIStatusError:
    """Return the 504 Timeout for a revision that the cache did not reach in time."""
    failure = APIStatusError.timeout(f"Too large resource version: {error.asked}, current: {error.revision}", 1)
    failure.details = {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }
    return failure


async def get_when_fresh(store: StoreBase, scope: RequestScope, name: str, options: GetOptions) -> Record:
    """
    Return the record of an object that is not older than a requested resourceVersion.

    @param name: The name of the object.
    @param options: The options of the request, with a resourceVersion.
    @raise APIStatusError: The object does not exist (404), or the resourceVersion is invalid or not reached in time.
    """
    try:
        revision = parse_revision(options.resource_version)
    except ValueError as error:
        raise APIStatusError.unknown(str(error)) from None
    await _wait_until_fresh(store, revision)
    return store.existing(scope, name) if store.cached else await get_from_storage(store, scope, name)


async def get_before_fill(store: StoreBase, scope: RequestScope, name: str, options: GetOptions) -> Record:
    """
    Begin to fill the cache of a store, and read an object from the backend.

    @param store: The store.
    @param scope: The scope of the request.
    @param name: The name of the object.
    @param options: The options of the request; for a later revision than the newest one, the fill is awaited.
    """
    if options.resource_version not in ("", "0"):
        await store.wait_for_fill()
        return await get_when_fresh(store, scope, name, options)
    store.cache.on_demand.begin()
    return await get_from_storage(store, scope, name)


async def list_after_fill(store: StoreBase, scope: RequestScope, options: ListOptions) -> Listing:
    """Return a listing when the cache of a store is filled."""
    await store.wait_for_fill()
    result = read_list(store, scope, options)
    return result if isinstance(result, Listing) else await result


async def get_from_storage(store: StoreBase, scope: RequestScope, name: str) -> Record:
    """Read an object from the backend instead of the cache."""
    key = store.requested_key(scope, name)
    began, failed = perf_counter(), True
    try:
        stored = await store.backend.read(store.storage_key(key))
        failed = False
        record = record_of(stored, store.decode_value, len(store.storage_key("")))
    except KeyNotFound:
        failed = False
        raise store.not_found(name) from None
    except CorruptObjectError as error:
        raise APIStatusError.internal(str(error)) from error
    finally:
        store.cache.metrics.observe_backend_request("get", perf_counter() - began, failed)
    return record


async def _wait_until_fresh(store: StoreBase, revision: int) -> None:
    if revision > store.cache.revision:
        try:
            await store.cache.wait_until_fresh(revision, FRESHNESS_TIMEOUT)
        except FutureRevision as error:
            raise too_large_resource_version(error) from None


def read_list(store: StoreBase, scope: RequestScope, options: ListOptions) -> Listing | Awaitable[Listing]:
    """Return a listing, or an awaitable of one if it must be read from the backend or wait for a revision."""
    try:
        revision = parse_revision(options.resource_version)
    except ValueError as error:
        if options.continue_token:
            raise APIStatusError.bad_request(_CONTINUE_WITH_RESOURCE_VERSION) from None
        raise APIStatusError.bad_request(f"invalid resource version: {error}") from None
    if revision > store.cache.revision:
        return _list_when_fresh(store, scope, options, revision)
    return _list_from_cache(store, scope, options, revision)


async def _list_when_fresh(store: StoreBase, scope: RequestScope, options: ListOptions, revision: int) -> Listing:
    await _wait_until_fresh(store, revision)
    result = _list_from_cache(store, scope, options, revision)
    return result if isinstance(result, Listing) else await result


def _reject_corrupt_objects(store: StoreBase, found: Sequence[CorruptObjectError]) -> None:
    """
    Reject a list that includes corrupt objects with an error that names them.

    @raise APIStatusError: C{found} is not empty (500).
    """
    if not found:
        return
    errors = [
        FieldError(
            "UnexpectedServerResponse",
            f"StorageError: corrupt object, Code: 7, Key: {error.key}, ResourceVersion: 0, "
            f"AdditionalErrorMsg: {error.reason}",
            error.key,
        ).as_dict()
        for error in found[:MAX_REPORTED_CORRUPT_OBJECTS]
    ]
    if len(found) > MAX_REPORTED_CORRUPT_OBJECTS:
        errors.append({"reason": "UnexpectedServerResponse", "message": "too many errors, the list is truncated"})
    resource = str(store.group_resource)
    text = f"failed to read one or more {resource} from the storage"
    details = {**named(store.group_resource, "list"), "causes": errors}
    raise APIStatusError(500, "StorageReadError", text, details)


def _list_from_cache(
    store: StoreBase, scope: RequestScope, options: ListOptions, revision: int
) -> Listing | Awaitable[Listing]:
    selection = selection_predicate(store, scope, options)
    limit = max(options.limit, 0)
    exact, start_after = 0, ""
    if options.continue_token:
        if options.resource_version not in ("", "0"):
            raise APIStatusError.bad_request(_CONTINUE_WITH_RESOURCE_VERSION)
        try:
            exact, start_after = decode_continue(options.continue_token, _path_prefix(store.info.namespaced, scope))
        except ContinueTokenError as error:
            raise APIStatusError.bad_request(f"invalid continue token: {error}") from None
    elif revision and (options.resource_version_match == "Exact" or (limit and not options.resource_version_match)):
        # A limit with a resourceVersion and no match requests exactly that version: storage/util, legacy exact match.
        exact = revision
    from_storage = scope.from_storage or not store.cached
    if options.resource_version == "0" and not from_storage and not _is_uncached_in_reference(store):
        # The reference's watch cache ignores the limit.
        limit = 0
    if selection.nothing:
        return Listing([], exact or store.cache.revision, "", None)
    match = selection.match
    if selection.key is not None:
        if not (exact or start_after or scope.from_storage):
            return _list_single(store, selection)
        match = _key_matcher(selection)
    if from_storage:
        return _list_from_storage(store, scope, options, selection, match, limit, start_after, exact)
    if store.cache.unreadable and ICorruptObjectDeleter.providedBy(store):
        _reject_corrupt_objects(store, store.cache.unreadable.list_below(selection.prefix))
    pause = scope.pause
    candidates = None
    if selection.equalities and selection.key is None:
        candidates = store.cache.find_candidates(selection.equalities, all_match=selection.only_equalities)
    try:
        if match is not None and pause is not None and len(store.cache) > MAX_UNSLICED_RECORDS:
            tests = selection.tests + _count_further_requirements(options.label_selector)
            compared = len(store.cache)
            if candidates is not None:
                compared = 0 if candidates.all_match and exact in (0, store.cache.revision) else len(candidates.records)
            if tests * compared > COMPARISONS_PER_SLICE:
                whole = store.cache.list(selection.prefix, start_after=start_after, revision=exact)
                whole.cached = not _is_uncached_in_reference(store)
                return _matched_in_slices(whole, match, limit, max(COMPARISONS_PER_SLICE // tests, 1), pause)
        listing = store.cache.list(
            selection.prefix,
            match=match,
            limit=limit,
            start_after=start_after,
            revision=exact,
            candidates=candidates,
        )
        listing.cached = not _is_uncached_in_reference(store)
        return listing
    except RevisionCompacted:
        return _list_from_storage(store, scope, options, selection, match, limit, start_after, exact)
    except FutureRevision as error:
        raise too_large_resource_version(error) from None


def _count_further_requirements(selector: str) -> int:
    """Return the number of requirements of a label selector after the first; the values of a set are one lookup."""
    return selector.count(",") if "(" not in selector else _sets("", selector).count(",")


_sets = re.compile(r"\([^()]*\)").sub


async def _matched_in_slices(
    listing: Listing, match: RecordMatcher, limit: int, at_once: int, pause: Callable[[], Awaitable[Any]]
) -> Listing:
    """
    Find the matching records of a list in slices, between which the reactor serves other requests.

    @param limit: Maximum number of results; 0 for all.
    @param at_once: Number of records in a slice.
    @param pause: Returns an awaitable that is done when the next slice may run.
    """
    records, matched = listing.records, []
    for begin in range(0, len(records), at_once):
        if begin:
            await pause()
        for index in range(begin, min(begin + at_once, len(records))):
            record = records[index]
            if match(record):
                matched.append(record)
                if limit and len(matched) == limit:
                    more = index + 1 < len(records)
                    return Listing(matched, listing.revision, record.key if more else "", None, listing.cached)
    return Listing(matched, listing.revision, "", None, listing.cached)


async def _list_from_storage(
    store: StoreBase,
    scope: RequestScope,
    options: ListOptions,
    selection: SelectionPredicate,
    match: RecordMatcher | None,
    limit: int,
    start_after: str,
    revision: int,
) -> Listing:
    """List from the storage, at a revision that the cache does not have any more or if the cache must not be used."""
    read = store.cache.list_at_revision if store.cached and not scope.from_storage else store.cache.list_from_storage
    try:
        return await read(selection.prefix, match=match, limit=limit, start_after=start_after, revision=revision)
    except RevisionCompacted:
        raise expired_list(options, start_after, _path_prefix(store.info.namespaced, scope)) from None


def _is_uncached_in_reference(store: StoreBase) -> bool:
    """
    Return whether the reference has no watch cache of a resource by default, so that its etcd store answers lists.

    See kubernetes/kubernetes, C{pkg/kubeapiserver/default_storage_factory_builder.go}.
    """
    return store.info.resource == "events" and store.info.storage_group == ""


def _key_matcher(selection: SelectionPredicate) -> RecordMatcher:
    key, match = selection.key, selection.match
    return lambda record: record.key == key and (match is None or match(record))


def _list_single(store: StoreBase, selection: SelectionPredicate) -> Listing:
    record = store.cache.get(selection.key or "")
    matches = record is not None and (selection.match is None or selection.match(record))
    return Listing([record] if matches and record is not None else [], store.cache.revision, "", None)


def continue_token(listing: Listing, scope: RequestScope, namespaced: bool) -> str:
    """Return the continue token of a listing; C{""} if it is the last page."""
    if not listing.next_key:
        return ""
    return encode_continue(listing.next_key, listing.revision, _path_prefix(namespaced, scope), slash=listing.cached)


def _path_prefix(namespaced: bool, scope: RequestScope) -> str:
    """Return the prefix of all keys below the path of a request, regardless of its selectors; tokens omit it."""
    return f"{scope.namespace}/" if namespaced and scope.namespace else ""


def expired_list(options: ListOptions, start_after: str, prefix: str) -> APIStatusError:
    """Return the 410 Expired for a compacted revision; a paged list gets a token to continue at the newest."""
    if not options.continue_token:
        return APIStatusError.expired("The resourceVersion for the provided list is too old.")
    failure = APIStatusError.expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list "
        "without the continue parameter, or use the continue token in this response to retrieve the remainder of "
        "the results. Continuing with the provided token results in an inconsistent list - objects that were "
        "created, modified, or deleted between the time the first chunk was returned and now may show up in the list."
    )
    failure.list_meta = {"continue": encode_continue(start_after, 0, prefix)}
    return failure


async def wait_for_initial_state(store: StoreBase, options: ListOptions) -> None:
    """
    Wait until the cache has the resourceVersion from which a watch with initial events starts.

    @raise APIStatusError: The cache did not reach it in time (504).
    """
    if options.send_initial_events and options.resource_version:
        try:
            revision = parse_revision(options.resource_version)
        except ValueError:
            return  # begin_watch raises the error.
        await _wait_until_fresh(store, revision)


def begin_watch(store: StoreBase, scope: RequestScope, options: ListOptions, sink: IWatchSink) -> IWatch:
    """
    Start a watch.

    @param options: The selectors, resourceVersion and sendInitialEvents of the request.
    @param sink: Receives the events.
    @return: The watch, which the caller stops.
    @raise APIStatusError: The resourceVersion is not a number (500 without a reason) or too old (410).
    """
    try:
        revision = parse_revision(options.resource_version)
    except ValueError as error:
        raise APIStatusError.unknown(str(error)) from None
    selection = selection_predicate(store, scope, options)
    initial = options.send_initial_events
    if initial is None:
        initial = revision == 0
    match = _never if selection.nothing else selection.match
    prefix = selection.key if selection.key is not None else selection.prefix
    begin: Any = store.cache.watch
    if IPacedSink.providedBy(sink):
        begin = partial(store.cache.watch_paced, equalities=selection.equalities)
    try:
        # A watch may request a future revision: it begins when the cache reaches it.
        watch: IWatch = begin(prefix, match=match, revision=revision, sink=sink, initial=initial)
        return watch
    except RevisionCompacted as error:
        raise APIStatusError.expired(f"too old resource version: {revision} ({error.oldest})") from None
    except StorageUnavailable:
        raise APIStatusError.too_many_requests("storage is (re)initializing", 1) from None


def _never(record: Record) -> bool:
    return False
