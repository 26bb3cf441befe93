"""
The base class of stores in this process: everything except the storage of the bytes.

The newest I{submitted} revision of every key is in memory, so that preconditions are checked immediately in the
reactor thread, and revisions are assigned in the order of submission. A store then makes the transactions durable in
that order and calls L{EmbeddedStorage.finish} or L{EmbeddedStorage.fail_pending}.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import ClassVar, Final

from twisted.internet.defer import Deferred, fail
from twisted.logger import Logger
from twisted.python.failure import Failure

from ..api.storage import (
    StorageEvent,
    Write,
)
from ._expiry import (
    ExpirationQueue,
    Timer,
)
from ._observers import Observers
from ._sortedkeys import SortedKeys
from .errors import (
    FutureRevision,
    InvalidArgument,
    KeyExists,
    KeyNotFound,
    OutcomeUnknown,
    RevisionCompacted,
    RevisionConflict,
    StorageError,
    StorageUnavailable,
    StorageUnwritable,
)

#: The revision of a store without any write: objects start at 2, as etcd makes them; 0 and 1 mean other things.
FIRST_REVISION: Final = 1
#: Seconds until the deletion of an expired key that could not be written is tried again.
RETRY_EXPIRY: Final = 10.0


class State(Enum):
    """The state of a store: new, open or closed."""

    NEW = "is not open yet"
    OPEN = "is open"
    CLOSED = "is closed"


class Transaction:
    """
    A batch of writes that were submitted and are not durable yet.

    @ivar expiration_times: When each event's key is due, in the order of C{events}; L{None} when none is.
    @ivar rejected: Writes whose preconditions failed because of a pending write; they fail after this transaction.
    """

    __slots__ = ("events", "expiration_times", "rejected", "result", "revision")

    def __init__(self, revision: int, events: list[StorageEvent], expiration_times: list[float | None] | None) -> None:
        self.revision = revision
        self.events = events
        self.expiration_times = expiration_times
        self.result: Deferred[int] = Deferred()
        self.rejected: list[tuple[Deferred[int], StorageError]] | None = None


class EmbeddedStorage:
    """
    The base of L{kubetwist.storage.memory.MemoryStorage} and L{kubetwist.storage.sqlite._storage.SQLiteStorage}.

    A store calls L{initialize} when it is open, overrides L{submit}, and calls L{finish} or L{fail_pending} in the
    reactor's thread.

    @cvar shared: See L{kubetwist.interfaces.IStorageBackend}: always false, as one process has the store.
    @ivar name: The name of the store in messages.
    @ivar revision: See L{kubetwist.interfaces.IStorageBackend}.
    @ivar compacted: See L{kubetwist.interfaces.IStorageBackend}.
    """

    _log = Logger()
    shared: ClassVar[bool] = False

    def __init__(self, clock: Timer, name: str) -> None:
        self.name = name
        self.revision = FIRST_REVISION
        self.compacted = 0
        self._clock = clock
        self._state = State.NEW
        self._submitted = self.revision
        self._latest_revisions: dict[str, int] = {}
        #: The keys of C{_latest_revisions}, in order.
        self._keys = SortedKeys()
        self._pending: deque[Transaction] = deque()
        self._finished: deque[list[Transaction]] = deque()
        self._finishing = False
        self._observers = Observers()
        self._expiry = ExpirationQueue(clock, self._expire)

    # --- for stores

    def submit(self, transaction: Transaction) -> None:
        """Make a transaction durable; later ones must not be durable before it."""
        raise NotImplementedError

    def initialize(self, latest_revisions: dict[str, int], revision: int, compacted: int) -> None:
        """
        Take over the state that was read at the start, and accept writes.

        @param latest_revisions: The revision of the newest write by key, without deleted keys.
        @param revision: The newest revision.
        @param compacted: The revision before which states cannot be read.
        """
        self._latest_revisions = latest_revisions
        self._keys = SortedKeys(latest_revisions)
        self.revision = self._submitted = revision
        self.compacted = compacted
        self._state = State.OPEN

    def finish(self, batch: list[Transaction]) -> None:
        """Notify observers, then writers, that the oldest pending transactions are durable."""
        self._finished.append(batch)
        if self._finishing:
            # An observer wrote, and the write was durable immediately: all observers must get the first events first.
            return
        self._finishing = True
        try:
            while self._finished:
                self._deliver(self._finished.popleft())
        finally:
            self._finishing = False

    def _deliver(self, batch: list[Transaction]) -> None:
        events: list[StorageEvent] = []
        expiry, expires = self._expiry, self._expiry.expires
        for transaction in batch:
            self._pending.popleft()
            events += transaction.events
            expiration_times = transaction.expiration_times
            expires = expires or expiration_times is not None
            if expires:
                for index, event in enumerate(transaction.events):
                    expiry.update(event.key, expiration_times[index] if expiration_times else None, event.revision)
        self.revision = batch[-1].revision
        self._observers.deliver(events, self.revision)
        for transaction in batch:
            transaction.result.callback(transaction.revision)
            for result, precondition_error in transaction.rejected or ():
                result.errback(precondition_error)

    def fail_pending(self, reason: Exception) -> None:
        """
        Fail all pending writes: all may depend on the oldest, which failed.

        @param reason: L{OutcomeUnknown} if some of the writes may be durable; for other reasons they fail with
            L{StorageUnavailable}.
        """

        def failure() -> StorageError:
            if isinstance(reason, StorageUnwritable):
                return StorageUnwritable(reason.path, reason.reason)
            kind = OutcomeUnknown if isinstance(reason, OutcomeUnknown) else StorageUnavailable
            return kind(str(reason))

        failed, self._pending = self._pending, deque()
        for transaction in reversed(failed):
            for event in transaction.events:
                if event.previous:
                    self._latest_revisions[event.key] = event.previous
                    self._keys.add(event.key)
                else:
                    self._latest_revisions.pop(event.key, None)
                    self._keys.discard(event.key)
        for transaction in failed:
            transaction.result.errback(failure())
            for result, _ in transaction.rejected or ():
                result.errback(failure())

    # --- writing

    def commit(self, writes: Sequence[Write]) -> Deferred[int]:
        """See L{kubetwist.interfaces.IStorageBackend.commit}."""
        if self._state is not State.OPEN:
            return fail(StorageUnavailable(f"{self.name} {self._state.value}"))
        # Most transactions have one key, in ASCII.
        if len(writes) != 1 or not writes[0].key.isascii():
            error = self._invalid_transaction_error(writes)
            if error is not None:
                return fail(error)
        precondition_error = self._check_preconditions(writes)
        if precondition_error is not None:
            return self._reject(precondition_error)
        latest_revisions = self._latest_revisions
        revision = self._submitted = self._submitted + 1
        events = []
        expiration_times: list[float | None] | None = None
        for write in writes:
            key = write.key
            previous = latest_revisions.get(key, 0)
            events.append(StorageEvent(key, write.value, revision, previous, write.attachment))
            if write.value is None:
                del latest_revisions[key]
                self._keys.discard(key)
            else:
                latest_revisions[key] = revision
                if not previous:
                    self._keys.add(key)
                if write.ttl is not None and expiration_times is None:
                    expiration_times = [
                        None if other.ttl is None or other.value is None else self._clock.seconds() + other.ttl
                        for other in writes
                    ]
        transaction = Transaction(revision, events, expiration_times)
        self._pending.append(transaction)
        self.submit(transaction)
        return transaction.result

    def _invalid_transaction_error(self, writes: Sequence[Write]) -> InvalidArgument | None:
        """Return the error of an invalid transaction, which must not fail the other transactions of its batch."""
        return invalid_transaction_error(writes)

    def _check_preconditions(self, writes: Sequence[Write]) -> StorageError | None:
        for write in writes:
            key, expected = write.key, write.expected
            existing = self._latest_revisions.get(key, 0)
            if expected is None:
                if write.value is None and not existing:
                    return KeyNotFound(key, self._submitted)
            elif expected != existing:
                if not existing:
                    return KeyNotFound(key, self._submitted)
                return RevisionConflict(key, existing) if expected else KeyExists(key, existing)
            elif not existing and write.value is None:
                return KeyNotFound(key, self._submitted)
        return None

    def _reject(self, precondition_error: StorageError) -> Deferred[int]:
        if not self._pending:
            return fail(precondition_error)
        newest = self._pending[-1]
        if newest.rejected is None:
            newest.rejected = []
        result: Deferred[int] = Deferred()
        newest.rejected.append((result, precondition_error))
        return result

    def _expire(self, key: str, revision: int) -> None:
        def failed(failure: Failure) -> None:
            if failure.check(StorageUnavailable) and self._state is State.OPEN:
                self._expiry.retry(key, revision, RETRY_EXPIRY)
            elif not failure.check(StorageError):
                self._log.failure("an expired key could not be deleted", failure)

        self.commit([Write(key, None, revision)]).addErrback(failed)

    # --- the committed state

    def list_expirations(self) -> dict[str, float]:
        """Return the wall time at which keys with a time to live expire."""
        return self._expiry.list_expirations()

    async def expiration_times(self, prefix: str) -> dict[str, float]:
        """See L{kubetwist.interfaces.IExpiringStorage.expiration_times}."""
        return {key: when for key, when in self.list_expirations().items() if key.startswith(prefix)}

    def _pending_revisions(self) -> dict[str, int]:
        """Return the keys that pending transactions write, with their committed revisions; 0 for absent keys."""
        committed: dict[str, int] = {}
        for transaction in self._pending:
            for event in transaction.events:
                committed.setdefault(event.key, event.previous)
        return committed

    def _committed_revision(self, key: str) -> int:
        """Return the newest committed revision of a key; 0 if it does not exist."""
        for transaction in self._pending:
            for event in transaction.events:
                if event.key == key:
                    return event.previous
        return self._latest_revisions.get(key, 0)

    def _committed_keys(self, prefix: str, start: str = "") -> Iterator[tuple[str, int]]:
        """Return the keys below C{prefix} from C{start} on, in order, with their committed revisions."""
        latest_revisions, unsettled = self._latest_revisions, self._pending_revisions()
        first = max(prefix, start)
        keys = self._keys.between(first, prefix_end(prefix))
        # Keys under deletion are no heads any more, but still exist.
        leaving = sorted(
            key
            for key, revision in unsettled.items()
            if revision and key not in latest_revisions and key >= first and key.startswith(prefix)
        )
        for key in heapq.merge(keys, leaving) if leaving else keys:
            revision = unsettled.get(key)
            if revision is None:
                revision = latest_revisions[key]
            if revision:
                yield key, revision

    def _resolve_revision(self, revision: int) -> int:
        """
        Return the revision to read at; 0 asks for the newest.

        @raise StorageUnavailable: The store is not open.
        @raise RevisionCompacted: It is compacted.
        @raise FutureRevision: It is in the future.
        """
        self._check(revision or self.revision)
        return revision or self.revision

    def _check(self, revision: int) -> None:
        if self._state is not State.OPEN:
            raise StorageUnavailable(f"{self.name} {self._state.value}")
        if revision > self.revision:
            raise FutureRevision(revision, self.revision)
        if revision < self.compacted:
            raise RevisionCompacted(revision, self.compacted)


def invalid_transaction_error(writes: Sequence[Write]) -> InvalidArgument | None:
    """
    Return the error for writes that are no valid transaction.

    @return: The error; L{None} if they are valid.
    """
    if not writes or (len(writes) > 1 and len({write.key for write in writes}) < len(writes)):
        return InvalidArgument("a transaction writes at least one key, and none twice")
    for write in writes:
        if not write.key.isascii():
            try:
                write.key.encode()
            except UnicodeEncodeError as error:
                return InvalidArgument(f"a key cannot be encoded: {error}")
    return None


def prefix_end(prefix: str) -> str:
    """
    Return the first key behind those below C{prefix}.

    @raise InvalidArgument: It is empty.
    """
    if not prefix:
        raise InvalidArgument("a prefix is not empty")
    return prefix[:-1] + chr(ord(prefix[-1]) + 1)
