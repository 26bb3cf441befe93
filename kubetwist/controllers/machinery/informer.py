"""
Informers: read access to the watch caches, indexes, and event handlers.

An informer keeps no objects: it reads the watch cache and forwards its events. Handlers are called in the reactor
thread while the write is being finished, so they must be short: add a key to a queue.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, Protocol
from warnings import warn

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from zope.interface import implementer

from ...api.errors import APIStatusError
from ...api.record import Record
from ...api.resource import GroupResource, JSONObject
from ...interfaces import IWatchSink
from ...registry.generic.resourceinfo import ResourceInfo
from ...registry.generic.store import Store
from ...registry.stores import decoded_object
from ...storage.cache.watchcache import WatchCache
from ...storage.cache.watches import CacheWatch
from ...storage.cache.window import ADDED, DELETED, MODIFIED, CacheEvent
from ...storage.errors import StorageError
from .queue import MAX_BLOCKING_SECONDS

#: Objects that are processed between two readings of the clock.
ITEMS_PER_CLOCK_CHECK: Final = 64
#: Seconds between checks of a cache that is not ready.
RETRY_INTERVAL: Final = 0.25

#: Called with the event type, the new state (the last one if deleted) and the previous state or L{None}.
Handler = Callable[[str, Record, Record | None], object]
#: Returns the index values of a record; empty if it is not indexed.
IndexFunction = Callable[[Record], Iterable[Hashable]]


class ISource(Protocol):
    """The source of the objects of one resource."""

    @property
    def info(self) -> ResourceInfo:
        """The resource."""

    def cache(self) -> WatchCache | None:
        """Return its cache, or L{None} if it is not ready."""

    def load(self) -> None:
        """Start filling it, unless that has been done."""


class StoreSource:
    """The store of a built-in resource."""

    def __init__(self, store: Store) -> None:
        self.info = store.info
        self._store = store

    def cache(self) -> WatchCache | None:
        """See L{ISource.cache}."""
        return self._store.cache if self._store.cache.ready else None

    def load(self) -> None:
        """See L{ISource.load}."""
        self._store.cache.on_demand.begin()


class HandlerRegistration:
    """
    A registered event handler.

    Existing objects are delivered in the order of their keys, in chunks. A change of an object that was not reached is
    delivered at once, as its addition.
    """

    __slots__ = ("_delivered_early", "_informer", "_position", "handler")

    def __init__(self, informer: Informer, handler: Handler) -> None:
        self._informer = informer
        self.handler = handler
        #: The key up to which existing objects were delivered; L{None} when all were, or none are to be.
        self._position: str | None = None
        #: The keys of later objects that were delivered because of a change.
        self._delivered_early: set[str] = set()

    def stop(self) -> None:
        """Remove the handler."""
        self._informer._remove(self)

    def begin(self) -> None:
        """Begin to deliver existing objects."""
        self._position = ""

    def reach(self, key: str) -> bool:
        """Advance to an existing object; return whether it is to be delivered."""
        if self._position is None:
            return False
        self._position = key
        if key in self._delivered_early:
            self._delivered_early.discard(key)
            return False
        return True

    def end(self) -> None:
        """End the delivery of existing objects."""
        self._position = None
        self._delivered_early.clear()

    def event_type(self, event_type: str, key: str) -> str | None:
        """Return the event to deliver for a change of an object; L{None} for none."""
        if self._position is None or key <= self._position:
            return event_type
        delivered = key in self._delivered_early
        if event_type == DELETED:
            self._delivered_early.discard(key)
            return event_type if delivered else None
        self._delivered_early.add(key)
        return event_type if delivered else ADDED


class Index:
    """
    Records by the values of an index function.

    It is updated with each event. The initial build runs in chunks and is complete when the handlers of its informer
    have synced (L{Informer.when_handlers_synced}); a controller does not start before.
    """

    def __init__(self, function: IndexFunction) -> None:
        self._function = function
        self._records: dict[Hashable, dict[str, Record]] = {}
        #: Index values by record key.
        self._values: dict[str, tuple[Hashable, ...]] = {}

    def get(self, value: Hashable) -> list[Record]:
        """Return the records of a value, in no order."""
        return list(self._records.get(value, {}).values())

    def count(self, value: Hashable) -> int:
        """Return the number of records of a value."""
        return len(self._records.get(value, ()))

    def values(self) -> list[Hashable]:
        """Return all values that have records."""
        return list(self._records)

    def _update(self, event_type: str, record: Record) -> None:
        key = record.key
        values: tuple[Hashable, ...] = () if event_type == DELETED else tuple(self._function(record))
        before = self._values.get(key, ())
        if before != values:
            for value in before:
                if value not in values:
                    records = self._records[value]
                    del records[key]
                    if not records:
                        del self._records[value]
            if values:
                self._values[key] = values
            else:
                del self._values[key]
        for value in values:
            self._records.setdefault(value, {})[key] = record


@implementer(IWatchSink)
class Informer:
    """
    Shared informer of the objects of one resource.

    @ivar synced: Fires when the cache is ready for the first time.
    @ivar ready: Whether C{synced} has fired. While a cache reloads, handlers and indexes keep their state.
    """

    _log = Logger()

    def __init__(self, source: ISource, clock: IReactorTime) -> None:
        self.source = source
        self.info = source.info
        self.synced: Deferred[None] = Deferred()
        self.ready = False
        self._clock = clock
        self._watch: CacheWatch | None = None
        self._cache: WatchCache | None = None
        self._registrations: tuple[HandlerRegistration, ...] = ()
        self._indexes: dict[str, Index] = {}
        self._retry: IDelayedCall | None = None
        self._last_known: Mapping[str, Record] | None = None
        #: Tasks over all objects that run in chunks, and callbacks for their end.
        self._tasks: deque[Iterator[None]] = deque()
        self._step_call: IDelayedCall | None = None
        self._stepping = False
        self._waiting: list[Callable[[], object]] = []
        self._stopped = False

    @property
    def group_resource(self) -> GroupResource:
        """The group and resource of the objects."""
        return self.info.group_resource

    # --- reading

    def get(self, namespace: str, name: str) -> Record | None:
        """Return the current record of an object."""
        return self.by_key(f"{namespace}/{name}" if self.info.namespaced else name)

    def by_key(self, key: str) -> Record | None:
        """Return a record by its C{key}."""
        return None if self._cache is None else self._cache.get(key)

    def get_decoded(self, namespace: str, name: str) -> JSONObject | None:
        """Return the current state of an object, decoded. It is shared and must not be changed."""
        record = self.get(namespace, name)
        return None if record is None else decoded_object(record)

    def list(self, namespace: str = "") -> list[Record]:
        """Return all records, or the records of one namespace, sorted by key."""
        if self._cache is None:
            return []
        return self._cache.list(f"{namespace}/" if namespace and self.info.namespaced else "").records

    def iterate(self) -> Iterator[Record]:
        """Yield the records in key order, read some at a time: records may change before the next one is yielded."""
        key = ""
        while self._cache is not None:
            records = self._cache.records_after("", key)
            if not records:
                return
            key = records[-1].key
            yield from records

    def list_decoded(self, namespace: str = "") -> Sequence[JSONObject]:
        """Return all objects, or the objects of one namespace, decoded. See L{get_decoded}."""
        return [decoded_object(record) for record in self.list(namespace)]

    def __len__(self) -> int:
        return 0 if self._cache is None else len(self._cache)

    def index(self, name: str, function: IndexFunction) -> Index:
        """
        Return the shared index with this name. The first call creates it.

        The index is updated before handlers are called.
        """
        index = self._indexes.get(name)
        if index is None:
            index = self._indexes[name] = Index(function)
            if self.ready:
                self._run_task(self._fill(index))
        return index

    def _fill(self, index: Index) -> Iterator[None]:
        for key in (record.key for record in self.iterate()):
            record = self.by_key(key)
            if record is not None:
                self._index(index, ADDED, record)
            yield

    # --- chunked tasks

    def when_handlers_synced(self, done: Callable[[], object]) -> None:
        """
        Call C{done} when all handlers have received all objects and all indexes are built. May call it immediately.
        """
        if self._tasks:
            self._waiting.append(done)
        else:
            done()

    @property
    def handlers_synced(self) -> bool:
        """Return whether all handlers have received all objects and all indexes are built."""
        return not self._tasks

    def _run_task(self, task: Iterator[None]) -> None:
        """Run a task over many objects in chunks. The first chunk runs immediately."""
        self._tasks.append(task)
        if self._step_call is None and not self._stepping:
            self._step()

    def _step(self) -> None:
        self._step_call = None
        self._stepping = True
        started = self._clock.seconds()
        try:
            while self._tasks:
                task = self._tasks[0]
                if sum(1 for _ in islice(task, ITEMS_PER_CLOCK_CHECK)) < ITEMS_PER_CLOCK_CHECK:
                    self._tasks.popleft()
                if self._tasks and self._clock.seconds() - started > MAX_BLOCKING_SECONDS:
                    self._step_call = self._clock.callLater(0, self._step)
                    return
        finally:
            self._stepping = False
        waiting, self._waiting = self._waiting, []
        for done in waiting:
            done()

    # --- event handlers

    def add_event_handler(self, handler: Handler, *, initial: bool = True) -> HandlerRegistration:
        """
        Register a handler for all changes from now on.

        @param initial: Call the handler with C{ADDED} for the existing objects, in chunks if there are many.
        """
        registration = HandlerRegistration(self, handler)
        self._registrations = (*self._registrations, registration)
        if initial and self.ready:
            self._begin(registration)
        return registration

    def _begin(self, registration: HandlerRegistration) -> None:
        registration.begin()
        self._run_task(self._notify_all(registration))

    def _notify_all(self, registration: HandlerRegistration) -> Iterator[None]:
        for key in (record.key for record in self.iterate()):
            if registration.reach(key):
                current = self.by_key(key)
                if current is not None:
                    self._notify(registration, ADDED, current, None)
            yield
        registration.end()

    def _remove(self, registration: HandlerRegistration) -> None:
        self._registrations = tuple(one for one in self._registrations if one is not registration)
        registration.end()

    def _notify(self, registration: HandlerRegistration, event_type: str, record: Record, old: Record | None) -> None:
        try:
            registration.handler(event_type, record, old)
        except Exception:
            self._log.failure(
                "event handler failed: event={event_type} resource={resource} key={key}",
                event_type=event_type,
                resource=self.group_resource,
                key=record.key,
            )

    def _index(self, index: Index, event_type: str, record: Record) -> None:
        try:
            index._update(event_type, record)
        except Exception:
            self._log.failure(
                "cannot update index: resource={resource} key={key}", resource=self.group_resource, key=record.key
            )

    def _changed(self, event_type: str, record: Record, old: Record | None) -> None:
        for index in self._indexes.values():
            self._index(index, event_type, record)
        for registration in self._registrations:
            delivered = registration.event_type(event_type, record.key)
            if delivered is not None:
                self._notify(registration, delivered, record, old if delivered == event_type else None)

    # --- lifecycle

    def start(self) -> None:
        """Start watching. Idempotent."""
        if self._watch is None and self._retry is None and not self._stopped:
            self._start_watch()

    def stop(self) -> None:
        """Stop watching and remove all handlers."""
        self._stopped = True
        self._registrations = ()
        self._tasks.clear()
        for call in (self._retry, self._step_call):
            if call is not None and call.active():
                call.cancel()
        self._retry = self._step_call = None
        if self._watch is not None:
            self._watch.stop()
            self._watch = None

    def handle_resource_removed(self) -> None:
        """Emit DELETED for all objects because the resource is no longer served, and stop."""
        records, registrations = self._known_records(), self._registrations
        self.stop()
        self._cache = None
        self.ready = False
        self._registrations = registrations
        for record in records.values():
            self._changed(DELETED, record, record)
        self._registrations = ()

    def _known_records(self) -> Mapping[str, Record]:
        """Return the objects that handlers were called for, by key."""
        if self._last_known is not None:
            return self._last_known
        return {} if self._cache is None else {record.key: record for record in self._cache.list().records}

    def _start_watch(self) -> None:
        self._retry = None
        cache = self.source.cache()
        if cache is None or not cache.ready:
            self.source.load()
            self._retry = self._clock.callLater(RETRY_INTERVAL, self._start_watch)
            return
        known, self._last_known = (
            self._known_records() if self._cache is not None or self._last_known is not None else {},
            None,
        )
        self._cache = cache
        try:
            self._watch = cache.watch("", sink=self)
        except (StorageError, APIStatusError):
            self._last_known = known
            self._retry = self._clock.callLater(RETRY_INTERVAL, self._start_watch)
            return
        if self.ready:
            self._replace(known, cache.list().records)
            return
        self.ready = True
        for index in self._indexes.values():
            self._run_task(self._fill(index))
        for registration in self._registrations:
            self._begin(registration)
        self.synced.callback(None)

    def _replace(self, known: Mapping[str, Record], records: Sequence[Record]) -> None:
        """Call handlers for the differences between the known objects and a new list (client-go: Replace)."""
        keys = {record.key for record in records}
        for key, old in known.items():
            if key not in keys:
                self._changed(DELETED, old, old)
        for record in records:
            previous = known.get(record.key)
            if previous is None:
                self._changed(ADDED, record, None)
            elif previous.revision != record.revision:
                self._changed(MODIFIED, record, previous)

    # --- IWatchSink

    def send(self, event_type: str, record: Record, event: CacheEvent | None) -> None:
        """See L{IWatchSink.send}."""
        self._changed(event_type, record, None if event is None else event.previous)

    def bookmark(self, revision: int, initial_events_end: bool) -> None:
        """Do nothing."""

    def end(self, error: Exception | None) -> None:
        """Restart the watch because the cache reloads. Handlers are called for the differences."""
        self._watch = None
        if self._stopped:
            return
        # Until the cache is filled again, the known objects are the ones from before the reload.
        self._last_known = self._known_records()
        self._retry = self._clock.callLater(RETRY_INTERVAL, self._start_watch)

    # --- deprecated names

    def subscribe(self, handler: Handler, *, initial: bool = True) -> HandlerRegistration:
        """Call L{add_event_handler}. Deprecated."""
        warn("Informer.subscribe was renamed to add_event_handler", DeprecationWarning, stacklevel=2)
        return self.add_event_handler(handler, initial=initial)

    def view(self, namespace: str, name: str) -> JSONObject | None:
        """Call L{get_decoded}. Deprecated."""
        warn("Informer.view was renamed to get_decoded", DeprecationWarning, stacklevel=2)
        return self.get_decoded(namespace, name)

    def views(self, namespace: str = "") -> Sequence[JSONObject]:
        """Call L{list_decoded}. Deprecated."""
        warn("Informer.views was renamed to list_decoded", DeprecationWarning, stacklevel=2)
        return self.list_decoded(namespace)
