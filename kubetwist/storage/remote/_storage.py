"""
The storage of a front process: the backend of the storage process, over a connection.

The storage process sends all changes in their order, and each front passes them to the watches of its caches. A write
is answered after its changes. A read is consistent if the caches have reached the newest revision, which is read from
shared memory or, if other servers use the storage too, requested once for all reads of an iteration of the reactor.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import ClassVar, Final, TypeVar

from twisted.internet.defer import CancelledError, Deferred, fail
from twisted.internet.interfaces import IAddress, IDelayedCall, IProtocol, IReactorTime, IStreamClientEndpoint
from twisted.internet.protocol import Factory
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from ...api.storage import (
    History,
    Page,
    StorageEvent,
    StoredValue,
    Write,
)
from ...interfaces import (
    IExpiringStorage,
    IImmediateRevision,
    IProbedStorage,
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
)
from ..errors import (
    FutureRevision,
    InvalidArgument,
    OutcomeUnknown,
    RevisionCompacted,
    StorageError,
    StorageUnavailable,
    WatchInterrupted,
)
from ._client import PendingTransaction, StorageClient
from ._frames import ProtocolError
from ._messages import (
    WATCHED_PREFIX,
    Welcome,
    decode_events,
)
from ._outcomes import events_by_key, find_outcome
from ._requests import (
    SINGLE_PART,
    Method,
    Request,
    decode_changes,
    decode_expirations,
    decode_number,
    decode_page_part,
    decode_stored_value,
)

T = TypeVar("T")

#: Seconds that the start waits for the storage process.
START_TIMEOUT: Final = 60.0
#: Seconds until a lost connection is established again: the first delay, and the maximum.
RETRY_FIRST: Final = 0.05
RETRY_MAX: Final = 2.0
#: Seconds that the store waits for writes under way when it is closed.
CLOSE_TIMEOUT: Final = 10.0
#: Seconds after the loss of a connection until the outcome of its transactions is reported as unknown.
OUTCOME_TIMEOUT: Final = 10.0


@implementer(ISharedStorage, IImmediateRevision, IStorageHistory, IExpiringStorage, IProbedStorage)
class RemoteStorage:
    """
    L{ISharedStorage} in another process.

    A lost connection is established again. The watches continue with the changes since then; if these are compacted,
    the watches end.

    @ivar revision: The newest revision whose changes were received, see L{kubetwist.interfaces.IStorageBackend}.
    @ivar compacted: See L{kubetwist.interfaces.IStorageBackend}.
    """

    _log = Logger()
    #: The name of the storage in spans.
    system: ClassVar[str] = "storage process"
    shared: ClassVar[bool] = True

    def __init__(
        self, endpoint: IStreamClientEndpoint, reactor: IReactorTime, *, start_timeout: float = START_TIMEOUT
    ) -> None:
        """
        @param endpoint: Connects to the storage process.
        @param start_timeout: Seconds that L{open} waits for the storage process.
        """
        self.revision = 0
        self.compacted = 0
        self._endpoint = endpoint
        self._reactor = reactor
        self._start_timeout = start_timeout
        self._state = State.NEW
        #: The connection, when it can be used.
        self._client: StorageClient | None = None
        #: The connection from its establishment on, and its attributes.
        self._connection: StorageClient | None = None
        self._welcome: Welcome | None = None
        self._opening: Deferred[None] | None = None
        self._connecting: Deferred[IProtocol] | None = None
        self._retry: IDelayedCall | None = None
        self._delay = RETRY_FIRST
        self._unavailable = "the connection to the storage process is not established"
        self._observers = Observers()
        self._starting: set[Watch] = set()
        #: What was received while the changes since the loss of a connection are read.
        self._held: list[Callable[[], None]] | None = None
        #: The transactions of lost connections, and the call that ends them.
        self._unresolved: list[PendingTransaction] = []
        self._outcome_timeout: IDelayedCall | None = None
        #: The readers that wait for a revision.
        self._waiting: list[tuple[int, int, Deferred[None]]] = []
        self._waiter_ids = count()
        self._revision_waiters: list[Deferred[int]] = []
        self._revision_requested = False

    # --- start and stop

    async def open(self) -> None:
        """See L{kubetwist.interfaces.IStorageBackend.open}."""
        if self._state is not State.NEW or self._opening is not None:
            raise StorageUnavailable("the remote storage was opened before")
        opening: Deferred[None] = Deferred()
        self._opening = opening
        timeout = self._reactor.callLater(self._start_timeout, opening.cancel)
        self._connect()
        try:
            await opening
        except CancelledError:
            error = StorageUnavailable(f"the storage process does not answer: {self._unavailable}")
            await self.close()
            raise error from None
        finally:
            if timeout.active():
                timeout.cancel()

    async def close(self) -> None:
        """See L{kubetwist.interfaces.IStorageBackend.close}."""
        if self._state is State.CLOSED:
            return
        self._state = State.CLOSED
        client, self._client = self._client, None
        connection, self._connection = self._connection, None
        self._unavailable = "the remote storage is closed"
        for call in (self._retry, self._outcome_timeout):
            if call is not None and call.active():
                call.cancel()
        if self._connecting is not None:
            self._connecting.cancel()
        self._give_up_outcomes()
        self._fail_waiters()
        if client is not None:
            timeout = self._reactor.callLater(CLOSE_TIMEOUT, client.abort)
            await client.when_idle()
            client.close()
            await client.closed
            if timeout.active():
                timeout.cancel()
        elif connection is not None:
            connection.abort()

    def _connected_client(self) -> StorageClient:
        """
        Return the connection.

        @raise StorageUnavailable: There is none.
        """
        client = self._client
        if client is None:
            raise StorageUnavailable(self._unavailable)
        return client

    # --- the connection

    def _connect(self) -> None:
        def failed(failure: Failure) -> None:
            self._connect_later(failure.getErrorMessage())

        self._connecting = self._endpoint.connect(StorageClientFactory(self, self._reactor))
        self._connecting.addErrback(failed)

    def _connect_later(self, reason: str) -> None:
        if self._state is State.CLOSED:
            return
        self._unavailable = reason
        delay, self._delay = self._delay, min(self._delay * 2, RETRY_MAX)
        self._retry = self._reactor.callLater(delay, self._connect)

    def welcomed(self, client: StorageClient, welcome: Welcome) -> None:
        """See L{Follower.welcomed<kubetwist.storage.remote._client.Follower.welcomed>}."""
        if self._state is State.CLOSED:
            client.abort()
            return
        previous, self._welcome = self._welcome, welcome
        self._connection = client
        self._delay = RETRY_FIRST
        if self._opening is not None and previous is None:
            self.revision = welcome.revision
            self.compacted = max(self.compacted, welcome.compacted)
            self._state = State.OPEN
            self._client = client
            self._opening.callback(None)
            return
        self._log.info("connected to the storage process again: revision={revision}", revision=welcome.revision)
        self._held = []
        replaced = previous is None or previous.instance != welcome.instance
        resumed = Deferred.fromCoroutine(self._resume(client, welcome, replaced))
        resumed.addErrback(lambda failure: self._log.failure("cannot continue after a lost connection", failure))

    async def _resume(self, client: StorageClient, welcome: Welcome, replaced: bool) -> None:
        """Pass the changes since the loss of the connection to the watches, then use the connection."""
        missed: Sequence[StorageEvent] = ()
        reason: StorageError | None = None
        if welcome.revision < self.revision:
            self._log.error(
                "the data of the storage were replaced: revision={revision} previous_revision={before}",
                revision=welcome.revision,
                before=self.revision,
            )
            reason = StorageUnavailable("the data of the storage were replaced")
        elif welcome.revision > self.revision:
            try:
                missed = await self._read_events(client, WATCHED_PREFIX, self.revision, welcome.revision)
            except StorageError as error:
                reason = error
        if self._connection is not client:
            # It is lost again.
            return
        held, self._held = self._held or [], None
        self._client = client
        if reason is None:
            self.received(missed, welcome.revision, welcome.compacted)
        else:
            self._end_watches(welcome.revision, welcome.compacted, reason)
        self._resolve_outcomes(missed, complete=replaced and welcome.exclusive and reason is None)
        for call in held:
            call()

    def disconnected(self, client: StorageClient, reason: str) -> None:
        """See L{Follower.disconnected<kubetwist.storage.remote._client.Follower.disconnected>}."""
        is_current = client is self._connection
        if is_current:
            self._connection = self._client = self._held = None
            self._unavailable = reason
            self._log.warn("{reason}", reason=reason)
        unresolved: list[PendingTransaction] = []
        transactions, client.transactions = client.transactions, {}
        for transaction in transactions.values():
            if transaction.revision:
                transaction.result.callback(transaction.revision)
            elif transaction.sent and is_current:
                unresolved.append(transaction)
            else:
                kind = OutcomeUnknown if transaction.sent else StorageUnavailable
                transaction.result.errback(kind(reason))
        if unresolved:
            self._unresolved += unresolved
            if self._outcome_timeout is None or not self._outcome_timeout.active():
                self._outcome_timeout = self._reactor.callLater(OUTCOME_TIMEOUT, self._give_up_outcomes)
        self._fail_waiters()
        self._connect_later(reason)

    def _resolve_outcomes(self, events: Sequence[StorageEvent], *, complete: bool) -> None:
        """Answer the transactions of a lost connection, see L{find_outcome}."""
        unresolved, self._unresolved = self._unresolved, []
        if not unresolved:
            return
        if self._outcome_timeout is not None and self._outcome_timeout.active():
            self._outcome_timeout.cancel()
        by_key = events_by_key(events)
        for transaction in unresolved:
            try:
                revision = find_outcome(transaction.writes, by_key, complete=complete)
            except StorageError as error:
                transaction.result.errback(error)
            else:
                transaction.result.callback(revision)

    def _give_up_outcomes(self) -> None:
        unresolved, self._unresolved = self._unresolved, []
        for transaction in unresolved:
            transaction.result.errback(OutcomeUnknown(f"the outcome of a write is unknown: {self._unavailable}"))

    # --- changes

    def received(self, events: Sequence[StorageEvent], revision: int, compacted: int) -> None:
        """See L{Follower.received<kubetwist.storage.remote._client.Follower.received>}."""
        if self._held is not None:
            self._held.append(partial(self.received, events, revision, compacted))
            return
        self.revision = revision
        self.compacted = max(self.compacted, compacted)
        self._observers.deliver(events, revision)
        waiting = self._waiting
        while waiting and waiting[0][0] <= revision:
            heapq.heappop(waiting)[2].callback(None)

    def lost(self, revision: int, compacted: int) -> None:
        """See L{Follower.lost<kubetwist.storage.remote._client.Follower.lost>}."""
        if self._held is not None:
            self._held.append(partial(self.lost, revision, compacted))
            return
        self._end_watches(revision, compacted, WatchInterrupted())

    def _end_watches(self, revision: int, compacted: int, reason: StorageError) -> None:
        """End all watches, as changes up to C{revision} are missing: their observers list again."""
        self.revision = revision
        self.compacted = max(self.compacted, compacted)
        starting = self._starting
        self._observers.end(reason, starting)
        waiting, self._waiting = self._waiting, []
        for _, _, waiter in waiting:
            waiter.callback(None)

    def _fail_waiters(self) -> None:
        waiting, self._waiting = self._waiting, []
        for _, _, waiter in waiting:
            waiter.errback(StorageUnavailable(self._unavailable))

    def _wait_observed(self, revision: int) -> Deferred[None]:
        """Return a Deferred that fires when the changes up to C{revision} are received, or lost."""
        waiter: Deferred[None] = Deferred()
        heapq.heappush(self._waiting, (revision, next(self._waiter_ids), waiter))
        return waiter

    # --- writing

    def commit(self, writes: Sequence[Write]) -> Deferred[int]:
        """See L{kubetwist.interfaces.IStorageBackend.commit}."""
        client = self._client
        if client is None:
            return fail(StorageUnavailable(self._unavailable))
        error = invalid_transaction_error(writes)
        if error is not None:
            return fail(error)
        return client.commit(writes)

    async def compact(self, revision: int) -> None:
        """See L{kubetwist.interfaces.IStorageBackend.compact}."""
        compacted = await self._request_number(Method.COMPACT, revision)
        self.compacted = max(self.compacted, compacted)

    async def claim_compaction(self, revision: int) -> bool:
        """See L{kubetwist.interfaces.ISharedStorage.claim_compaction}."""
        return bool(await self._request_number(Method.CLAIM_COMPACTION, revision))

    async def probe_writing(self) -> None:
        """See L{kubetwist.interfaces.IProbedStorage.probe_writing}."""
        await self._request(Method.PROBE_WRITING, bytes)

    # --- reading

    def newest_revision(self) -> int | None:
        """See L{kubetwist.interfaces.IImmediateRevision.newest_revision}: it is in shared memory, if there is one."""
        page = self._connected_client().revision_page
        return None if page is None else page.read()

    async def current_revision(self) -> int:
        """See L{kubetwist.interfaces.ISharedStorage.current_revision}. Calls of an iteration share one request."""
        waiter: Deferred[int] = Deferred()
        self._revision_waiters.append(waiter)
        if not self._revision_requested:
            self._revision_requested = True
            self._reactor.callLater(0, self._request_revision)
        return await waiter

    def _request_revision(self) -> None:
        """Request the revision for all waiting readers; readers that come later need another request."""
        self._revision_requested = False
        waiters, self._revision_waiters = self._revision_waiters, []

        def answered(result: int | Failure) -> None:
            for waiter in waiters:
                waiter.callback(result)

        Deferred.fromCoroutine(self._request_number(Method.CURRENT_REVISION)).addBoth(answered)

    async def read(self, key: str) -> StoredValue:
        """See L{kubetwist.interfaces.IStorageBackend.read}."""
        (found,) = await self._request(Method.READ, decode_stored_value, key)
        return found

    async def read_page(self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0) -> Page:
        """
        See L{kubetwist.interfaces.IStorageBackend.read_page}.

        @param prefix: The prefix of the keys.
        @param start: The first key to read; C{""} begins with the prefix.
        @param limit: Maximum number of values; 0 for all.
        @param revision: The revision to read at; 0 for the newest.
        """
        parts = await self._request(Method.READ_PAGE, decode_page_part, prefix, start, numbers=(limit, revision, 0, 0))
        items: list[StoredValue] = []
        for part in parts:
            items += part.items
        return Page(items, part.revision, part.more)

    async def read_changes(self, prefix: str, after: int, until: int, max_changes: int, max_bytes: int) -> History:
        """
        See L{kubetwist.interfaces.IStorageHistory.read_changes}.

        @param prefix: The prefix of the keys.
        @param after: The revision after which changes are read.
        @param until: The last revision to read, greater than C{after}.
        @param max_changes: Approximate maximum number of changes.
        @param max_bytes: Approximate maximum size of their values, in bytes.
        """
        numbers = after, until, max_changes, max_bytes
        parts = await self._request(Method.READ_CHANGES, decode_changes, prefix, numbers=numbers)
        return History([change for _, part in parts for change in part], parts[-1][0])

    async def expiration_times(self, prefix: str) -> dict[str, float]:
        """See L{kubetwist.interfaces.IExpiringStorage.expiration_times}."""
        expirations: dict[str, float] = {}
        for part in await self._request(Method.EXPIRATION_TIMES, decode_expirations, prefix):
            expirations.update(part)
        return expirations

    async def _read_events(self, client: StorageClient, prefix: str, after: int, until: int) -> list[StorageEvent]:
        """
        Read past changes.

        @param client: The connection.
        @param prefix: The prefix of the keys.
        @param after: The revision after which changes are read.
        @param until: The last revision to read, greater than C{after}.
        @raise StorageError: They are compacted, or cannot be read.
        """
        events: list[StorageEvent] = []
        request = Request(0, Method.READ_EVENTS, prefix, "", (after, until, 0, 0))
        for _, _, part in await self._send(client, request, lambda content: decode_events(content, _no_write)):
            events += part
        return events

    async def _request_number(self, method: Method, revision: int = 0) -> int:
        (number,) = await self._request(method, decode_number, numbers=(revision, 0, 0, 0))
        return number

    async def _request(
        self,
        method: Method,
        decode: Callable[[bytes], T],
        text: str = "",
        second_text: str = "",
        *,
        numbers: tuple[int, int, int, int] = (0, 0, 0, 0),
    ) -> list[T]:
        """
        Send a request; return the decoded parts of the response.

        @param method: The method.
        @param decode: Decodes a part.
        @param text: The first text of the request.
        @param second_text: Its second text.
        @param numbers: Its numbers.
        @raise StorageError: The error of the backend, or there is no connection.
        """
        return await self._send(self._connected_client(), Request(0, method, text, second_text, numbers), decode)

    async def _send(self, client: StorageClient, request: Request, decode: Callable[[bytes], T]) -> list[T]:
        try:
            parts = await client.request(request)
            if request.method in SINGLE_PART and len(parts) > 1:
                raise ProtocolError("a number has several parts")
            return [decode(content) for content in parts]
        except RevisionCompacted as error:
            self.compacted = max(self.compacted, error.oldest)
            raise
        except ProtocolError as error:
            raise StorageUnavailable(f"the storage process sent an invalid response: {error}") from None

    # --- watching

    async def watch(self, prefix: str, revision: int, observer: IStorageObserver) -> IStorageWatch:
        """See L{kubetwist.interfaces.IStorageBackend.watch}."""
        client = self._connected_client()
        if not prefix.startswith(WATCHED_PREFIX):
            raise InvalidArgument(f"a watched prefix starts with a slash: {prefix}")
        while revision > self.revision:
            current = self.newest_revision() or await self.current_revision()
            if revision > current:
                raise FutureRevision(revision, current)
            if revision > self.revision:
                await self._wait_observed(revision)
        if revision < self.compacted:
            raise RevisionCompacted(revision, self.compacted)
        watch = self._observers.add(prefix, observer)
        if revision < self.revision:
            until = self.revision
            watch.hold()
            self._starting.add(watch)
            try:
                past = await self._read_events(client, prefix, revision, until)
            except BaseException:
                watch.stop()
                raise
            finally:
                self._starting.discard(watch)
            if not watch.active:
                raise RevisionCompacted(revision, self.compacted)
            watch.catch_up(past, self.revision)
        return watch


def _no_write(number: int, index: int, revision: int) -> Write:
    raise ProtocolError("a past event refers to a write")


class StorageClientFactory(Factory):
    """Creates the connection of a storage."""

    noisy = False

    def __init__(self, storage: RemoteStorage, reactor: IReactorTime) -> None:
        self._storage = storage
        self._reactor = reactor

    def buildProtocol(self, addr: IAddress | None) -> StorageClient:
        """See L{Factory.buildProtocol}."""
        return StorageClient(self._storage, self._reactor)
