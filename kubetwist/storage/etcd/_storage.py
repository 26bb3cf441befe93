"""
The storage in etcd, which several servers share, with the layout of keys and values of kube-apiserver.

Writes are transactions that compare revisions, sent immediately. The events of all writers are read from one watch
(L{kubetwist.storage.etcd._watch}). A write is acknowledged when the watch has reached its revision.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from itertools import count
from typing import ClassVar, Final

from txaioetcd import KeySet, KeyValue, Range

from twisted.internet.defer import Deferred, DeferredList, fail, succeed
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from ...api.storage import (
    UNKNOWN_REVISION,
    History,
    Page,
    StorageEvent,
    StoredValue,
    Write,
)
from ...interfaces import (
    IExpiringStorage,
    ISharedStorage,
    IStorageHistory,
    IStorageObserver,
    IStorageWatch,
)
from .._observers import (
    Observers,
    Watch,
)
from ..embedded import (
    State,
    invalid_transaction_error,
    prefix_end,
)
from ..errors import (
    FutureRevision,
    KeyNotFound,
    RevisionCompacted,
    StorageError,
    StorageUnavailable,
)
from ._commit import Committer
from ._compaction import (
    COMPACTED_KEY,
    CompactionElection,
    parse_compact_revision,
)
from ._errors import RPCError
from ._expiry import read_expiration_times
from ._history import (
    find_compacted,
    read_history,
    read_past,
)
from ._leases import Leases
from ._values import (
    WatchEvent,
    key_bytes,
    key_text,
)
from ._watch import ResumableWatch
from .client import EtcdClient

#: Seconds that the start waits for etcd, and seconds between two attempts.
START_TIMEOUT: Final = 60.0
START_INTERVAL: Final = 1.0
#: Seconds that a watch may lag behind a known revision before another member is used.
WATCH_STALL_TIMEOUT: Final = 1.0
#: The number of checks in that time.
CHECKS: Final = 4
#: Seconds that a write waits for the watch to reach its revision; then it is acknowledged nevertheless.
OBSERVE_TIMEOUT: Final = 3.0
#: Seconds without a message of the watch after which the newest revision is requested.
PROBE_INTERVAL: Final = 2.0
#: Seconds that the store waits for writes under way when it is closed.
CLOSE_TIMEOUT: Final = 10.0

#: The page size of reads: the first one, and the maximum; in between, it follows from the size of the values.
PAGE_FIRST: Final = 100
PAGE_MAX: Final = 1000
PAGE_BYTES: Final = 2 << 20


def _stored_value(found: KeyValue) -> StoredValue:
    return StoredValue(key_text(found.key), found.value or b"", found.mod_revision)


@implementer(ISharedStorage, IStorageHistory, IExpiringStorage)
class EtcdStorage:
    """
    L{ISharedStorage} in etcd.

    @ivar revision: The revision that the watch has reached, see L{IStorageBackend}.
    @ivar compacted: See L{IStorageBackend}.
    @ivar client: The client of etcd.
    """

    _log = Logger()
    shared: ClassVar[bool] = True

    #: The name of the storage in spans.
    system: ClassVar[str] = "etcd"

    def __init__(
        self,
        client: EtcdClient,
        reactor: IReactorTime,
        *,
        lease_reuse: float = 60.0,
        start_timeout: float = START_TIMEOUT,
    ) -> None:
        """
        @param lease_reuse: Maximum number of seconds for which a lease is used for new keys.
        @param start_timeout: Seconds that L{open} waits for etcd.
        """
        self.client = client
        self.revision = 0
        self.compacted = 0
        self._reactor = reactor
        self._start_timeout = start_timeout
        self._state = State.NEW
        self._observers = Observers()
        self._starting: set[Watch] = set()
        self._committer = Committer(client, reactor, Leases(client, reactor, lease_reuse), self._written)
        self._watch_client = ResumableWatch(client, reactor, self._changed, self._handle_compacted)
        #: The readers that wait for the watch: the revision, and the deadline.
        self._waiting: list[tuple[int, int, float, Deferred[bool]]] = []
        self._waiter_ids = count()
        #: The newest revision in any response so far.
        self._store_revision = 0
        self._check: IDelayedCall | None = None
        #: The revision of the watch at the last check, and the number of checks since it changed.
        self._checked = (0, 0)
        self._probing: IDelayedCall | None = None
        self._last_message_at = 0.0
        self._request_pending = False
        self._revision_waiters: list[Deferred[int]] = []
        self._compaction_election = CompactionElection(client)

    # --- start and stop

    async def open(self) -> None:
        """See L{IStorageBackend.open}."""
        if self._state is not State.NEW:
            raise StorageUnavailable("the store in etcd was opened before")
        started_at = self._reactor.seconds()
        warned = False
        while True:
            try:
                revision = await self.client.revision()
                self.compacted = await find_compacted(self.client)
                break
            except (StorageError, RPCError) as error:
                if self._reactor.seconds() - started_at >= self._start_timeout:
                    self.client.close()
                    raise StorageUnavailable(f"no etcd at {self.client.endpoints}: {error}") from None
                if not warned:
                    self._log.warn(
                        "waiting for etcd at {members}: {reason}", members=self.client.endpoints, reason=error
                    )
                    warned = True
            pause: Deferred[None] = Deferred()
            self._reactor.callLater(START_INTERVAL, pause.callback, None)
            await pause
            if self._state is not State.NEW:
                raise StorageUnavailable("the store in etcd is closed")
        self._state = State.OPEN
        self.revision = self._store_revision = revision
        self._watch_client.start(revision)
        self._last_message_at = self._reactor.seconds()
        self._probing = self._reactor.callLater(PROBE_INTERVAL, self._probe)

    async def close(self) -> None:
        """See L{IStorageBackend.close}."""
        if self._state is State.CLOSED:
            return
        previous_state, self._state = self._state, State.CLOSED
        if previous_state is State.OPEN:
            in_progress = DeferredList([commit.when_finished() for commit in self._committer.in_progress()])
            close_timeout = self._reactor.callLater(CLOSE_TIMEOUT, in_progress.cancel)
            await in_progress
            if close_timeout.active():
                close_timeout.cancel()
        for call in (self._probing, self._check):
            if call is not None and call.active():
                call.cancel()
        self._watch_client.stop()
        self._wake_waiters(None)
        self.client.close()

    @property
    def closed(self) -> bool:
        """Return whether it was closed."""
        return self._state is State.CLOSED

    def _check_open(self) -> None:
        if self._state is not State.OPEN:
            raise StorageUnavailable(f"the store in etcd {self._state.value}")

    # --- writing

    def commit(self, writes: Sequence[Write]) -> Deferred[int]:
        """See L{IStorageBackend.commit}."""
        error = invalid_transaction_error(writes)
        if error is not None:
            return fail(error)
        if self._state is not State.OPEN:
            return fail(StorageUnavailable(f"the store in etcd {self._state.value}"))
        return self._committer.submit(writes)

    def _written(self, revision: int) -> Deferred[bool]:
        """Handle a written C{revision}; fires as L{_wait_observed}."""
        self._record_store_revision(revision)
        return self._wait_observed(revision)

    async def compact(self, revision: int) -> None:
        """See L{IStorageBackend.compact}."""
        self._check_open()
        if revision <= self.compacted:
            return
        try:
            await self.client.compact(revision)
        except RPCError as error:
            if error.future:
                raise FutureRevision(revision, self.revision) from None
            if not error.compacted:
                raise StorageUnavailable(str(error)) from None
            self.compacted = max(self.compacted, await find_compacted(self.client))
            return
        self.compacted = max(self.compacted, revision)

    async def claim_compaction(self, revision: int) -> bool:
        """See L{ISharedStorage.claim_compaction}."""
        self._check_open()
        return await self._compaction_election.try_claim(revision)

    # --- reading

    async def current_revision(self) -> int:
        """See L{ISharedStorage.current_revision}. Concurrent calls share one request."""
        self._check_open()
        response: Deferred[int] = Deferred()
        self._revision_waiters.append(response)
        if not self._request_pending:
            self._request_revision_soon()
        return await response

    def _request_revision_soon(self) -> None:
        """Request the revision at the end of this turn: requests until then share the response."""
        self._request_pending = True
        self._reactor.callLater(0, self._request_revision)

    def _request_revision(self) -> None:
        """Request the revision for all waiting readers; readers that come during the request get the next one."""
        waiters, self._revision_waiters = self._revision_waiters, []

        def answered(result: int | Failure) -> None:
            self._request_pending = False
            if isinstance(result, int):
                self._record_store_revision(result)
            elif result.check(RPCError):
                result = Failure(StorageUnavailable(str(result.value)))
            if self._revision_waiters:
                self._request_revision_soon()
            for waiter in waiters:
                waiter.callback(result)

        self.client.request_revision_now().addBoth(answered)

    async def read(self, key: str) -> StoredValue:
        """See L{IStorageBackend.read}."""
        self._check_open()
        result = await self._range(KeySet(key_bytes(key)))
        if not result.kvs:
            raise KeyNotFound(key, result.header.revision)
        return _stored_value(result.kvs[0])

    async def read_page(self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0) -> Page:
        """
        See L{IStorageBackend.read_page}.

        @param prefix: The prefix of the keys.
        @param start: The first key to read; C{""} begins with the prefix.
        @param limit: Maximum number of values; 0 for all.
        @param revision: The revision to read at; 0 for the newest.
        """
        self._check_open()
        end = key_bytes(prefix_end(prefix))
        following = key_bytes(max(prefix, start))
        items: list[StoredValue] = []
        page_size = PAGE_FIRST
        while True:
            page_limit = min(limit - len(items), page_size) if limit else page_size
            result = await self._range(KeySet(following, range_end=end), page_limit, revision)
            revision = revision or result.header.revision
            values = [_stored_value(found) for found in result.kvs]
            items += values
            more = result.count > len(values)
            if not more or not values or len(items) == limit:
                return Page(items, revision, more)
            following = result.kvs[-1].key + b"\0"
            size = sum(len(value.value) for value in values) // len(values) + 1
            page_size = max(1, min(PAGE_BYTES // size, page_size * 4, PAGE_MAX))

    async def expiration_times(self, prefix: str) -> dict[str, float]:
        """See L{IExpiringStorage.expiration_times}."""
        self._check_open()
        return await read_expiration_times(self.client, prefix, self._reactor.seconds())

    async def _range(self, keys: KeySet, limit: int = 0, revision: int = 0) -> Range:
        try:
            result = await self.client.get(keys, limit=limit, revision=revision)
        except RPCError as error:
            if error.compacted:
                self.compacted = max(self.compacted, await find_compacted(self.client))
                raise RevisionCompacted(revision, self.compacted) from None
            if error.future:
                raise FutureRevision(revision, self.revision) from None
            raise StorageUnavailable(str(error)) from None
        self._record_store_revision(result.header.revision)
        return result

    # --- watching

    async def watch(self, prefix: str, revision: int, observer: IStorageObserver) -> IStorageWatch:
        """See L{IStorageBackend.watch}."""
        self._check_open()
        while revision > self.revision:
            # Without a timeout: a client that has seen newer state must not get older state.
            current = await self.current_revision()
            if revision > current:
                raise FutureRevision(revision, current)
            await self._wait_observed(revision)
        if revision < self.compacted:
            raise RevisionCompacted(revision, self.compacted)
        watch = self._observers.add(prefix, observer)
        if revision < self.revision:
            until = self.revision
            watch.hold()
            self._starting.add(watch)
            try:
                past = await read_history(self.client, prefix, revision, until)
            except BaseException:
                watch.stop()
                raise
            finally:
                self._starting.discard(watch)
            if not watch.active:
                raise RevisionCompacted(revision, self.compacted)
            watch.catch_up(past, self.revision)
        return watch

    async def read_changes(self, prefix: str, after: int, until: int, max_changes: int, max_bytes: int) -> History:
        """
        See L{IStorageHistory.read_changes}.

        @param prefix: The prefix of the keys.
        @param after: The revision after which changes are read.
        @param until: The last revision to read, greater than C{after}.
        @param max_changes: Approximate maximum number of changes.
        @param max_bytes: Approximate maximum size of their values, in bytes.
        """
        self._check_open()
        if after < self.compacted:
            raise RevisionCompacted(after, self.compacted)
        return await read_past(self.client, prefix, after, until, max_changes, max_bytes)

    def _changed(self, changes: list[WatchEvent]) -> None:
        """Handle new events of the watch."""
        attachment = self._committer.attachment
        events = []
        for change in changes:
            key, value, revision = key_text(change.key), change.new_value, change.mod_revision
            previous = 0 if change.created else UNKNOWN_REVISION
            events.append(StorageEvent(key, value, revision, previous, attachment(key, value, revision)))
        for event in events:
            if event.key == COMPACTED_KEY:
                self.compacted = max(self.compacted, parse_compact_revision(event.value))
        self.revision = events[-1].revision
        self._last_message_at = self._reactor.seconds()
        self._observers.deliver(events, self.revision)
        self._wake_waiters(self.revision)

    def _handle_compacted(self, compacted: int) -> None:
        """End the watches, as the next events are compacted: the observers list again."""
        self.compacted = max(self.compacted, compacted)
        self._restart_watch(RevisionCompacted(self.revision + 1, compacted))

    def _restart_watch(self, reason: StorageError) -> None:
        if self._state is not State.OPEN:
            return
        self._watch_client.stop()

        def known(revision: int) -> None:
            if self._state is State.OPEN:
                self.revision = self._store_revision = revision
                self._committer.watch_restarts += 1
                self._watch_client.start(revision)
                self._observers.end(reason, self._starting)
                self._wake_waiters(None)

        def failed(failure: Failure) -> None:
            self._log.warn("cannot read the revision of etcd, retrying: {reason}", reason=failure.getErrorMessage())
            self._reactor.callLater(START_INTERVAL, self._restart_watch, reason)

        self.client.revision().addCallbacks(known, failed)

    # --- progress of the watch

    def _wait_observed(self, revision: int) -> Deferred[bool]:
        """
        Wait until observers have seen everything up to C{revision}.

        @return: Fires with whether they have; with false after a timeout.
        """
        if revision <= self.revision:
            return succeed(True)
        response: Deferred[bool] = Deferred()
        until = self._reactor.seconds() + OBSERVE_TIMEOUT
        heapq.heappush(self._waiting, (revision, next(self._waiter_ids), until, response))
        return response

    def _wake_waiters(self, revision: int | None) -> None:
        waiting = self._waiting
        while waiting and (revision is None or waiting[0][0] <= revision):
            heapq.heappop(waiting)[3].callback(revision is not None)

    def _record_store_revision(self, revision: int) -> None:
        """Note that the store has reached C{revision}."""
        if revision > self._store_revision:
            self._store_revision = revision
        if revision > self.revision and (self._check is None or not self._check.active()):
            self._checked = (self.revision, 0)
            self._check = self._reactor.callLater(WATCH_STALL_TIMEOUT / CHECKS, self._check_progress)

    def _check_progress(self) -> None:
        now = self._reactor.seconds()
        if self._state is not State.OPEN or self.revision >= self._store_revision:
            return
        before, checks = self._checked
        # Counted, not timed: after a blocked turn of the reactor, received data of the watch may not be read yet.
        self._checked = (self.revision, checks + 1 if self.revision == before else 0)
        if self._checked[1] >= CHECKS:
            self._checked = (self.revision, 0)
            self._watch_client.retry_other_member(
                f"it is at revision {self.revision}, the store at {self._store_revision}"
            )
        late = [one for one in self._waiting if one[2] <= now]
        if late:
            self._waiting = [one for one in self._waiting if one[2] > now]
            heapq.heapify(self._waiting)
            for _, _, _, response in late:
                response.callback(False)
        self._check = self._reactor.callLater(WATCH_STALL_TIMEOUT / CHECKS, self._check_progress)

    def _probe(self) -> None:
        """Check whether the watch is silent because there are no events."""

        def schedule(result: object) -> None:
            if self._state is State.OPEN:
                self._probing = self._reactor.callLater(PROBE_INTERVAL, self._probe)

        if self._reactor.seconds() - self._last_message_at < PROBE_INTERVAL:
            schedule(None)
            return
        Deferred.fromCoroutine(self._probe_once()).addErrback(self._probe_failed).addBoth(schedule)

    async def _probe_once(self) -> None:
        before = self.revision
        revision = await self.current_revision()
        if revision < before:
            self._log.error(
                "the data of etcd were replaced: revision={revision} previous_revision={before}",
                revision=revision,
                before=before,
            )
            self._restart_watch(StorageUnavailable("the data of etcd were replaced"))

    def _probe_failed(self, failure: Failure) -> None:
        if not failure.check(StorageError, RPCError):
            self._log.failure("cannot read the revision of etcd", failure)
