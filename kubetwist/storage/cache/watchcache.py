"""
The watch cache: the objects of one resource, sorted, and a window of past events, over any storage backend.

It serves GET, LIST and WATCH. It watches its backend and runs in the reactor thread. Expensive work is done once per
event, not once per watch (Go: C{storage/cacher}).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from time import perf_counter
from typing import Final

from twisted.internet.defer import CancelledError, Deferred, fail, succeed
from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from ...api.record import (
    Draft,
    Listing,
    Record,
    RecordBlock,
)
from ...api.storage import StorageEvent
from ...interfaces import (
    IPacedSink,
    IStorageBackend,
    IStorageObserver,
    IStorageWatch,
    IWatchSink,
)
from .._expiry import Timer
from ..errors import (
    DecryptionUnavailable,
    ErrorTranslator,
    FutureRevision,
    RevisionCompacted,
    StorageError,
    StorageUnavailable,
    WatchInterrupted,
    unchanged,
)
from ._delivery import DeliveryQueue
from ._encodings import EncodingExpiry
from ._history import PastReader
from ._interning import intern_strings
from ._listing import (
    as_of,
    collect_blocks,
    collect_page,
    count_fetched,
)
from ._ondemand import OnDemandFill
from ._table import RecordTable, SortedRecords, UnfilledTable
from .blocks import FormBudget, FormCache
from .corruptobjects import CorruptObjects
from .indexes import Candidates, Equality, Indexes
from .metrics import CacheMetrics
from .reader import (
    Codec,
    RecordReader,
)
from .watches import (
    CacheWatch,
    PacedWatch,
)
from .window import (
    ADDED,
    DELETED,
    MODIFIED,
    CacheEvent,
    Match,
    Window,
)

WINDOW_EVENTS: Final = 10_000
WINDOW_BYTES: Final = 32 << 20

#: Maximum number of values read and decoded in one turn while a cache fills.
PAGE: Final = 500

#: Seconds until a failed backend is retried: the first delay, and the maximum.
RETRY_FIRST: Final = 0.25
RETRY_MAX: Final = 30.0


@implementer(IStorageObserver)
class WatchCache:
    """
    The objects of one resource.

    An unreadable value is neither present nor absent: reads of it, and lists that would include it, fail.

    @ivar prefix: The prefix of their keys in the backend, with its last slash.
    @ivar revision: The revision up to which the cache is complete and its watches are served.
    @ivar ready: Whether the cache is filled and follows its backend.
    @ivar on_demand: The fill of the cache, if it is postponed until the cache is needed.
    @ivar received: The number of events received from the backend.
    @ivar fills: The number of times that filling it began.
    @ivar metrics: The other metrics.
    @ivar deliveries: The events that watches have not received.
    @ivar translate: See L{__init__}.
    """

    _log = Logger()

    def __init__(
        self,
        backend: IStorageBackend,
        prefix: str,
        codec: Codec,
        clock: Timer,
        *,
        window_events: int = WINDOW_EVENTS,
        window_bytes: int = WINDOW_BYTES,
        page: int = PAGE,
        translate: ErrorTranslator = unchanged,
        form_budget: FormBudget | None = None,
    ) -> None:
        """
        @param prefix: The prefix of the keys in the backend, with its last slash.
        @param codec: Decodes stored values.
        @param window_events: Maximum number of past events that are kept.
        @param window_bytes: Their approximate maximum size in bytes.
        @param page: Maximum number of values per read while the cache fills.
        @param translate: Translates the errors of unreadable values, and of watches that end; with the registry's,
            readers and sinks receive errors of the API.
        @param form_budget: Limits the joined forms of records, which lists consist of; L{None} for a separate limit.
        """
        self.prefix = prefix
        self.revision = 0
        self.ready = False
        self.received = 0
        self.fills = 0
        self.metrics = CacheMetrics()
        self.translate = translate
        self._backend = backend
        self._clock = clock
        self._limits = (window_events, window_bytes)
        self._reader = RecordReader(backend, prefix, codec, clock, page, self.metrics, translate)
        self._decode = self._reader.decode
        self._table = RecordTable()
        self._window = Window(0, *self._limits)
        #: By scope: C{""}, C{"namespace/"} or a whole key. Tuples, so that a delivery is not disturbed by changes.
        self._watches: dict[str, tuple[CacheWatch, ...]] = {}
        self._waiters: list[tuple[int, Deferred[None], IDelayedCall]] = []
        self._source: IStorageWatch | None = None
        self._retry: IDelayedCall | None = None
        self._stopped = False
        self.on_demand = OnDemandFill(prefix, self._fill)
        self._past_reader = PastReader(backend, prefix, self._decode, clock)
        #: The expiry of the encoded forms of its records.
        self.encodings = EncodingExpiry(clock, lambda key: next(self._table.batches("", key), []))
        #: The joined forms of its records.
        self.forms = FormCache(clock, FormBudget() if form_budget is None else form_budget)
        self._indexes = Indexes(clock)
        self.deliveries = DeliveryQueue(clock, self._handle_sink_error)
        #: The values that cannot be decoded.
        self.unreadable = CorruptObjects(prefix, clock, self._reader.read, self._corrupt_object_readable, translate)

    # --- start and stop

    async def start(self, *, on_demand: bool = False) -> None:
        """
        Fill the cache and follow the backend.

        Values that cannot be decrypted at present are retried later; L{ready} is false until then.

        @param on_demand: Whether the fill is postponed (L{on_demand}) if there is more than a page of objects.
        @raise StorageError: The backend cannot be read.
        """
        try:
            if on_demand and await self._reader.exceeds_page():
                self.on_demand.pending = True
                self._table = UnfilledTable(self.prefix, self.on_demand.begin)
            else:
                await self._fill()
        except DecryptionUnavailable as error:
            self._log.error("{prefix} cannot be read: {reason}", prefix=self.prefix, reason=error)
            self.unreadable.unavailable = error
            self._reload_later(RETRY_FIRST)

    async def _fill(self) -> None:
        fill_number = self.fills = self.fills + 1
        while not self._stopped:
            try:
                self._table, revision, unreadable = await self._reader.load()
                self._window = Window(revision, *self._limits)
                self.unreadable.replace(unreadable)
                self.revision = revision
                source = await self._backend.watch(self.prefix, revision, self)
            except RevisionCompacted:
                continue  # The revision was compacted during the fill.
            if self._stopped or fill_number != self.fills:
                # The watch ended before it was established, and another fill has started.
                source.stop()
                return
            self._source = source
            self.ready = True
            self._wake_waiters()
            return

    def stop(self) -> None:
        """Stop following; all watches end."""
        self._stopped = True
        self.ready = False
        if self._source is not None:
            self._source.stop()
            self._source = None
        if self._retry is not None and self._retry.active():
            self._retry.cancel()
        self.unreadable.stop()
        self.encodings.stop()
        self.forms.stop()
        self._indexes.stop()
        self.on_demand.stop()
        self._end_watches(None)
        waiters, self._waiters = self._waiters, []
        for revision, waiter, timeout in waiters:
            timeout.cancel()
            waiter.errback(FutureRevision(revision, self.revision))

    def _corrupt_object_readable(self, record: Record) -> None:
        self._table.put(record)

    # --- IStorageObserver

    def committed(self, events: Sequence[StorageEvent]) -> None:
        """See L{IStorageObserver.committed}."""
        skip = len(self.prefix)
        changes = []
        rewritten = bool(self.unreadable) and self.unreadable.written(events)
        for event in events:
            key, revision, attachment = event.key[skip:], event.revision, event.attachment
            if event.value is None:
                previous = self._table.remove(key)
                if previous is None:
                    continue
                change = CacheEvent(DELETED, revision, previous.deleted_at(revision), previous)
            else:
                if type(attachment) is Draft:
                    record = intern_strings(Record.from_draft(key, revision, attachment))
                else:
                    record = self._decode(key, event.value, revision)
                previous = self._table.put(record)
                change = CacheEvent(ADDED if previous is None else MODIFIED, revision, record, previous)
            self._window.add(change)
            changes.append(change)
        self.received += len(events)
        before, self.revision = self.revision, events[-1].revision
        if rewritten:
            # The earlier states cannot be rebuilt by undoing this event.
            self._window.forget(self.revision)
        if self._watches and changes:
            self.metrics.dispatched += len(changes)
            self.deliveries.deliver(self._watches, changes, before)

    def progressed(self, revision: int) -> None:
        """See L{IStorageObserver.progressed}."""
        self.revision = revision
        if self._waiters:
            self._wake_waiters()
        if self._window.oldest < self._backend.compacted:
            self._window.forget(self._backend.compacted)

    def ended(self, reason: Exception) -> None:
        """Handle L{IStorageObserver.ended}: fill again; watches may have missed events, so their clients list again."""
        self._log.warn(
            "watch cache lost its storage watch, reloading: prefix={prefix} error={reason}",
            prefix=self.prefix,
            reason=reason,
        )
        self.ready = False
        self._source = None
        self._end_watches(WatchInterrupted())
        self._reload(RETRY_FIRST)

    def _reload_later(self, delay: float) -> None:
        if not self._stopped:
            self._retry = self._clock.callLater(delay, self._reload, min(delay * 2, RETRY_MAX))

    def _reload(self, delay: float) -> None:
        def failed(failure: Failure) -> None:
            if failure.check(StorageError):
                self._log.warn("{prefix} cannot be read: {reason}", prefix=self.prefix, reason=failure.value)
            else:
                self._log.failure("{prefix} cannot be read", failure, prefix=self.prefix)
            self._reload_later(delay)

        Deferred.fromCoroutine(self._fill()).addErrback(failed)

    def _handle_sink_error(self, watch: CacheWatch) -> None:
        """End the watch of a sink that raised, which is a bug of the sink."""
        self._log.failure("a watch of {prefix}{scope} failed", prefix=self.prefix, scope=watch.scope)
        watch.stop()
        try:
            watch.sink.end(None)
        except Exception:
            self._log.failure("a watch of {prefix}{scope} failed at its end", prefix=self.prefix, scope=watch.scope)

    def _end_watches(self, error: StorageError | None) -> None:
        watches, self._watches = self._watches, {}
        translated = None if error is None else self.translate(error)
        for scoped in watches.values():
            for watch in scoped:
                if watch.active:
                    watch.active = False
                    try:
                        watch.sink.end(translated)
                    except Exception:
                        self._log.failure("a watch of {prefix} failed at its end", prefix=self.prefix)
        self.deliveries.clear()

    @property
    def delivered_revision(self) -> int:
        """Return the newest revision whose events all watches have received."""
        served = self.deliveries.served
        return self.revision if served is None else served

    # --- reading

    def __len__(self) -> int:
        return len(self._table)

    @property
    def empty(self) -> bool:
        """Return whether the cache is filled and there are no objects; admission reads such caches for each write."""
        return self.ready and not len(self._table) and not self.unreadable

    @property
    def capacity(self) -> int:
        """Return the maximum number of past events that it keeps."""
        return self._limits[0]

    def count_watches(self, key: str) -> int:
        """Return the number of watches that receive the events of a key: of all keys, of its namespace, of itself."""
        watches = self._watches
        # A create may have no name yet: its key then ends with the namespace.
        scopes = {"", f"{key.partition('/')[0]}/", key}
        return sum(len(watches.get(scope, ())) for scope in scopes)

    def sizes(self) -> tuple[int, int]:
        """Return the number of records, and the approximate bytes of one, from a sample."""
        samples = [len(record.item) for record in self._table.samples()]
        return len(self._table), sum(samples) // len(samples) if samples else 0

    def get(self, key: str) -> Record | None:
        """
        Return the newest state of an object, by its key below the prefix.

        @raise Exception: It is unreadable; the translated error, by default the L{StorageError}.
        """
        record = self._table.get(key)
        if record is None and self.unreadable:
            self.unreadable.raise_if_corrupt(key=key)
        return record

    def list(
        self,
        prefix: str = "",
        *,
        match: Match | None = None,
        limit: int = 0,
        start_after: str = "",
        revision: int = 0,
        candidates: Candidates | None = None,
    ) -> Listing:
        """
        Return records in key order.

        @param prefix: The prefix of their keys: C{""} for all, C{"default/"} for a namespace.
        @param match: Returns false for records to leave out.
        @param limit: Maximum number of records; 0 for all. If more records follow, matching or not,
            C{next_key} is set.
        @param start_after: The C{next_key} of the page before.
        @param revision: The revision to list at; 0 for the present.
        @param candidates: The records that can match at present, if an index has them.
        @raise RevisionCompacted: The revision is before the window; L{list_at_revision} may still be able to read it.
        @raise FutureRevision: The revision is in the future.
        @raise Exception: A record is unreadable; the translated error, by default the L{StorageError}.
        """
        if self.unreadable:
            self.unreadable.raise_if_corrupt(prefix)
        table = self._table
        source: SortedRecords = table
        changed: dict[str, Record | None] = {}
        if revision and revision != self.revision:
            changed = self._changes_since(prefix, revision)
        test = match
        if candidates is not None:
            source = candidates.records
            if candidates.all_match and not changed:
                test = None
        metrics = self.metrics
        blocks: Sequence[RecordBlock] = ()
        if test is None and not changed:
            records, blocks, full = collect_blocks(source.blocks(prefix, start_after, self.forms), limit)
            metrics.fetched += len(records)
        else:
            batches = as_of(source.batches(prefix, start_after), changed, start_after)
            records, full = collect_page(count_fetched(batches, metrics), test, limit)
        metrics.lists += 1
        metrics.returned += len(records)
        next_key, remaining = "", None
        if full and any(as_of(table.batches(prefix, last := records[-1].key), changed, last)):
            next_key = last
            if match is None:
                remaining = table.count(prefix, next_key)
                for key, record in changed.items():
                    if key > next_key:
                        remaining += (record is not None) - (table.get(key) is not None)
        return Listing(records, revision or self.revision, next_key, remaining, blocks=blocks)

    def find_candidates(self, equalities: Sequence[Equality], *, all_match: bool) -> Candidates | None:
        """
        Return the records that can match a selector, by an index.

        @param equalities: The values that the selector requires.
        @param all_match: Whether it requires nothing else.
        @return: The records, for L{list} in the same iteration of the reactor; L{None} without an index.
        """
        found = self._indexes.find(self._table, equalities)
        return None if found is None else Candidates(found, all_match and len(equalities) == 1)

    def _changes_since(self, prefix: str, revision: int) -> dict[str, Record | None]:
        """Return the records below C{prefix} that changed since C{revision}, as they were then."""
        if revision > self.revision:
            raise FutureRevision(revision, self.revision)
        changed: dict[str, Record | None] = {}
        for event in self._events_after(revision):
            key = event.record.key
            if key not in changed and key.startswith(prefix):
                changed[key] = event.previous
        return changed

    def _events_after(self, revision: int) -> Sequence[CacheEvent]:
        self._window.forget(self._backend.compacted)
        return self._window.after(revision)

    async def list_at_revision(
        self,
        prefix: str = "",
        *,
        match: Match | None = None,
        limit: int = 0,
        start_after: str = "",
        revision: int = 0,
    ) -> Listing:
        """
        List as L{list}, but read revisions from before the window from the backend, until it compacts them.

        The number of remaining records is unknown then.
        """
        try:
            return self.list(prefix, match=match, limit=limit, start_after=start_after, revision=revision)
        except RevisionCompacted:
            return await self.list_from_storage(
                prefix, match=match, limit=limit, start_after=start_after, revision=revision
            )

    async def list_from_storage(
        self,
        prefix: str = "",
        *,
        match: Match | None = None,
        limit: int = 0,
        start_after: str = "",
        revision: int = 0,
    ) -> Listing:
        """
        List from the backend without the cache.

        @param prefix: See L{list}.
        @param match: See L{list}.
        @param limit: See L{list}.
        @param start_after: See L{list}.
        @param revision: The revision to list at; 0 for the backend's newest.
        """
        return await self._reader.list(prefix, match=match, limit=limit, start_after=start_after, revision=revision)

    def wait_until_fresh(self, revision: int, timeout: float = 3.0) -> Deferred[None]:
        """
        Wait until the cache is complete up to C{revision}.

        @param timeout: In seconds; L{FutureRevision} is raised after it, and immediately after L{stop}.
        """
        if revision <= self.revision:
            return succeed(None)
        if self.on_demand.pending:
            self.on_demand.begin()
            if revision <= self.revision:
                return succeed(None)
        if self._stopped:
            return fail(FutureRevision(revision, self.revision))

        def give_up(failure: Exception) -> None:
            self._waiters.remove(waiters)
            if call.active():
                call.cancel()
            waiter.errback(failure)

        waiter: Deferred[None] = Deferred(lambda _: give_up(CancelledError()))
        call = self._clock.callLater(timeout, lambda: give_up(FutureRevision(revision, self.revision)))
        waiters = (revision, waiter, call)
        self._waiters.append(waiters)
        started = perf_counter()

        def waited(result: object) -> object:
            self.metrics.waits.observe(perf_counter() - started)
            return result

        waiter.addBoth(waited)
        return waiter

    async def wait_until_fresh_or_timeout(self, revision: int) -> None:
        """Wait as L{wait_until_fresh} does; return without an error after its timeout."""
        with suppress(FutureRevision):
            await self.wait_until_fresh(revision)

    def _wake_waiters(self) -> None:
        reached = [waiters for waiters in self._waiters if waiters[0] <= self.revision]
        if reached:
            self._waiters = [waiters for waiters in self._waiters if waiters[0] > self.revision]
        for _, waiter, timeout in reached:
            timeout.cancel()
            waiter.callback(None)

    # --- watching

    def watch(
        self,
        scope: str,
        *,
        sink: IWatchSink,
        match: Match | None = None,
        revision: int = 0,
        initial: bool = False,
    ) -> CacheWatch:
        """
        Send changes to C{sink} until L{CacheWatch.stop}.

        Events up to the cache's revision are sent before this returns; a sink that is full by then ignores the
        rest, and is stopped afterwards.

        @param scope: C{""} for all, C{"default/"} for a namespace, or a whole key.
        @param match: Selects records; a record that begins to match is ADDED, one that
            stops is DELETED, with its last state.
        @param revision: Begin with the changes after this one, which may be in the future; 0 for the present. Ignored
            with C{initial}.
        @param initial: Send the present state first, as ADDED events.
        @raise StorageUnavailable: The cache is not filled.
        @raise RevisionCompacted: Changes after C{revision} are no longer in the window.
        """
        self._check_watchable(watch := CacheWatch(self, scope, match, sink))
        since = revision or self.revision
        if initial:
            since = self.revision
            for record in self._in_scope(scope, match):
                watch.send(ADDED, record, None)
        # A sink may change objects; those changes come in the next round.
        past_events = self._events_after(since)
        while past_events:
            since = past_events[-1].revision
            for event in past_events:
                if watch.covers(event.record.key):
                    watch.send_filtered(event)
            past_events = self._events_after(since)
        watch.since = since
        self._watches[scope] = (*self._watches.get(scope, ()), watch)
        return watch

    def watch_paced(
        self,
        scope: str,
        *,
        sink: IPacedSink,
        match: Match | None = None,
        revision: int = 0,
        initial: bool = False,
        equalities: Sequence[Equality] = (),
    ) -> PacedWatch:
        """
        Do the same as L{watch}, but send nothing before L{PacedWatch.resume}, and then no more than C{sink} accepts.

        Changes that the window has dropped are read from a backend that keeps them.

        @param scope: See L{watch}; likewise for the other parameters.
        @param equalities: The values that C{match} requires, for an index of the present state.
        @raise StorageUnavailable: The cache is not filled.
        @raise RevisionCompacted: Changes after C{revision} are compacted.
        """
        watch = PacedWatch(self, scope, match, sink, revision or self.revision, initial, equalities)
        self._check_watchable(watch)
        if not initial and revision and revision < self.revision:
            compacted = self._backend.compacted
            self._window.forget(compacted)
            oldest = compacted if self._past_reader.available else self._window.oldest
            if revision < oldest:
                raise RevisionCompacted(revision, oldest)
        self._watches[scope] = (*self._watches.get(scope, ()), watch)
        return watch

    def _check_watchable(self, watch: CacheWatch) -> None:
        if not self.ready:
            raise StorageUnavailable(f"the cache of {self.prefix} is not filled")
        if self.unreadable and self.unreadable.any_covered(watch.covers):
            raise StorageUnavailable(f"not everything in {self.prefix} can be read")

    def call_later(self, call: Callable[[], object]) -> None:
        """Call a function in the next turn of the reactor."""
        self._clock.callLater(0, call)

    def changes_after(self, revision: int, max_events: int) -> Sequence[CacheEvent]:
        """
        Return some events after C{revision}, and all of their revisions.

        @raise RevisionCompacted: The window has dropped them.
        """
        self._window.forget(self._backend.compacted)
        return self._window.some_after(revision, max_events)

    def records_after(self, scope: str, key: str, equalities: Sequence[Equality] = ()) -> Sequence[Record]:
        """See L{EventSource.records_after<kubetwist.storage.cache.watches.EventSource.records_after>}."""
        if scope and scope[-1] != "/":
            record = self._table.get(scope)
            return [record] if record is not None and not key else []
        found = self._indexes.find(self._table, equalities) if equalities else None
        records = next((self._table if found is None else found).batches(scope, key), [])
        self.metrics.fetched += len(records)
        return records

    async def read_past(self, revision: int) -> tuple[Sequence[CacheEvent], int]:
        """See L{PastReader.read}; reads up to the beginning of the window."""
        return await self._past_reader.read(revision, self._window.oldest)

    def suspend_watch(self, watch: PacedWatch) -> None:
        """Stop sending to C{watch}, and set the revision after which it begins when it is resumed."""
        watch.suspended_at(self.delivered_revision)

    def _in_scope(self, scope: str, match: Match | None) -> Sequence[Record]:
        if not scope or scope[-1] == "/":
            return self.list(scope, match=match).records
        record = self.get(scope)
        return [record] if record is not None and (match is None or match(record)) else []

    def remove_watch(self, watch: CacheWatch) -> None:
        """Send no more events to a watch."""
        rest = tuple(other for other in self._watches.get(watch.scope, ()) if other is not watch)
        if rest:
            self._watches[watch.scope] = rest
        else:
            self._watches.pop(watch.scope, None)
